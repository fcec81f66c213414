//! Predictions for [`process::tetris`](crate::process::tetris).
//!
//! Its loads are those of the leaky bins with one choice and fixed arrivals, before their deletions, from a start that
//! one round of deletions has gone over: the law of a bin is exact for every n. In the stationary state the mean load is
//! lambda + (lambda^2 - lambda / n) / (2 (1 - lambda)) where lambda n is a whole number, and a bin is empty with
//! probability 1 - lambda.

use super::transient::Transient;
use super::{Basis, Expected, Population, Prediction, TheoryError, When, leaky};
use crate::process::Measure;
use crate::process::start::Start;
use crate::process::tetris::Parameters;

/// Predicts the loads and the max load at the end of a round.
///
/// # Errors
/// [`TheoryError`] says what is refused, why, and what to do.
pub fn predict(parameters: &Parameters, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
    if measure == Measure::Pre {
        return Err(TheoryError::unmeasured("tetris"));
    }
    if when == When::Stationary {
        let prediction = leaky::predict(&parameters.as_leaky(), When::Stationary, Measure::Pre)?;
        return Ok(Prediction { bounds: None, ..prediction });
    }
    let mut way = Way::new(parameters)?;
    if let When::Round(rounds) = when {
        (0..rounds).for_each(|_| way.bins.step());
    }
    let max_basis = if parameters.n == 1 { Basis::Exact } else { Basis::IndependentBins };
    Ok(Prediction { bins: way.state(), load_basis: Basis::Exact, max_basis, bounds: None })
}

/// The means at the end of each of `rounds`, which ascend; `None` from the first one on that is more than `budget`
/// operations away.
///
/// # Errors
/// As for [`predict`].
pub fn trajectory(
    parameters: &Parameters,
    rounds: &[u64],
    mut budget: f64,
) -> Result<Vec<Option<Expected>>, TheoryError> {
    let mut way = Way::new(parameters)?;
    let n = parameters.n as f64;
    Ok(rounds
        .iter()
        .map(|&round| way.bins.advance(round, &mut budget).then(|| Expected::new(&way.state(), n)))
        .collect())
}

/// The bins from the start on.
struct Way {
    start: Population,
    bins: Transient,
}

impl Way {
    fn new(parameters: &Parameters) -> Result<Self, TheoryError> {
        let mut bins = Transient::new(&parameters.as_leaky())?;
        if parameters.start == Start::MeanField {
            // The leaky bins draw the loads after their deletions.
            let start = leaky::predict(&parameters.as_leaky(), When::Stationary, Measure::Pre)?.bins;
            return Ok(Self { start, bins });
        }
        let start = bins.after_deletions();
        bins.delete();
        Ok(Self { start, bins })
    }

    fn state(&self) -> Population {
        self.bins.before_deletions().unwrap_or_else(|| self.start.clone())
    }
}
