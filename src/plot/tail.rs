//! Pictures of [rare max loads](crate::tail::report), several in one, with plain runs beside them.

use super::axis::Scale;
use super::chart::{Axis, Chart, Estimate, Ink, Marker, Series, Shape, Stroke};
use super::theory::MAX_LOAD;
use super::{Parameters, PlotError, name, percentage, run};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is drawn of a tail.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    when: Option<String>,
    seed: Option<u64>,
    islands: Option<u64>,
    confidence: Option<f64>,
    levels: Vec<Level>,
}

#[derive(Debug, Deserialize)]
struct Level {
    k: u64,
    p: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    theory: Option<f64>,
}

impl Document {
    /// The levels that were reached.
    fn estimates(&self) -> Vec<Estimate> {
        let reached = self.levels.iter().filter_map(|level| Some((level, level.p.filter(|p| *p > 0.0)?)));
        let estimate = |(level, y): (&Level, f64)| Estimate {
            x: level.k as f64,
            y,
            low: level.low.unwrap_or(y),
            high: level.high.unwrap_or(y),
        };
        reached.map(estimate).collect()
    }
}

/// P(M >= k) over k, with its intervals and theory.
pub(super) fn survival(document: &Document) -> Result<Chart, PlotError> {
    let points = document.estimates();
    if points.is_empty() {
        return Err(PlotError::Empty("no level that was reached"));
    }
    let theory: Vec<_> = document.levels.iter().filter_map(|level| Some((level.k as f64, level.theory?))).collect();
    let sure = percentage(document.confidence).map_or_else(String::new, |sure| format!(", {sure} intervals"));
    let mut series = vec![Series {
        label: Some(format!("islands{sure}")),
        ink: Ink::Blue,
        shape: Shape::Points { marker: Marker::Circle, points },
    }];
    if !theory.is_empty() {
        let shape = Shape::Line { stroke: Stroke::Dashed, points: theory };
        let label = Some("theory (bins taken as independent)".to_owned());
        series.push(Series { label, ink: Ink::Black, shape });
    }
    let computed = [
        document.islands.map(|islands| format!("{islands} islands")),
        document.seed.map(|seed| format!("seed {seed}")),
    ];
    let computed: Vec<_> = computed.into_iter().flatten().collect();
    Ok(Chart {
        subtitle: vec![document.parameters.line(), computed.join(", ")],
        ..chart(document, Scale::Whole, series)
    })
}

/// Several tails in one picture, with runs of the same parameters in the same colours.
pub(super) fn overlay(tails: &[Document], runs: &[run::Document]) -> Result<Chart, PlotError> {
    let Some(first) = tails.first() else { return Err(PlotError::Empty("no tail among the documents")) };
    if tails.len() > Ink::DATA.len() {
        return Err(PlotError::TooMany { what: "tails", found: tails.len(), most: Ink::DATA.len() });
    }
    // What all documents share stands under the title, the rest in the legend.
    let laws: Vec<_> = tails.iter().map(|tail| tail.parameters.of_the_law()).collect();
    let shared = |name: &str| laws.iter().all(|other| other.get(name) == laws[0].get(name));
    let join = |law: &BTreeMap<&str, String>, wanted: bool| {
        let parts = law.iter().filter(|(name, _)| shared(name) == wanted).map(|(_, part)| part.clone());
        parts.collect::<Vec<_>>().join(", ")
    };
    if tails.iter().all(|tail| tail.estimates().is_empty()) {
        return Err(PlotError::Empty("no level that was reached"));
    }
    let mut series = Vec::new();
    for ((tail, own), ink) in tails.iter().zip(&laws).zip(Ink::DATA) {
        let estimates = tail.estimates();
        let label = Some(join(own, false)).filter(|label| !label.is_empty());
        let line = estimates.iter().map(|at| (at.x, at.y)).collect();
        let band = estimates.iter().map(|at| (at.x, at.low, at.high)).collect();
        series.push(Series { label: None, ink, shape: Shape::Band(band) });
        series.push(Series { label, ink, shape: Shape::Line { stroke: Stroke::Solid, points: line } });
    }
    for run in runs {
        let own = run.parameters().of_the_law();
        let place = laws.iter().position(|other| *other == own);
        let ink = place.map_or(Ink::Black, |place| Ink::DATA[place]);
        let mut points = run.exceedance();
        points.retain(|at| at.y > 0.0);
        let label = Some(format!("plain run, {}", join(&own, false)));
        series.push(Series { label, ink, shape: Shape::Points { marker: Marker::Circle, points } });
    }
    Ok(Chart { subtitle: vec![join(&laws[0], true)], ..chart(first, Scale::Log, series) })
}

fn chart(document: &Document, x: Scale, series: Vec<Series>) -> Chart {
    Chart {
        title: format!("{}: how likely a max load of k is", name(document.process.as_deref())),
        subtitle: Vec::new(),
        x: Axis { label: MAX_LOAD.to_owned(), scale: x },
        y: Axis {
            label: format!("P(M ≥ k), {}", document.when.as_deref().unwrap_or("stationary")), scale: Scale::Log
        },
        series,
    }
}
