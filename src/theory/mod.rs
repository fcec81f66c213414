//! What is known without simulation: exact laws, mean-field laws, small chains. Floating point lives here and in
//! reports only.
//!
//! | question | answer | where |
//! |---|---|---|
//! | one bin, d = 1, stationary or after any round | exact for every n | [`leaky::predict`], [`Transient`] |
//! | one bin, d >= 2 | limit of many bins | [`leaky::predict`], [`Transient`] |
//! | max load of n bins | n independent bins: exact for d = 1 with Poisson arrivals | [`Population`] |
//! | max load of a few bins, any d | exact up to a stated lost mass | [`SmallChain`] |
//! | repeated balls-into-bins | limit of many bins; few bins exactly | [`repeated`] |
//! | Tetris, stationary or after any round | one bin exactly for every n | [`tetris`] |
//! | CAPPED(c, lambda): pool, rejections, waiting time | limit of many bins; few bins exactly | [`capped`] |
//! | the paper's bounds | shapes without constants | [`bounds`] |
//!
//! `lambda` is taken as the exact value of its `f64`; 1 - lambda is then exact too, and everything is computed from it,
//! so that lambda = 1 - 1e-9 is as accurate as lambda = 0.5.

#![warn(clippy::disallowed_methods)]

mod arrivals;
pub mod bounds;
pub mod capped;
mod chain;
pub mod leaky;
mod marginal;
mod mean_field;
mod one_choice;
mod population;
mod prediction;
pub mod repeated;
pub mod report;
mod small_chain;
mod special;
pub mod tetris;
mod transient;

pub use marginal::{Geometric, Marginal};
pub use population::Population;
pub use prediction::{Basis, Expected, Prediction, When};
pub use small_chain::{ChainLaw, SmallChain};
pub use transient::{FLOOR, Transient};

use crate::process::leaky::Parameters;
use crate::process::{Measure, ParameterError, ProcessSpec};

/// Most bins of a prediction: whole numbers are exact in an `f64` up to here.
pub const MAX_BINS: u64 = 1 << 53;

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TheoryError {
    /// The parameters are refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// lambda = 1 in a stationary question.
    #[error("lambda = 1 has no stationary law (the loads grow for ever); use lambda < 1, or ask for a round")]
    NoStationaryLaw,
    /// A question that has no known answer.
    #[error("{question} of {process} is not known to theory; {remedy}")]
    Unknown {
        /// The process.
        process: &'static str,
        /// What was asked for.
        question: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Numbers that are no law.
    #[error("the start law is no law (its numbers sum to {sum}); give probabilities from 0 to 1 that sum to 1")]
    Law {
        /// Sum of the numbers.
        sum: f64,
    },
    /// A file of loads for more bins than a simulation has.
    #[error("a file cannot hold the loads of n = {n} bins; use n < 2^32, or another start")]
    FileBins {
        /// Number of bins.
        n: u64,
    },
    /// A load too large for a dense table.
    #[error("the start file holds a load of {load}, and its law is computed for loads up to {most}; use smaller loads")]
    FileLoad {
        /// Largest load.
        load: u32,
        /// Largest load possible.
        most: u32,
    },
    /// Before the first round nothing has arrived or been deleted.
    #[error("round 0 has no loads before its deletions; measure post, or ask for round 1 or later")]
    NoRound,
    /// Too many states.
    #[error("the chain of n = {n} bins with loads up to {cap} is too large; use fewer bins or smaller loads")]
    ChainSize {
        /// Number of bins.
        n: u64,
        /// Largest load.
        cap: u32,
    },
    /// The start is not among the states.
    #[error("the start has a load of {load}, and the chain ends at {cap}; use a higher cap or a lower start")]
    ChainStart {
        /// Largest load of the start.
        load: u32,
        /// Largest load of the chain.
        cap: u32,
    },
    /// The chain forgets its start too slowly.
    #[error("the chain was not stationary after {rounds} rounds; use fewer bins, a lower cap or a smaller lambda")]
    ChainSlow {
        /// Rounds computed.
        rounds: u64,
    },
}

impl TheoryError {
    /// `measure pre` of a process that has no loads to observe there.
    pub(crate) fn unmeasured(process: &'static str) -> Self {
        let question = "the state before the deletions, with which a round begins,";
        Self::Unknown { process, question, remedy: "measure post" }
    }
}

/// So many rounds, rounded up to two digits.
pub(crate) fn two_digits(rounds: f64) -> u64 {
    let rounds = rounds.ceil() as u64;
    let unit = 10u64.pow(rounds.max(1).ilog10().saturating_sub(1));
    rounds.div_ceil(unit).saturating_mul(unit)
}

/// The stationary laws of a process, where they are known.
#[must_use]
pub fn stationary(process: &ProcessSpec, measure: Measure) -> Option<Prediction> {
    process.predict(When::Stationary, measure).ok()
}

/// What is expected after each of `rounds`, which ascend, where it is known and takes at most `budget` operations.
#[must_use]
pub fn trajectory(process: &ProcessSpec, rounds: &[u64], budget: f64) -> Vec<Option<Expected>> {
    process.trajectory(rounds, budget).unwrap_or_else(|_| vec![None; rounds.len()])
}

/// Checks what every prediction needs.
fn validate(parameters: &Parameters) -> Result<(), TheoryError> {
    check_bins(parameters.n)?;
    Ok(parameters.check_lambda_and_d()?)
}

fn check_bins(n: u64) -> Result<(), TheoryError> {
    if (1..=MAX_BINS).contains(&n) {
        return Ok(());
    }
    let (reason, remedy) = ("bins are counted in 53 bits", "use 1 <= n <= 2^53");
    Err(ParameterError::OutOfRange { name: "n", value: n.to_string(), reason, remedy }.into())
}
