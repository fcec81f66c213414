//! Pictures of a sweep: over lambda, or over n where a process has no lambda.

use super::axis::Scale;
use super::chart::{Axis, Chart, Estimate, Ink, Marker, Series, Shape, Stroke};
use super::{PlotError, name, percentage};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is drawn of a sweep.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    confidence: Option<f64>,
    points: Vec<Point>,
    #[serde(default)]
    fits: Vec<Fit>,
}

#[derive(Debug, Deserialize)]
struct Point {
    n: u64,
    lambda: Option<f64>,
    d: Option<u64>,
    c: Option<serde_json::Value>,
    start: Option<String>,
    #[serde(default)]
    arrivals: String,
    max_load: Mean,
    theory: Option<Theory>,
}

#[derive(Debug, Deserialize)]
struct Mean {
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Theory {
    mean_max: Option<f64>,
}

/// A straight line in `x`, which is a function of lambda and n.
#[derive(Debug, Deserialize)]
struct Fit {
    d: u64,
    n: u64,
    x: String,
    intercept: Option<f64>,
    slope: Option<f64>,
    slope_error: Option<f64>,
}

impl Fit {
    /// The mean max load of the line where 1/(1 - lambda) is `inverse`.
    fn at(&self, inverse: f64) -> Result<f64, PlotError> {
        let x = match &*self.x {
            "ln(1/(1-lambda))" => inverse.ln(),
            "ln(n/(1-lambda))/(1-lambda)" => (self.n as f64 * inverse).ln() * inverse,
            other => return Err(PlotError::Fit(other.to_owned())),
        };
        let missing = f64::NAN;
        Ok(self.intercept.unwrap_or(missing) + self.slope.unwrap_or(missing) * x)
    }

    /// `fit for d = 2, n = 1024: slope 1.44 ± 0.02 in ln(1/(1−λ))`.
    fn label(&self) -> String {
        let x = self.x.replace("lambda", "λ").replace('-', "−");
        let slope = self.slope.map_or_else(String::new, |slope| match self.slope_error {
            Some(error) if error > 0.0 && error.is_finite() => {
                // Two digits of the error.
                let digits = (1.0 - error.log10().floor()).clamp(0.0, 12.0) as usize;
                format!(" {slope:.digits$} ± {error:.digits$}")
            }
            _ => format!(" {slope:.4}"),
        });
        format!("fit, d = {}, n = {}: slope{} in {x}", self.d, self.n, slope.replace('-', "−"))
    }
}

/// Most series, and most fits: each series has its own pair of colour and marker.
const MAX_SERIES: usize = 12;
/// The y axis is logarithmic where the largest mean is so many times the smallest.
const WIDE: f64 = 20.0;
/// Points of a fitted line, which is none on these axes.
const STEPS: u32 = 100;

/// What the points of a series have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    d: Option<u64>,
    c: Option<String>,
    /// `None` where it is the abscissa.
    n: Option<u64>,
    /// Where n is the abscissa: then it says how many balls there are.
    start: Option<&'a str>,
    arrivals: &'a str,
}

impl<'a> Group<'a> {
    fn of(point: &'a Point) -> Self {
        let over_n = point.lambda.is_none();
        Self {
            d: point.d,
            c: point.c.as_ref().map(super::text),
            n: (!over_n).then_some(point.n),
            start: point.start.as_deref().filter(|_| over_n),
            arrivals: &point.arrivals,
        }
    }

