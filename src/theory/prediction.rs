//! What a prediction is, whatever the process.

use super::bounds::Bounds;
use super::population::Population;
use serde::Serialize;

/// When the bins are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In the stationary state, whatever the start.
    Stationary,
    /// After this many rounds from the start.
    Round(u64),
}

/// What a prediction rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Exact for these parameters.
    Exact,
    /// The limit of many bins at fixed parameters; its error is of order 1/n.
    MeanField,
    /// The bins taken as independent, each with its law.
    IndependentBins,
}

impl Basis {
    /// What that means, for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Basis::Exact => "exact for these parameters",
            Basis::MeanField => "mean field: the limit of many bins, off by order 1/n",
            Basis::IndependentBins => "approximate: n independent bins, each with the law of the load",
        }
    }
}

/// A prediction, of the loads and of the max load, and what each rests on.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// All bins.
    pub bins: Population,
    /// What the law of a bin rests on.
    pub load_basis: Basis,
    /// What the law of the max load rests on.
    pub max_basis: Basis,
    /// The bounds of the leaky bins' paper; `None` at lambda = 1 and for other processes.
    pub bounds: Option<Bounds>,
    /// Means of observables that the process has beside the loads, where they are known: name and value.
    pub further: Vec<(&'static str, f64)>,
}

impl Prediction {
    /// Mean of a further observable, where it is known.
    #[must_use]
    pub fn further_mean(&self, name: &str) -> Option<f64> {
        self.further.iter().find(|(of, _)| *of == name).map(|(_, mean)| *mean)
    }
}

/// What is expected after some round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Mean max load, in balls.
    pub mean_max: f64,
    /// Mean total load, in balls.
    pub mean_total: f64,
}

impl Expected {
    /// The means of `n` bins.
    pub(super) fn new(bins: &Population, n: f64) -> Self {
        Self { mean_max: bins.mean_max(), mean_total: bins.mean_load() * n }
    }
}
