//! Pictures of a [prediction](crate::theory::report).

use super::axis::Scale;
use super::chart::{Axis, Chart, Ink, Series, Shape, Stroke};
use super::{Parameters, PlotError, instant, name};
use serde::Deserialize;

/// The x axis of a law of the max load.
pub(super) const MAX_LOAD: &str = "max load k, in balls";

/// What is drawn of a prediction.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    process: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    round: Option<u64>,
    measure: Option<String>,
    load: Option<Law>,
    #[serde(flatten)]
    levels: Levels,
}

/// Laws by levels, in a prediction and in the part `theory` of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Levels {
    max_load: Option<Law>,
    #[serde(default)]
    pub(super) levels: Vec<Level>,
}

#[derive(Debug, Deserialize)]
struct Law {
    basis: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Level {
    pub(super) k: u64,
    load_exceedance: Option<f64>,
    max_exceedance: Option<f64>,
}

impl Level {
    /// P(M >= k).
    pub(super) fn max(&self) -> f64 {
        self.max_exceedance.unwrap_or(f64::NAN)
    }
}

impl Levels {
    /// The entry of the max load in the legend of a run, which holds the theory of the stationary state.
    pub(super) fn label(&self) -> Option<String> {
        Some(format!("stationary theory{}", basis(self.max_load.as_ref())))
    }
}

/// What a law rests on, in words.
fn basis(law: Option<&Law>) -> &'static str {
    match law.and_then(|law| law.basis.as_deref()) {
        Some("exact") => " (exact)",
        Some("mean-field") => " (mean field)",
        Some("independent-bins") => " (bins taken as independent)",
        _ => "",
    }
}

/// P(L >= k) and P(M >= k) over k.
pub(super) fn survival(document: &Document) -> Result<Chart, PlotError> {
    let levels = &document.levels;
    let line = |ink, stroke, label: String, law: &dyn Fn(&Level) -> f64| Series {
        label: Some(label),
        ink,
        shape: Shape::Line { stroke, points: levels.levels.iter().map(|level| (level.k as f64, law(level))).collect() },
    };
    let load = |level: &Level| level.load_exceedance.unwrap_or(f64::NAN);
    if !levels.levels.iter().any(|level| level.max() > 0.0 || load(level) > 0.0) {
        return Err(PlotError::Empty("no level with a positive probability"));
    }
    let state = document.round.map_or_else(|| "stationary".to_owned(), |round| format!("after round {round}"));
    let measure = document.measure.as_deref().and_then(instant).map(|measure| format!(", {measure}"));
    let max_basis = basis(levels.max_load.as_ref());
    Ok(Chart {
        title: format!("{}: how likely a load of k is reached", name(document.process.as_deref())),
        subtitle: vec![document.parameters.line(), state + &measure.unwrap_or_default()],
        x: Axis { label: "load k, in balls".to_owned(), scale: Scale::Whole },
        y: Axis { label: "probability of a load ≥ k".to_owned(), scale: Scale::Log },
        series: vec![
            line(Ink::Vermillion, Stroke::Solid, format!("max load of all bins{max_basis}"), &Level::max),
            line(Ink::Blue, Stroke::Dashed, format!("load of one bin{}", basis(document.load.as_ref())), &load),
        ],
    })
}
