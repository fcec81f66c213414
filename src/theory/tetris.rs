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
    Ok(Prediction { bins: way.state(), load_basis: Basis::Exact, max_basis, bounds: None, further: Vec::new() })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(what: &str, value: f64, reference: f64, bound: f64) {
        assert!((value - reference).abs() <= bound, "{what}: {value} for {reference}, bound {bound:e}");
    }

    fn stationary(n: u64) -> Result<Prediction, TheoryError> {
        predict(&Parameters { n, ..Parameters::default() }, When::Stationary, Measure::Post)
    }

    #[test]
    fn tetris_is_exact_at_finite_n() {
        for n in [4u64, 1000, 10_000, 1 << 50] {
            let prediction = stationary(n).expect("a prediction");
            assert_eq!(prediction.load_basis, Basis::Exact);
            assert_close("empty", prediction.bins.empty_fraction(), 0.25, 1e-15);
            let mean = 0.75 + (0.5625 - 0.75 / n as f64) / 0.5;
            assert_close("mean", prediction.bins.mean_load(), mean, 1e-13);
        }
        // An independent simulation, 60,000 rounds and more: within three standard errors of its mean max loads.
        for (n, max, error) in [(1000, 13.792, 0.020), (10_000, 17.988, 0.051)] {
            let bins = stationary(n).expect("a prediction").bins;
            assert_close("max", bins.mean_max(), max, 3.0 * error);
        }
    }

    /// Empty fractions of four bins by exact enumeration: tests/oracles/tetris.json.
    #[test]
    fn the_first_rounds_are_exact() {
        for (start, rounds) in [
            (Start::Empty, [(0, 1.0), (1, 0.421875), (2, 0.35595703125), (5, 0.29548097122460604)]),
            (Start::OneBin(1), [(0, 0.75), (1, 0.421875), (2, 0.35595703125), (5, 0.29548097122460604)]),
            (Start::MeanField, [(0, 0.25), (1, 0.25), (2, 0.25), (5, 0.25)]),
        ] {
            let parameters = Parameters { n: 4, lambda: 0.75, start };
            let wanted = rounds.map(|(round, _)| round);
            let means = trajectory(&parameters, &wanted, 1e9).expect("a way");
            for ((round, empty), mean) in rounds.into_iter().zip(means) {
                let bins = predict(&parameters, When::Round(round), Measure::Post).expect("a law").bins;
                assert_close("empty", bins.empty_fraction(), empty, 1e-14);
                assert_close("mean", bins.mean_load() * 4.0, mean.expect("a small budget").mean_total, 1e-12);
            }
        }
        let refused = predict(&Parameters::default(), When::Round(1), Measure::Pre).expect_err("no such loads");
        assert!(refused.to_string().contains("measure post"), "{refused}");
    }
}
