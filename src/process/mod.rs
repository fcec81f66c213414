//! The processes, each defined once in integer arithmetic as a function of (seed, replica, round).
//!
//! [`Process::round`] is the definition. Every backend gives the bits that it gives.

pub mod capped;
mod fast;
pub mod leaky;
mod model;
mod observe;
mod registry;
pub mod repeated;
pub mod start;
mod tail;
pub mod tetris;

pub use model::Model;
pub use observe::{Measure, Observable, ObservableKind, Observation};
pub use registry::{Form, ProcessGrid, ProcessSpec};
pub use tail::TailBins;

use crate::profile;
use crate::rng::Draws;
use crate::rng::bounded::Packing;
use crate::rng::thresholds::Thresholds;
use crate::run::Schedule;
use crate::stats::{Flow, Record};
use start::Start;
use std::fmt;
use std::ops::Range;

/// Most bins that are simulated one by one.
pub const MAX_BINS: u64 = 1 << 31;

/// A process: a Markov chain on numbers of balls, driven by counter-based draws.
///
/// Its **state** is [`words`](Self::words) numbers of balls: the loads of the bins, and behind them the balls that are
/// elsewhere, if the process has such. The balls of a replica are their sum.
pub trait Process: fmt::Debug + Send + Sync {
    /// Number of bins, n.
    fn bins(&self) -> u32;

    /// Words of the state, n at least.
    fn words(&self) -> usize {
        self.bins() as usize
    }

    /// Writes the initial state of `replica`.
    fn start(&self, seed: u64, replica: u32, state: &mut [u32]);

    /// Performs one round on `state` and shows every bin to `observation`, if there is one.
    fn round(&self, draws: &Draws, state: &mut [u32], observation: Option<&mut Observation<'_>>) -> Flow;

    /// Expected balls thrown in one round of one replica.
    fn expected_balls(&self) -> f64;

    /// Work of one round of one replica, for sizing what is done at once: its balls, or its bins where these are more.
    fn round_work(&self) -> f64 {
        self.expected_balls().max(f64::from(self.bins()))
    }

    /// The fast CPU path; the plain one where there is none.
    fn runner(&self) -> Box<dyn Runner + '_>;

    /// What the GPU needs to know.
    fn kernel(&self) -> Kernel<'_>;

    /// The process as rare max loads need it ([`crate::tail`]), if it can be conditioned on them bin by bin.
    fn tail(&self) -> Option<&dyn TailBins> {
        None
    }
}

/// A process on the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// The WGSL fragments of the process: `throw_unit` and `serve`, see `shaders/leaky.wgsl`.
    pub sources: &'static [&'static str],
    /// Law of the number of balls that arrive in a round.
    pub arrivals: &'a Thresholds,
    /// Whether the balls that leave their bins are thrown again, beside those that arrive.
    pub rethrows: bool,
    /// How the bins that the balls sample are drawn.
    pub packing: Packing,
    /// The balls that wait for a place in a bin, if there are such.
    pub pool: Option<Pool>,
    /// Whether every replica starts without a ball, which saves making and moving the loads.
    pub starts_empty: bool,
}

/// Balls that wait for a place, oldest first: the words of the state behind the loads are the numbers of balls by age, of
/// ages 1, 2, ..; they are the first further number, and their waiting times the first further histogram. Such a process
/// brings its own `throw_all` (`shaders/capped.wgsl`), for one workgroup a replica.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Ages that are told apart.
    pub ages: u32,
    /// Balls that a bin holds at most.
    pub places: u32,
    /// Balls that may wait at once, to size the work of a round by.
    pub expected: u32,
}

impl Kernel<'_> {
    /// Words of a replica's state.
    #[must_use]
    pub fn words(&self) -> usize {
        self.packing.bins as usize + self.pool.map_or(0, |pool| pool.ages as usize)
    }

    /// Most balls that are thrown in a round; with a pool, as many as are expected.
    #[must_use]
    pub fn most_balls(&self) -> u32 {
        let again = if self.rethrows { self.packing.bins } else { 0 };
        self.arrivals.last() + again + self.pool.map_or(0, |pool| pool.expected)
    }
}

/// Runs many rounds of one replica at a time; owns whatever scratch memory that takes.
pub trait Runner: Send {
    /// Advances `state` through `rounds` (counted from 0), adding flow and sampled rounds to `record`.
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        state: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    );
}

/// The plain runner: one call of [`Process::round`] a round.
#[derive(Debug)]
pub struct Reference<'a>(pub &'a dyn Process);

impl Runner for Reference<'_> {
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        state: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    ) {
        for round in rounds {
            let draws = Draws::new(seed, replica, round);
            if !schedule.samples(round) {
                record.flow.add(self.0.round(&draws, state, None));
                continue;
            }
            let mut seen = Observation {
                measure: schedule.measure,
                max_load: 0,
                total_load: 0,
                empty_bins: 0,
                loads: schedule.samples_loads(round).then_some(&mut record.load_per_bin),
                further: &mut record.further,
            };
            let flow = self.0.round(&draws, state, Some(&mut seen));
            let (max_load, total_load, empty_bins) = (seen.max_load, seen.total_load, seen.empty_bins);
            record.flow.add(flow);
            record.sample(max_load, total_load, empty_bins);
        }
    }
}

/// Parameters that do not define a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A number outside its range.
    #[error("{name} = {value} is not allowed ({reason}); {remedy}")]
    OutOfRange {
        /// The parameter as the user knows it.
        name: &'static str,
        /// What was given.
        value: String,
        /// Why it is refused.
        reason: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// An initial state that could not be understood or read.
    #[error("start = {start}: {reason}; {remedy}")]
    Start {
        /// What was given.
        start: String,
        /// Why it is refused.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// Checks a number of bins that are to be simulated one by one.
fn single_bins(n: u64) -> Result<u32, ParameterError> {
    let refuse = |reason, remedy| Err(ParameterError::OutOfRange { name: "n", value: n.to_string(), reason, remedy });
    match u32::try_from(n) {
        Ok(0) => refuse("there must be a bin", "use n >= 1"),
        Ok(bins) if n <= MAX_BINS => Ok(bins),
        _ => refuse("bins are simulated one by one", "use n <= 2^31, or `leakybins run` with --backend profile"),
    }
}

/// Checks a number of bins of a profile.
fn profile_bins(n: u64) -> Result<u64, ParameterError> {
    if (1..=profile::MAX_BINS).contains(&n) {
        return Ok(n);
    }
    let (reason, remedy) = ("profiles have from 1 to 10^15 bins", "use 1 <= n <= 10^15");
    Err(ParameterError::OutOfRange { name: "n", value: n.to_string(), reason, remedy })
}

/// Whether profiles are the cheaper form of one-choice throws, or of more choices, on any machine: see the README for
/// the costs.
///
/// From 2^22 bins on a round on a profile takes less time than one bin by bin, on a GPU, too. Exceptions are a drift
/// of all bins together so small that loads spread over thousands of levels (`few_levels` says whether they do not),
/// and loads from a file, which may be as many as bins. Beyond 2^31 bins there is no other form.
fn prefers_profile(n: u64, few_levels: bool, start: &Start) -> bool {
    /// Bins from which profiles are preferred.
    const MANY_BINS: u64 = 1 << 22;
    (n >= MANY_BINS && few_levels && !matches!(start, Start::File(_))) || n > MAX_BINS
}

/// Least drift of all bins together, in balls a round, for which the loads of one choice are few.
const LEAST_DRIFT: f64 = (1 << 10) as f64;
