//! Rare max loads: P(max load >= k) in the stationary state, at levels that no plain run would ever see.
//!
//! # Method
//! Let A be the states whose max load is at least a level, and h(x) the probability to be in A after one round from x.
//! In the stationary state the probability of A is the rate at which the chain enters it times the mean time that it then
//! stays, exactly:
//!
//! `pi(A) = (sum over x outside of A of pi(x) h(x)) * (mean rounds from an entrance until A is left)`
//!
//! with entrances drawn in proportion to `pi(x) h(x)`. Averaging h over the states of a plain run is not enough: it leaves
//! out both the time spent in A and the states outside of A that are themselves too rare to be seen. Levels are therefore
//! climbed in **stages**. The states of a plain chain stand for the stationary law below the first stage; the excursions
//! of stage i, weighted, for the law between stages i and i + 1; and each stage is entered from all states below it.
//! For d >= 2 nearly all entrances to any level come from the plain states at once, for d = 1 from the stage beneath: the
//! same formula serves both. A level between two stages is counted along the excursions of the lower one; a level that
//! more than a tenth of the rounds reach is counted along the plain chain.
//!
//! An entrance is made without knowing h ([`TailChain::force`]): a state x is chosen in proportion to its weight times the
//! expected number of bins that reach the level, one bin is made to reach it, the rest of the round follows its law given
//! that, and the result is weighted by 1 / (bins that reached it). This is exactly unbiased for every law of arrivals.
//!
//! # Error
//! An **island** is one independent run of the whole scheme, with a plain chain of its own; it is a function of the seed
//! and its number. Islands are averaged, and the error is their t interval. Each level comes with diagnostics of what it
//! rests on and with [`Doubt`]s where the interval cannot be trusted. The burn-in of the plain chain starts from the mean
//! field, where balls are conserved from as many, and lasts five autocorrelation times.
//!
//! The staged estimate goes back to the fixed-effort splitting of Garvels (2000) and L'Ecuyer, Demers and Tuffin (2007);
//! to force an entrance and to weight it is the forced collision of particle transport.

mod chain;
mod estimate;
mod island;
mod one_bin;
mod pilot;
pub mod report;
mod scheme;
mod share;
mod sources;

pub use estimate::{Doubt, Estimate, Method};

use crate::backend::{BackendError, Control, StreamKind};
use crate::process::{ParameterError, ProcessSpec};
use crate::run::stopping;
use crate::stats::interval::{Confidence, IntervalError};
use estimate::Sums;
use rayon::prelude::*;
use scheme::Scheme;
use std::time::{Duration, Instant};

/// Version of everything that fixes the numbers of a result beside
/// [`PROFILE_STREAM_VERSION`](crate::profile::PROFILE_STREAM_VERSION): the pilot, the stages, the order of draws.
pub const TAIL_VERSION: u32 = 2;

/// Fewest islands, those at the first look at the error.
pub const FEWEST_ISLANDS: u64 = 32;
/// Most islands: their numbers have 32 bits, and the last is the pilot.
pub const MAX_ISLANDS: u64 = u32::MAX as u64;
/// Highest level.
pub const MAX_LEVEL: u64 = 1 << 20;

/// What is asked: all that fixes the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The process; of its start only the number of balls matters, and where that changes not even this.
    pub process: ProcessSpec,
    /// What a state of the chain is; `None` for profiles where the process has such a form for tails, else single bins.
    pub states: Option<StreamKind>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Levels k of P(max load >= k), in balls at the end of a round; ascending.
    pub levels: Vec<u64>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Half the width of each interval over its estimate at which the run ends, if no level is in doubt then.
    pub rel_err: Option<f64>,
    /// Most islands.
    pub max_islands: u64,
    /// Seconds after which no look is begun that would not end in time; there is one look in any case.
    pub max_time: Option<f64>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// No level, or levels that do not ascend or lie outside the range.
    #[error(
        "the levels {0} are not allowed (each needs a max load from 1 to {MAX_LEVEL}, ascending); use e.g. --levels \
         8..40"
    )]
    Levels(String),
    /// Not a relative error.
    #[error("rel-err = {0} is not allowed (it is half the width of an interval over the estimate); use e.g. 0.02")]
    RelErr(f64),
    /// Too few or too many islands.
    #[error(
        "max-islands = {0} is not allowed (islands are the independent values that an error is made of); use \
         {FEWEST_ISLANDS} to {MAX_ISLANDS}"
    )]
    Islands(u64),
    /// Not a time.
    #[error("max-time = {0} s is not allowed; use a positive number of seconds, or 10m, 2h")]
    MaxTime(f64),
    /// Loads that grow for ever.
    #[error("as many balls arrive as leave: there is no stationary state; use lambda < 1")]
    NotStationary,
    /// A process that cannot be made to reach a level.
    #[error(
        "the process {0} cannot be conditioned on rare max loads (it has no form for that, on profiles or bin by bin); use `leakybins run` \
         with many --replicas"
    )]
    Unsupported(&'static str),
    /// A process that can be made to reach a level with other states than those asked for.
    #[error(
        "the process {process} cannot be conditioned on rare max loads with --states {states} (it has no such form); \
         leave --states out"
    )]
    UnsupportedStates {
        /// Its name.
        process: &'static str,
        /// What was asked for.
        states: StreamKind,
    },
    /// Nothing ever gets there, or with a probability that no `f64` holds.
    #[error("a max load of {level} cannot be reached, or with a probability below 1e-290; use lower levels")]
    OutOfReach {
        /// The lowest stage without an entrance.
        level: u64,
    },
    /// Refused parameters.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A refused confidence.
    #[error(transparent)]
    Confidence(#[from] IntervalError),
    /// Stopped.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Every interval is as narrow as wanted, and no level in doubt.
    RelErr,
    /// There are as many islands as allowed.
    MaxIslands,
    /// The time is used up, or would be before the next look.
    MaxTime,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What a state of the chain was.
    pub states: StreamKind,
    /// The estimates, by level.
    pub levels: Vec<Estimate>,
    /// Levels of the stages, and the excursions of each in an island.
    pub stages: Vec<(u64, u64)>,
    /// Independent islands.
    pub islands: u64,
    /// Rounds computed in all islands, burn-in included.
    pub rounds: u64,
    /// Why it ended.
    pub reason: Reason,
    /// Time of all islands and the pilot.
    pub elapsed: Duration,
}

