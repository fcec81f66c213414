//! Rare max loads: P(max load >= k) at levels that no plain run would ever see, in the stationary state or from a start.
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
//! For d >= 2 nearly all entrances to any level come from the plain states at once, for loads that build up slowly from
//! the stage beneath: the same formula serves both. A level between two stages is counted along the excursions of the
//! lower one; a level that more than a tenth of the rounds reach is counted along the plain chain.
//!
//! An entrance is made without knowing h ([`TailChain::force`](crate::profile::TailChain::force)): a state x is chosen in
//! proportion to its weight times the expected number of bins that reach the level, one bin is made to reach it, the rest
//! of the round follows its law given that, and the result is weighted by 1 / (bins that reached it). This is exactly
//! unbiased for every law of arrivals.
//!
//! # One choice
//! With d = 1 a bin is a Markov chain by itself. Stages climb on one bin alone, at some ten nanoseconds a round, and give
//! the mean number m of bins at the level. P(M >= k) is m less what several bins at once add to it: m + E[1(N >= 1) - N],
//! N bins being there. The second part is of the order of m^2 / 2 and is taken from a plain chain of all bins, for control
//! exp(-m) of it (a control variate: any factor is unbiased, and this one is the best where bins are nearly independent).
//! Balls of different bins are negatively associated (Joag-Dev and Proschan 1983), and so are the bins: where m is below
//! 1e-4 the second part is left out, is at most m^2 / 2, and the interval reaches down as far.
//!
//! # From a start
//! P(M >= k) at a round, or for the largest max load of some rounds, is the same with the rounds as a part of the state:
//! plain paths from the start in the place of the chain, entrances at each of their rounds, and excursions that end at the
//! horizon at the latest. Within a horizon a path that has reached the level is in A until the end; what it does after it
//! has left the level again hardly matters and is followed by chance, as heavy as it is rare. Some moments are preferred
//! for entrances, and weighted for that. Where a few rounds lead from an unusual start to a level, the way there may begin
//! with plain rounds that are rare themselves: islands are then skewed, and many are needed.
//!
//! # Error
//! An **island** is one independent run of the whole scheme, with plain chains of its own; it is a function of the seed
//! and its number. Islands are averaged, and the error is their t interval. Each level comes with diagnostics of what it
//! rests on and with [`Doubt`]s where the interval cannot be trusted. The burn-in of the plain chain starts from the mean
//! field, where balls are conserved from as many, and lasts five autocorrelation times.
//!
//! It runs on the CPU. A round on a profile takes microseconds whatever n, in double precision and with branches that
//! differ from one state to the next: nothing that a GPU does better.
//!
//! The staged estimate goes back to the fixed-effort splitting of Garvels (2000) and L'Ecuyer, Demers and Tuffin (2007);
//! to force an entrance and to weight it is the forced collision of particle transport; what is followed by chance is
//! the Russian roulette of the same field.

mod chain;
mod estimate;
mod island;
mod journal;
mod one_bin;
mod pilot;
mod plain;
mod question;
pub mod report;
mod scheme;
mod share;
mod sources;

pub use estimate::{Doubt, Estimate, Method};
pub use journal::{Header, replay, run_journaled, verify};
pub use question::{MAX_ROUNDS, Question};
pub use scheme::Findings;
pub use share::{Seen, Share};

use crate::backend::{BackendError, Control, StreamKind};
use crate::journal::JournalError;
use crate::process::{ParameterError, ProcessSpec};
use crate::run::stopping;
use crate::stats::interval::{Confidence, IntervalError};
use estimate::Sums;
use rayon::prelude::*;
use scheme::Scheme;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Version of everything that fixes the numbers of a result beside
/// [`PROFILE_STREAM_VERSION`](crate::profile::PROFILE_STREAM_VERSION): the pilot, the stages, the order of draws; for single
/// bins also their starts and arrival tables, so that a new [`STREAM_VERSION`](crate::rng::STREAM_VERSION) raises this one.
pub const TAIL_VERSION: u32 = 2;

/// Fewest islands, those at the first look at the error.
pub const FEWEST_ISLANDS: u64 = 32;
/// Most islands: their numbers have 32 bits, and the last is the pilot.
pub const MAX_ISLANDS: u64 = u32::MAX as u64;
/// Highest level.
pub const MAX_LEVEL: u64 = 1 << 20;

/// What the states of a chain are where nobody says it: profiles, unless `process` can be made to reach a level bin by bin
/// only.
#[must_use]
pub fn default_states(process: &ProcessSpec) -> StreamKind {
    let on_profiles = process.build_profile().is_ok_and(|chain| chain.tail().is_some());
    let bin_by_bin = || process.build().is_ok_and(|process| process.tail().is_some());
    if !on_profiles && bin_by_bin() { StreamKind::Bins } else { StreamKind::Profile }
}

