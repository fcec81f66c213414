//! The laws that the mean max load of the leaky bins follows as lambda -> 1; those of other processes are not fitted.

use super::Point;
use crate::process::ProcessSpec;
use crate::process::leaky::Parameters;
use crate::stats::fit;
use crate::stats::fit::{Line, Measured, local_exponent};
use crate::theory::bounds;
use serde::{Serialize, Serializer};

/// What the mean max load is fitted to: the growth that the bounds of Berenbrink et al. (PODC 2016) allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One choice.
    OneChoice,
    /// Two or more choices: at fixed n the bound ln(n / (1 - lambda)) is this up to a constant.
    TwoChoices,
}

impl Shape {
    /// As a formula.
    #[must_use]
    pub fn formula(self) -> &'static str {
        match self {
            Shape::OneChoice => "ln(n/(1-lambda))/(1-lambda)",
            Shape::TwoChoices => "ln(1/(1-lambda))",
        }
    }

    fn of(d: u64) -> Self {
        if d == 1 { Shape::OneChoice } else { Shape::TwoChoices }
    }

    fn at(self, parameters: &Parameters) -> f64 {
        let gap = 1.0 - parameters.lambda;
        match self {
            Shape::OneChoice => bounds::one_choice(parameters.n as f64, gap),
            Shape::TwoChoices => bounds::two_choices(1.0, gap),
        }
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.formula())
    }
}

/// The line through the mean max loads of the points with the same d and n.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Choices.
    pub d: u64,
    /// Bins.
    pub n: u64,
    /// The abscissa.
    pub shape: Shape,
    /// Points that the line goes through.
    pub points: usize,
    /// The line.
    pub line: Line,
}

/// d ln E[max load] / d ln(1 / (1 - lambda)) between two neighbouring points.
#[derive(Clone, Copy, Debug)]
pub struct Exponent {
    /// Choices.
    pub d: u64,
    /// Bins.
    pub n: u64,
    /// Rates of the two points.
    pub lambda: [f64; 2],
    /// The exponent and its standard error.
    pub exponent: Measured,
}

/// A fit takes standard errors as known; from fewer replicas they are not.
const FEWEST_REPLICAS: u64 = 20;

/// A point's parameters and mean max load, if its error is known well.
fn measured(point: &Point) -> Option<(&Parameters, Measured)> {
    let ProcessSpec::Leaky(parameters) = &point.spec.process else { return None };
    let estimate = point.estimates.max_load.estimate.filter(|_| point.outcome.tally.replicas >= FEWEST_REPLICAS)?;
    Some((parameters, Measured { value: estimate.value, error: estimate.precision?.standard_error }))
}

/// The points by (d, n), each group in ascending order of lambda.
fn groups(points: &[Point]) -> Vec<Vec<(&Parameters, Measured)>> {
    let mut all: Vec<_> = points.iter().filter_map(measured).collect();
    all.sort_by(|(a, _), (b, _)| (a.d, a.n).cmp(&(b.d, b.n)).then(a.lambda.total_cmp(&b.lambda)));
    all.chunk_by(|(a, _), (b, _)| (a.d, a.n) == (b.d, b.n)).map(<[_]>::to_vec).collect()
}

/// The fits over the points with lambda >= `from`, where there are three or more: two always lie on a line.
pub(super) fn fits(points: &[Point], from: f64) -> Vec<Fit> {
    let fit = |group: Vec<(&Parameters, Measured)>| {
        let &Parameters { d, n, .. } = group.first()?.0;
        let shape = Shape::of(d);
        let near = group.iter().filter(|(parameters, _)| parameters.lambda >= from);
        let points: Vec<_> = near.map(|(parameters, y)| fit::Point { x: shape.at(parameters), y: *y }).collect();
        let line = Line::fit(&points).ok().filter(|line| line.degrees_of_freedom > 0)?;
        Some(Fit { d, n, shape, points: points.len(), line })
    };
    groups(points).into_iter().filter_map(fit).collect()
}

/// The local exponents.
pub(super) fn exponents(points: &[Point]) -> Vec<Exponent> {
    let mut exponents = Vec::new();
    for group in groups(points) {
        for pair in group.windows(2) {
            let [(a, low), (b, high)] = [pair[0], pair[1]];
            let at = |parameters: &Parameters, y| fit::Point { x: 1.0 / (1.0 - parameters.lambda), y };
            if let Ok(exponent) = local_exponent(at(a, low), at(b, high)) {
                exponents.push(Exponent { d: a.d, n: a.n, lambda: [a.lambda, b.lambda], exponent });
            }
        }
    }
    exponents
}