    /// `d = 2, n = 1024`.
    fn label(&self) -> String {
        let parts = [
            self.d.map(|d| format!("d = {d}")),
            self.c.as_ref().map(|c| format!("c = {c}")),
            self.n.map(|n| format!("n = {n}")),
            self.start.map(|start| format!("start {start}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Mean max load over 1/(1 - lambda), or over n.
pub(super) fn scaling(document: &Document) -> Result<Chart, PlotError> {
    let mut groups: BTreeMap<Group<'_>, Vec<&Point>> = BTreeMap::new();
    for point in
        document.points.iter().filter(|p| p.max_load.mean.is_some_and(f64::is_finite) && abscissa(p).is_finite())
    {
        groups.entry(Group::of(point)).or_default().push(point);
    }
    if groups.is_empty() {
        return Err(PlotError::Empty("no point with a mean max load and lambda < 1"));
    }
    for (what, found) in [("combinations of d, n and arrivals", groups.len()), ("fits", document.fits.len())] {
        if found > MAX_SERIES {
            return Err(PlotError::TooMany { what, found, most: MAX_SERIES });
        }
    }
    let arrivals: std::collections::BTreeSet<&str> = groups.keys().map(|group| group.arrivals).collect();

    let (mut marks, mut theories, mut fits) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (group, points)) in groups.iter_mut().enumerate() {
        points.sort_by(|a, b| abscissa(a).total_cmp(&abscissa(b)));
        let ink = Ink::DATA[i % Ink::DATA.len()];
        let law = if arrivals.len() > 1 { format!(", {} arrivals", group.arrivals) } else { String::new() };
        let estimates = points.iter().map(|point| {
            let Mean { mean, low, high } = point.max_load;
            let y = mean.unwrap_or(f64::NAN);
            Estimate { x: abscissa(point), y, low: low.unwrap_or(y), high: high.unwrap_or(y) }
        });
        let shape = Shape::Points { marker: Marker::ALL[i % Marker::ALL.len()], points: estimates.collect() };
        marks.push(Series { label: Some(group.label() + &law), ink, shape });

        let theory = points.iter().filter_map(|p| Some((abscissa(p), p.theory.as_ref()?.mean_max?)));
        let theory: Vec<_> = theory.collect();
        if !theory.is_empty() {
            let label = theories.is_empty().then(|| "theory".to_owned());
            let shape = Shape::Line { stroke: Stroke::Solid, points: theory };
            theories.push(Series { label, ink: Ink::Black, shape });
        }
        for fit in document.fits.iter().filter(|fit| (Some(fit.d), Some(fit.n)) == (group.d, group.n)) {
            let (from, to) = (abscissa(points[0]), abscissa(points[points.len() - 1]));
            let xs = (0..=STEPS).map(|i| from * (to / from).powf(f64::from(i) / f64::from(STEPS)));
            let line: Vec<_> = xs.map(|x| Ok((x, fit.at(x)?))).collect::<Result<_, PlotError>>()?;
            let shape = Shape::Line { stroke: Stroke::Dashed, points: line };
            fits.push(Series { label: Some(fit.label()), ink, shape });
        }
    }

    let means = || groups.values().flatten().filter_map(|point| point.max_load.mean);
    let (smallest, largest) =
        means().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), y| (low.min(y), high.max(y)));
    let scale = if smallest > 0.0 && largest > WIDE * smallest { Scale::Log } else { Scale::Linear };
    let mut facts: Vec<String> =
        arrivals.iter().filter(|law| !law.is_empty()).map(|law| format!("{law} arrivals")).collect();
    facts.extend(percentage(document.confidence).map(|percentage| format!("{percentage} intervals")));
    let over_n = groups.keys().any(|group| group.n.is_none());
    let (what, x) = if over_n { ("", "number of bins n") } else { (" near saturation", "1/(1 − λ)") };
    Ok(Chart {
        title: format!("{}: mean max load{what}", name(document.process.as_deref())),
        subtitle: vec![facts.join(", ")],
        x: Axis { label: x.to_owned(), scale: Scale::Log },
        y: Axis { label: "mean max load, in balls".to_owned(), scale },
        series: [marks, theories, fits].concat(),
    })
}

/// 1/(1 - lambda), infinite at lambda = 1, or n.
fn abscissa(point: &Point) -> f64 {
    point.lambda.map_or(point.n as f64, |lambda| 1.0 / (1.0 - lambda))
}
