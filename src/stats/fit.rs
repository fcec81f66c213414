//! Straight lines through measured values, and local exponents between them.
//!
//! # Numerics
//! Both coordinates are centred on their weighted means, in two passes, before anything is squared; the weights are taken
//! relative to the smallest error. A fit loses no more digits than the data themselves do (`tests/kat/fit.json`).

use super::special::gamma;
use crate::float::{hypot, ln, ln_1p};

/// A number and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
}

/// A measured value at a known place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The place.
    pub x: f64,
    /// The value.
    pub y: Measured,
}

/// Why there is no fit or no exponent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// NaN or infinite coordinate.
    #[error("the point at x = {x} has the value {y}, and both must be finite; leave it out")]
    NotFinite {
        /// The place.
        x: f64,
        /// The value.
        y: f64,
    },
    /// An error that is not a finite number above 0.
    #[error(
        "the point at x = {x} has the standard error {error}, but a weight needs a finite one above 0; leave it out or \
         measure it with more replicas"
    )]
    Error {
        /// The place.
        x: f64,
        /// The standard error.
        error: f64,
    },
    /// Fewer than two places.
    #[error("a line needs points at 2 or more different x, and these have {0}; add points")]
    TooFewPlaces(usize),
    /// A coordinate without a logarithm.
    #[error("the point ({x}, {y}) has no logarithms, because both coordinates must be above 0; leave it out")]
    NotPositive {
        /// The place.
        x: f64,
        /// The value.
        y: f64,
    },
    /// An intermediate result that is no `f64`.
    #[error("the points span too wide a range for floating point; measure x and y in other units")]
    Range,
}

/// The line `y = a + b x` of least weighted squares through points with known standard errors.
///
/// The errors of its numbers follow from those of the points alone: they are not scaled to make the fit look good. That
/// it is good is what [`p_value`](Self::p_value) tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// a, the value at x = 0.
    pub intercept: Measured,
    /// b.
    pub slope: Measured,
    /// Covariance of the two.
    pub covariance: f64,
    /// Sum of the squared residuals, each over its squared error.
    pub chi_square: f64,
    /// Number of points less 2.
    pub degrees_of_freedom: u64,
    /// The probability that chi-square would be as large or larger if the line were right and the errors normal; `None`
    /// without degrees of freedom.
    pub p_value: Option<f64>,
    /// Weighted mean of the points.
    mean: Mean,
}

/// Where the line and its slope are uncorrelated.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mean {
    x: Centre,
    y: Measured,
}

/// A mean to more than the precision of an `f64`, as a sum of two.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Centre {
    rounded: f64,
    rest: f64,
}

impl Centre {
    /// The mean of `values` with these weights.
    fn of(values: &(impl Iterator<Item = f64> + Clone), weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        let mean = |from: f64| values.clone().zip(weights).map(|(value, w)| w * (value - from)).sum::<f64>() / sum;
        let rounded = mean(0.0);
        Self { rounded, rest: mean(rounded) }
    }

    fn to(self, value: f64) -> f64 {
        (value - self.rounded) - self.rest
    }

    fn value(self) -> f64 {
        self.rounded + self.rest
    }
}

