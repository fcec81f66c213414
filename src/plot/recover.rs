//! Pictures of a recovery from a bad start.

use super::axis::Scale;
use super::chart::{Axis, Chart, Ink, Series, Shape, Stroke};
use super::{Parameters, PlotError, name};
use serde::Deserialize;

/// What is drawn of a recovery.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    replicas: Option<u64>,
    trajectory: Vec<State>,
    recovery: Option<Recovery>,
}

/// The replicas after a round.
#[derive(Debug, Deserialize)]
struct State {
    round: u64,
    max_load: Law,
    total_load: Option<Law>,
    theory: Option<Theory>,
}

#[derive(Debug, Deserialize)]
struct Law {
    mean: Option<f64>,
    #[serde(default)]
    quantiles: Vec<(f64, Option<f64>)>,
}

impl Law {
    fn quantile(&self, wanted: f64) -> Option<f64> {
        self.quantiles.iter().find(|(q, _)| *q == wanted).and_then(|(_, load)| *load)
    }
}

#[derive(Debug, Deserialize)]
struct Theory {
    mean_max: Option<f64>,
    mean_total: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Recovery {
    level: Option<f64>,
    elsewhere: Option<String>,
    #[serde(default)]
    quantiles: Vec<(f64, Option<f64>)>,
}

/// Max load and balls per bin over the rounds.
pub(super) fn recovery(document: &Document) -> Result<Chart, PlotError> {
    let mut trajectory: Vec<&State> = document.trajectory.iter().filter(|state| state.round > 0).collect();
    trajectory.sort_by_key(|state| state.round);
    let over = |value: &dyn Fn(&State) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = trajectory.iter().filter_map(|state| Some((state.round as f64, value(state)?)));
        points.filter(|(_, y)| *y > 0.0 && y.is_finite()).collect()
    };
    let bins = document.parameters.bins().filter(|n| *n > 0.0);
    let per_bin = |balls: Option<f64>| Some(balls? / bins?);

    let band: Vec<_> = trajectory
        .iter()
        .filter_map(|state| Some((state.round as f64, state.max_load.quantile(0.05)?, state.max_load.quantile(0.95)?)))
        .collect();
    let medians = over(&|state| state.max_load.quantile(0.5));
    let max_load = if medians.is_empty() {
        ("max load, mean", over(&|state| state.max_load.mean))
    } else {
        ("max load, median", medians)
    };
    let elsewhere = document.recovery.as_ref().and_then(|recovery| recovery.elsewhere.as_ref());
    let share = elsewhere.map_or_else(String::new, |name| format!(" + {name} / n"));
    let level = document.recovery.as_ref().and_then(|recovery| Some((recovery.level?, &recovery.quantiles)));
    let level = level.filter(|(level, _)| *level > 0.0 && level.is_finite());
    let level = level.zip(trajectory.first().zip(trajectory.last())).map(|((level, quantiles), (first, last))| {
        let median = quantiles.iter().find(|(q, _)| *q == 0.5).and_then(|(_, round)| *round);
        let median = median.map_or_else(String::new, |round| format!(", reached in round {round:.0} (median)"));
        (
            format!("recovered: max load{share} ≤ {level}{median}"),
            vec![(first.round as f64, level), (last.round as f64, level)],
        )
    });

    let line = |label: &str, ink, stroke, points| Series {
        label: Some(label.to_owned()),
        ink,
        shape: Shape::Line { stroke, points },
    };
    let total = over(&|state| per_bin(state.total_load.as_ref()?.mean));
    let theory_max = over(&|state| state.theory.as_ref()?.mean_max);
    let theory_total = over(&|state| per_bin(state.theory.as_ref()?.mean_total));
    let series = [
        Series {
            label: Some("max load, 5 to 95 % of the replicas".to_owned()),
            ink: Ink::Blue,
            shape: Shape::Band(band),
        },
        line(max_load.0, Ink::Blue, Stroke::Solid, max_load.1),
        line("balls per bin, mean", Ink::Vermillion, Stroke::Solid, total),
        line("theory, mean max load", Ink::Black, Stroke::Dashed, theory_max),
        line("theory, mean balls per bin", Ink::Black, Stroke::Dotted, theory_total),
    ];
    let mut series: Vec<Series> = series.into_iter().filter(has_marks).collect();
    if series.is_empty() {
        return Err(PlotError::Empty("no positive load after round 0"));
    }
    series.extend(level.map(|(label, points)| line(&label, Ink::Green, Stroke::Dashed, points)));
    let replicas = document.replicas.map(|replicas| format!("{replicas} replicas"));
    Ok(Chart {
        title: format!("{}: recovery from the start", name(document.process.as_deref())),
        subtitle: vec![document.parameters.line(), replicas.unwrap_or_default()],
        x: Axis { label: "round".to_owned(), scale: Scale::Log },
        y: Axis { label: "load, in balls".to_owned(), scale: Scale::Log },
        series,
    })
}

fn has_marks(series: &Series) -> bool {
    match &series.shape {
        Shape::Bars { bars, .. } => !bars.is_empty(),
        Shape::Line { points, .. } => !points.is_empty(),
        Shape::Points { points, .. } => !points.is_empty(),
        Shape::Band(points) => !points.is_empty(),
    }
}