/// What is asked: all that fixes the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The process; of its start only the number of balls matters in the stationary state, and where that changes not even
    /// this.
    #[serde(flatten)]
    pub process: ProcessSpec,
    /// What a state of the chain is: how many bins have each load, or the load of each; see [`default_states`].
    pub states: StreamKind,
    /// When the levels are to be reached.
    pub question: Question,
    /// Seed of all randomness.
    pub seed: u64,
    /// Levels k of P(max load >= k), in balls at the end of a round; ascending.
    pub levels: Vec<u64>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Half the width of each interval over its estimate at which the run ends, if no level is in doubt then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rel_err: Option<f64>,
    /// Most islands.
    pub max_islands: u64,
    /// Seconds after which no look is begun that would not end in time; there is one look in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// Not a round.
    #[error("{0} is not allowed (rounds are counted from 1); use 1 to 2^40 rounds")]
    Rounds(Question),
    /// Loads that grow for ever.
    #[error(
        "as many balls arrive as leave: there is no stationary state; use lambda < 1, or ask for a \
         round (--at-round) or a horizon (--within)"
    )]
    NotStationary,
    /// A process that cannot be made to reach a level.
    #[error(
        "the process {0} cannot be conditioned on rare max loads (it has no form for that, on profiles or bin by bin); \
         use `leakybins run` with many --replicas"
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
    /// A plain chain that would take for ever.
    #[error(
        "the stationary state is forgotten in some {rounds:.0e} rounds only, too many to wait for; use a smaller lambda, or \
         ask for a round (--at-round) or a horizon (--within)"
    )]
    Endless {
        /// Autocorrelation time, in rounds.
        rounds: f64,
    },
    /// Nothing ever gets there, or with a probability that no `f64` holds.
    #[error("a max load of {level} cannot be reached, or with a probability too small for an f64; use lower levels")]
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
    /// The journal is damaged, of another run, or cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
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
    /// It has not ended: other islands are still to be computed, or in other journals.
    Incomplete,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
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
    /// Time of all islands and the pilot; `None` of a journal, whose lines have it.
    pub elapsed: Option<Duration>,
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
        match self.question.horizon() {
            Some(1..=MAX_ROUNDS) => return Ok(()),
            Some(_) => return Err(TailError::Rounds(self.question)),
            None => {}
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
    let outcome = climb(spec, &scheme.findings(), spec.confidence, |numbers| {
        let islands = numbers.into_par_iter().map(|number| scheme.island(number as u32, control));
        Ok((islands.collect::<Result<_, _>>()?, begun.elapsed()))
    })?;
    Ok(Outcome { elapsed: Some(begun.elapsed()), ..outcome })
}

/// Estimates from the islands of these numbers that `next` gives, with the time spent up to there, until a rule ends it
/// or there are as many as allowed. Rules are looked at as long as no island is missing: they are about the first ones,
/// and about intervals of the confidence of `spec`; the estimates have `confidence`.
fn climb(
    spec: &Spec,
    findings: &Findings,
    confidence: Confidence,
    mut next: impl FnMut(Range<u64>) -> Result<(Vec<Share>, Duration), TailError>,
) -> Result<Outcome, TailError> {
    let mut sums = Sums::new(&spec.levels, findings);
    let looks = stopping::looks().take_while(|_| spec.rel_err.or(spec.max_time).is_some());
    let mut looks = looks.filter(|look| *look < spec.max_islands).chain([spec.max_islands]).peekable();
    let mut done = 0;
    let reason = loop {
        let Some(look) = looks.next() else {
            break if sums.islands() == done { Reason::MaxIslands } else { Reason::Incomplete };
        };
        let (islands, elapsed) = next(done..look)?;
        islands.into_iter().for_each(|island| sums.add(island));
        done = look;
        if sums.islands() < done {
            continue;
        }
        if spec.rel_err.is_some_and(|wanted| sums.estimates(spec.confidence).iter().all(|of| of.is_within(wanted))) {
            break Reason::RelErr;
        }
        let growth = looks.peek().map(|next| *next as f64 / done as f64);
        if growth.zip(spec.max_time).is_some_and(|(growth, limit)| elapsed.as_secs_f64() * growth > limit) {
            break Reason::MaxTime;
        }
    };
    Ok(Outcome {
        levels: sums.estimates(confidence),
        stages: findings.stages.clone(),
        islands: sums.islands(),
        rounds: sums.rounds(),
        reason,
        elapsed: None,
    })
}
