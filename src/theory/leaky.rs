//! Predictions for the leaky bins ([`process::leaky`](crate::process::leaky)).

use super::arrivals::ArrivalLaw;
use super::bounds::Bounds;
use super::population::Population;
use super::transient::Transient;
use super::{TheoryError, mean_field, one_choice, validate};
use crate::process::Measure;
use crate::process::leaky::{Arrivals, Parameters};
use crate::process::start::Start;
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
    /// The paper's bounds; `None` at lambda = 1.
    pub bounds: Option<Bounds>,
}

/// Predicts the loads and the max load.
///
/// The start matters for [`When::Round`] only. Rounds cost time: one choice about width * 40 operations each, width
/// the number of loads of probability above [`FLOOR`](super::FLOOR).
///
/// # Errors
/// [`TheoryError`] says what is refused, why, and what to do.
pub fn predict(parameters: &Parameters, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
    validate(parameters)?;
    let bins = match when {
        When::Stationary => stationary(parameters, measure)?,
        When::Round(rounds) => {
            let mut bins = Transient::new(parameters)?;
            for _ in 0..rounds {
                bins.step();
            }
            match measure {
                Measure::Post => bins.after_deletions(),
                Measure::Pre => bins.before_deletions().ok_or(TheoryError::NoRound)?,
            }
        }
    };
    let Parameters { n, lambda, d, arrivals, ref start } = *parameters;
    let load_basis = if d == 1 || n == 1 { Basis::Exact } else { Basis::MeanField };
    // Poisson arrivals split into independent streams, and these starts are the same in every replica.
    let independent_start =
        when == When::Stationary || matches!(start, Start::Empty | Start::Each(_) | Start::OneBin(_));
    let exact = n == 1 || (d == 1 && arrivals == Arrivals::Poisson && independent_start);
    let max_basis = if exact { Basis::Exact } else { Basis::IndependentBins };
    Ok(Prediction { bins, load_basis, max_basis, bounds: Bounds::new(n as f64, 1.0 - lambda) })
}

fn stationary(parameters: &Parameters, measure: Measure) -> Result<Population, TheoryError> {
    let Parameters { n, lambda, d, arrivals, .. } = *parameters;
    let gap = 1.0 - lambda;
    if gap == 0.0 {
        return Err(TheoryError::NoStationaryLaw);
    }
    let after = if d == 1 || n == 1 {
        one_choice::stationary(&ArrivalLaw::one_bin(arrivals, n, lambda), gap)
    } else {
        mean_field::fixed_point(lambda, gap, d as u32)
    };
    let law = match measure {
        Measure::Post => after,
        Measure::Pre => after.before_deletions(gap, lambda),
    };
    Ok(Population::new(vec![(n as f64, law)]))
}