impl Line {
    /// Fits the line (Bevington & Robinson, Data Reduction and Error Analysis, 2003, chapter 6).
    ///
    /// # Errors
    /// [`FitError`] for points at fewer than two different x, coordinates that are not finite, and errors that are not
    /// finite or not above 0.
    pub fn fit(points: &[Point]) -> Result<Self, FitError> {
        for point in points {
            check(point)?;
        }
        let mut places: Vec<f64> = points.iter().map(|p| p.x).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        if places.len() < 2 {
            return Err(FitError::TooFewPlaces(places.len()));
        }
        let unit = points.iter().map(|p| p.y.error).fold(f64::INFINITY, f64::min);
        let weights: Vec<f64> = points.iter().map(|p| (unit / p.y.error) * (unit / p.y.error)).collect();
        let x = Centre::of(&points.iter().map(|p| p.x), &weights);
        let y = Centre::of(&points.iter().map(|p| p.y.value), &weights);
        let sum = |of: &dyn Fn(&Point) -> f64| points.iter().zip(&weights).map(|(p, w)| w * of(p)).sum::<f64>();
        let spread = sum(&|p| x.to(p.x) * x.to(p.x));
        let slope = sum(&|p| x.to(p.x) * y.to(p.y.value)) / spread;
        let degrees_of_freedom = points.len() as u64 - 2;
        let residual = |p: &Point| (y.to(p.y.value) - slope * x.to(p.x)) / p.y.error;
        // A line through two points leaves nothing but rounding.
        let chi_square =
            if degrees_of_freedom == 0 { 0.0 } else { points.iter().map(|p| residual(p) * residual(p)).sum() };
        let slope = Measured { value: slope, error: unit / spread.sqrt() };
        let mean = Mean { x, y: Measured { value: y.value(), error: unit / sum(&|_| 1.0).sqrt() } };
        let covariance = -x.value() * slope.error * slope.error;
        let p_value = (degrees_of_freedom > 0).then(|| gamma::chi_square_upper_tail(chi_square, degrees_of_freedom));
        let intercept = at(mean, slope, 0.0);
        let line = Self { intercept, slope, covariance, chi_square, degrees_of_freedom, p_value, mean };
        let numbers = [intercept.value, intercept.error, slope.value, slope.error, covariance, chi_square];
        if slope.error > 0.0 && numbers.iter().all(|number| number.is_finite()) {
            Ok(line)
        } else {
            Err(FitError::Range)
        }
    }

    /// The line at `x`, with the error of the line there: that of a value yet to be measured comes on top.
    #[must_use]
    pub fn at(&self, x: f64) -> Measured {
        at(self.mean, self.slope, x)
    }
}

fn at(mean: Mean, slope: Measured, x: f64) -> Measured {
    let distance = mean.x.to(x);
    Measured { value: mean.y.value + slope.value * distance, error: hypot(mean.y.error, slope.error * distance) }
}

fn check(point: &Point) -> Result<(), FitError> {
    let Point { x, y } = *point;
    if !(x.is_finite() && y.value.is_finite()) {
        return Err(FitError::NotFinite { x, y: y.value });
    }
    if !(y.error.is_finite() && y.error > 0.0) {
        return Err(FitError::Error { x, error: y.error });
    }
    Ok(())
}

/// The exponent of the power law through two points, `d ln y / d ln x`, with the error that follows to first order from
/// those of y: good while these are small against y.
///
/// # Errors
/// [`FitError`] for equal x, coordinates that are not finite and above 0, and errors that are not.
pub fn local_exponent(from: Point, to: Point) -> Result<Measured, FitError> {
    for point in [from, to] {
        check(&point)?;
        if point.x <= 0.0 || point.y.value <= 0.0 {
            return Err(FitError::NotPositive { x: point.x, y: point.y.value });
        }
    }
    if from.x == to.x {
        return Err(FitError::TooFewPlaces(1));
    }
    let run = ln_ratio(from.x, to.x);
    let relative = |point: Point| point.y.error / point.y.value;
    let exponent = Measured {
        value: ln_ratio(from.y.value, to.y.value) / run,
        error: hypot(relative(from), relative(to)) / run.abs(),
    };
    if exponent.value.is_finite() && exponent.error.is_finite() { Ok(exponent) } else { Err(FitError::Range) }
}

/// `ln(to / from)`, of near numbers as well as of those whose ratio is no `f64`.
fn ln_ratio(from: f64, to: f64) -> f64 {
    let near = 0.5 * from <= to && to <= 2.0 * from;
    if near { ln_1p((to - from) / from) } else { ln(to) - ln(from) }
}
