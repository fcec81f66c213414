//! Pictures of cover times.

use super::axis::Scale;
use super::chart::{Axis, Chart, Ink, Series, Shape, Stroke};
use super::{Parameters, PlotError, name};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is drawn of cover times.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    queue: Option<String>,
    balls: Option<u64>,
    replicas: u64,
    cover: Times,
    first_ball: Times,
}

#[derive(Debug, Deserialize)]
struct Times {
    histogram: BTreeMap<u64, u64>,
}

impl Times {
    /// The fraction of the replicas that have come so far, over the rounds: a line of steps.
    fn fractions(&self, replicas: u64) -> Vec<(f64, f64)> {
        let mut reached = 0.0;
        let steps = self.histogram.iter().flat_map(|(&round, &count)| {
            let before = reached;
            reached += count as f64 / replicas as f64;
            [(round as f64, before), (round as f64, reached)]
        });
        steps.collect()
    }
}

/// Fractions of the replicas whose balls, and one of whose balls, have been in every bin.
pub(super) fn cover(document: &Document) -> Result<Chart, PlotError> {
    let line = |label: &str, ink, stroke, times: &Times| Series {
        label: Some(label.to_owned()),
        ink,
        shape: Shape::Line { stroke, points: times.fractions(document.replicas) },
    };
    let series = [
        ("first ball", Ink::Vermillion, Stroke::Dashed, &document.first_ball),
        ("all balls", Ink::Blue, Stroke::Solid, &document.cover),
    ];
    let reached = series.into_iter().filter(|(.., times)| !times.histogram.is_empty());
    let series: Vec<_> = reached.map(|(label, ink, stroke, times)| line(label, ink, stroke, times)).collect();
    if series.is_empty() {
        return Err(PlotError::Empty("no ball that has been in every bin"));
    }
    let balls = document.balls.map(|balls| format!("{balls} balls"));
    let queue = document.queue.as_ref().map(|queue| format!("queue {queue}"));
    let parts = [balls, queue, Some(format!("{} replicas", document.replicas))];
    Ok(Chart {
        title: format!("{}: balls that have been in every bin", name(document.process.as_deref())),
        subtitle: vec![document.parameters.line(), parts.into_iter().flatten().collect::<Vec<_>>().join(", ")],
        x: Axis { label: "round".to_owned(), scale: Scale::Linear },
        y: Axis { label: "fraction of the replicas".to_owned(), scale: Scale::Linear },
        series,
    })
}
