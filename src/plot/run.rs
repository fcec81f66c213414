//! Pictures of a [run](crate::report::json).

use super::axis::Scale;
use super::chart::{Axis, Chart, Estimate, Ink, Marker, Series, Shape, Stroke};
use super::theory::{Levels, MAX_LOAD};
use super::{Parameters, PlotError, instant, name, percentage};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is drawn of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    seed: Option<u64>,
    replicas: Option<u64>,
    replicas_done: Option<u64>,
    rounds: Option<u64>,
    burn_in: Option<u64>,
    measure: Option<String>,
    confidence: Option<f64>,
    band: Option<String>,
    observables: Observables,
    theory: Option<Levels>,
}

#[derive(Debug, Deserialize)]
struct Observables {
    max_load: MaxLoad,
}

#[derive(Debug, Deserialize)]
struct MaxLoad {
    #[serde(default)]
    histogram: BTreeMap<u64, u64>,
    #[serde(default)]
    exceedance: Vec<Exceedance>,
}

#[derive(Debug, Deserialize)]
struct Exceedance {
    k: u64,
    p: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// Up to so many levels each is a point with an error bar; more are a line in a band.
const MAX_POINTS: usize = 40;

impl Document {
    fn chart(&self, what: &str, y: &str, scale: Scale, series: Vec<Series>) -> Chart {
        let count = |count: Option<u64>, text: &str| count.map(|count| format!("{count} {text}"));
        let sampling = [
            count(self.replicas_done.or(self.replicas), "replicas"),
            count(self.rounds, "rounds each"),
            self.burn_in.map(|rounds| format!("the first {rounds} left out")),
            self.measure.as_deref().and_then(instant).map(str::to_owned),
            self.seed.map(|seed| format!("seed {seed}")),
        ];
        let sampling: Vec<String> = sampling.into_iter().flatten().collect();
        Chart {
            title: format!("{}: {what}", name(self.process.as_deref())),
            subtitle: vec![self.parameters.line(), sampling.join(", ")],
            x: Axis { label: MAX_LOAD.to_owned(), scale: Scale::Whole },
            y: Axis { label: y.to_owned(), scale },
            series,
        }
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Whether and how sure the intervals are.
    fn label(&self) -> String {
        let band = match self.band.as_deref() {
            Some("simultaneous") => " for all levels at once",
            Some("pointwise") => " for each level",
            _ => "",
        };
        match percentage(self.confidence) {
            Some(percentage) => format!("simulation, {percentage} intervals{band}"),
            None => "simulation".to_owned(),
        }
    }

    /// Count of all sampled rounds.
    fn total(&self) -> u128 {
        self.observables.max_load.histogram.values().map(|count| u128::from(*count)).sum()
    }

    /// P(M >= k) with its intervals; counted from the histogram where the document has none.
    pub(super) fn exceedance(&self) -> Vec<Estimate> {
        let MaxLoad { histogram, exceedance } = &self.observables.max_load;
        if !exceedance.is_empty() {
            let missing = |value: Option<f64>| value.unwrap_or(f64::NAN);
            let estimate = |e: &Exceedance| Estimate {
                x: e.k as f64,
                y: missing(e.p),
                low: missing(e.low.or(e.p)),
                high: missing(e.high.or(e.p)),
            };
            return exceedance.iter().map(estimate).collect();
        }
        let (total, mut at_least) = (self.total(), self.total());
        let estimates = histogram.iter().map(|(&k, &count)| {
            let y = at_least as f64 / total as f64;
            at_least -= u128::from(count);
            Estimate { x: k as f64, y, low: y, high: y }
        });
        estimates.collect()
    }
}

/// P(M >= k) over k.
pub(super) fn survival(document: &Document) -> Result<Chart, PlotError> {
    let mut estimates = document.exceedance();
    let is_seen = |e: &Estimate| e.y > 0.0 && e.y.is_finite();
    // Of a level that was never reached the interval tells how likely it may be.
    estimates.retain(|e| is_seen(e) || (e.y == 0.0 && e.high > 0.0));
    if !estimates.iter().any(is_seen) {
        return Err(PlotError::Empty("no sampled max load"));
    }
    let many = estimates.len() > MAX_POINTS;
    let (first, smallest) = estimates
        .iter()
        .filter(|e| is_seen(e))
        .fold((f64::INFINITY, f64::INFINITY), |(x, y), e| (e.x.min(x), e.y.min(y)));
    let has_intervals = estimates.iter().any(|e| e.low < e.high);
    let label = Some(if has_intervals { document.label() } else { "simulation".to_owned() });

    let mut series = Vec::new();
    if many {
        if has_intervals {
            let band = estimates.iter().map(|e| (e.x, e.low, e.high)).collect();
            series.push(Series { label, ink: Ink::Blue, shape: Shape::Band(band) });
        }
        let points = estimates.iter().map(|e| (e.x, e.y)).collect();
        let label = Some("simulation".to_owned());
        series.push(Series { label, ink: Ink::Blue, shape: Shape::Line { stroke: Stroke::Solid, points } });
    } else {
        let shape = Shape::Points { marker: Marker::Circle, points: estimates };
        series.push(Series { label, ink: Ink::Blue, shape });
    }
    if let Some(theory) = &document.theory {
        // What is far less likely than anything seen would only make the picture smaller.
        let levels = theory.levels.iter().filter(|level| level.k as f64 >= first - 1.0);
        let points = levels.map(|level| (level.k as f64, level.max())).take_while(|(_, p)| *p >= 0.1 * smallest);
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            let shape = Shape::Line { stroke: if many { Stroke::Dashed } else { Stroke::Solid }, points };
            series.push(Series { label: theory.label(), ink: Ink::Black, shape });
        }
    }
    Ok(document.chart("how often the max load reaches k", "P(M ≥ k)", Scale::Log, series))
}

/// The histogram of M in fractions.
pub(super) fn histogram(document: &Document) -> Result<Chart, PlotError> {
    let total = document.total();
    if total == 0 {
        return Err(PlotError::Empty("no sampled max load"));
    }
    let histogram = document.observables.max_load.histogram.iter();
    let bars: Vec<_> = histogram.map(|(&k, &count)| (k as f64, count as f64 / total as f64)).collect();
    let (first, last) = (bars[0].0, bars[bars.len() - 1].0);
    let mut series =
        vec![Series { label: Some("simulation".to_owned()), ink: Ink::Blue, shape: Shape::Bars { width: 0.8, bars } }];
    if let Some(theory) = &document.theory {
        // Between levels that are listed in steps the law is the mean over the step.
        let pairs = theory.levels.windows(2).filter(|pair| pair[0].k < pair[1].k);
        let law = pairs.map(|pair| {
            let (low, high) = (pair[0].k as f64, pair[1].k as f64);
            (0.5 * (low + high - 1.0), (pair[0].max() - pair[1].max()) / (high - low))
        });
        let points: Vec<_> = law.filter(|(k, p)| (first..=last).contains(k) || *p >= 1e-3).collect();
        if !points.is_empty() {
            let shape = if points.len() > MAX_POINTS {
                Shape::Line { stroke: Stroke::Solid, points }
            } else {
                let points = points.into_iter().map(|(x, y)| Estimate { x, y, low: y, high: y }).collect();
                Shape::Points { marker: Marker::Diamond, points }
            };
            series.push(Series { label: theory.label(), ink: Ink::Black, shape });
        }
    }
    Ok(document.chart("max load of a round", "fraction of the sampled rounds", Scale::Linear, series))
}