impl Spec {
    /// Checks all that does not belong to the process.
    ///
    /// # Errors
    /// [`TailError`] says what is refused, why, and what to do.
    pub fn validate(&self) -> Result<(), TailError> {
        let Self { levels, rel_err, max_islands, max_time, .. } = self;
        let ascending = levels.windows(2).all(|pair| pair[0] < pair[1]);
        if levels.is_empty() || !ascending || !levels.iter().all(|level| (1..=MAX_LEVEL).contains(level)) {
            return Err(TailError::Levels(format!("{levels:?}")));
        }
        if let Some(rel_err) = rel_err.filter(|e| !(e.is_finite() && *e > 0.0)) {
            return Err(TailError::RelErr(rel_err));
        }
        if !(FEWEST_ISLANDS..=MAX_ISLANDS).contains(max_islands) {
            return Err(TailError::Islands(*max_islands));
        }
        if let Some(seconds) = max_time.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(TailError::MaxTime(seconds));
        }
        if self.process.bins() > 0 && self.process.autocorrelation_rounds() == f64::INFINITY {
            return Err(TailError::NotStationary);
        }
        Ok(())
    }

    /// About the rounds in which the process forgets its state: of a bin, or of the whole, whichever is slower.
    ///
    /// The whole serves n balls a round of which n - `balls` find none: a single queue with that drift and a variance of
    /// at most n in a round.
    fn memory(&self) -> f64 {
        let n = self.process.bins() as f64;
        let drift = n - self.process.expected_balls();
        // Where the balls are always the same there is no such queue.
        let whole = if self.process.is_closed() { 0.0 } else { 3.0 * n / (drift * drift) };
        self.process.autocorrelation_rounds().max(whole)
    }
}

/// Estimates all levels.
///
/// # Errors
/// [`TailError`]: a refused specification, a level that cannot be reached, or a cancelled `control`.
pub fn run(spec: &Spec, control: &Control) -> Result<Outcome, TailError> {
    spec.validate()?;
    let begun = Instant::now();
    let scheme = Scheme::find(spec, control)?;
    let mut sums = Sums::new(&spec.levels, &scheme);
    let mut looks = stopping::looks().map(|look| look.min(spec.max_islands)).peekable();
    let reason = loop {
        let look = looks.next().expect("looks have no end");
        let numbers = sums.islands()..look;
        let islands: Vec<_> =
            numbers.into_par_iter().map(|number| scheme.island(number as u32, control)).collect::<Result<_, _>>()?;
        islands.into_iter().for_each(|island| sums.add(island));
        let estimates = sums.estimates(spec.confidence);
        // A level that every round reached has no spread, and needs none.
        let is_good = |level: &Estimate, wanted| {
            level.probability == 1.0 || (level.doubts.is_empty() && level.rel_err.is_some_and(|e| e <= wanted))
        };
        let good = |wanted: f64| estimates.iter().all(|level| is_good(level, wanted));
        if spec.rel_err.is_some_and(good) {
            break Reason::RelErr;
        }
        if look == spec.max_islands {
            break Reason::MaxIslands;
        }
        let next = *looks.peek().expect("looks have no end") as f64 / look as f64;
        if spec.max_time.is_some_and(|limit| begun.elapsed().as_secs_f64() * next > limit) {
            break Reason::MaxTime;
        }
    };
    Ok(Outcome {
        states: scheme.states(),
        levels: sums.estimates(spec.confidence),
        stages: scheme.stages().to_vec(),
        islands: sums.islands(),
        rounds: sums.rounds(),
        reason,
        elapsed: begun.elapsed(),
    })
}
