//! Pictures of what a round costs on each backend, as `benches/cost.rs` measures it.

use super::axis::Scale;
use super::chart::{Axis, Chart, Estimate, Ink, Marker, Series, Shape, Stroke};
use super::{Parameters, PlotError, name};
use serde::Deserialize;

/// What is drawn of the costs.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    series: Vec<Costs>,
}

/// A backend with a number of choices.
#[derive(Debug, Deserialize)]
struct Costs {
    backend: String,
    d: u64,
    points: Vec<Cost>,
}

/// Seconds a round of one replica.
#[derive(Debug, Deserialize)]
struct Cost {
    n: f64,
    seconds: f64,
    low: f64,
    high: f64,
}

const MICROSECONDS: f64 = 1e6;

/// Time of a round over n; one colour a backend, one line a number of choices.
pub(super) fn cost(document: &Document) -> Result<Chart, PlotError> {
    let mut backends: Vec<&str> = Vec::new();
    for costs in &document.series {
        if !backends.contains(&&*costs.backend) {
            backends.push(&costs.backend);
        }
    }
    if backends.len() > Ink::DATA.len() {
        return Err(PlotError::TooMany { what: "backends", found: backends.len(), most: Ink::DATA.len() });
    }
    if document.series.iter().all(|costs| costs.points.is_empty()) {
        return Err(PlotError::Empty("no time of a round"));
    }
    let series = document.series.iter().flat_map(|costs| {
        let ink =
            backends.iter().zip(Ink::DATA).find(|(name, _)| **name == costs.backend).map_or(Ink::Black, |(_, i)| i);
        let (stroke, marker) =
            if costs.d > 1 { (Stroke::Solid, Marker::Circle) } else { (Stroke::Dashed, Marker::Square) };
        let in_microseconds = |value: f64| value * MICROSECONDS;
        let line = costs.points.iter().map(|cost| (cost.n, in_microseconds(cost.seconds))).collect();
        let points = costs.points.iter().map(|&Cost { n, seconds, low, high }| {
            let [y, low, high] = [seconds, low, high].map(in_microseconds);
            Estimate { x: n, y, low, high }
        });
        [
            Series { label: None, ink, shape: Shape::Line { stroke, points: line } },
            Series {
                label: Some(format!("{}, d = {}", costs.backend, costs.d)),
                ink,
                shape: Shape::Points { marker, points: points.collect() },
            },
        ]
    });
    Ok(Chart {
        title: format!("{}: time of a round", name(document.process.as_deref())),
        subtitle: vec![document.parameters.line(), "median, least and largest of the repeats".to_owned()],
        x: Axis { label: "number of bins n".to_owned(), scale: Scale::Log },
        y: Axis { label: "time of a round of one replica, in microseconds".to_owned(), scale: Scale::Log },
        series: series.collect(),
    })
}
