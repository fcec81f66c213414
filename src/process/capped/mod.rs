//! CAPPED(c, lambda): infinite balanced allocation via finite capacities (Berenbrink, Friedetzky, Hahn, Hintze, Kaaser,
//! Kling, Nagel, ICDCS 2021).
//!
//! One round: new balls arrive, lambda n on average (the paper's number is fixed), and join the **pool** of those that
//! have found no place yet. Every ball of the pool asks one bin, drawn independently and uniformly. Each bin accepts
//! until it holds c balls, older balls first; the others are rejected and stay in the pool. Then every non-empty bin
//! deletes the ball that it accepted first. Loads and pool are observed as they are then, or before the deletions.
//!
//! With c = inf no ball is ever rejected: these are the leaky bins with d = 1, and the same loads for the same seed.
//!
//! # Order
//! The **age** of a ball is the number of times that it has been rejected. Balls are numbered from the oldest to the
//! youngest, and ball i of a round draws as ball i of a round of the leaky bins with d = 1 does. Of the balls of one age
//! only the number that asks a bin matters, since it accepts as many as it has room for: no order within an age, and no
//! order of threads, makes a difference.
//!
//! # Waiting time
//! In rounds, from the arrival of a ball to its deletion. It is known where a bin accepts the ball: its age and the
//! number of balls that it finds in the bin, older ones of the same round included. It is counted in the sampled rounds
//! for the balls accepted then. What a start has beyond c in a bin waits in the pool, and counts as rejected once.
//!
//! # State
//! The loads of the bins, and [`AGES`] numbers of balls in the pool: those that have been rejected 1, 2, .. times, the
//! last one those rejected as often or oftener. For these the age counts as [`AGES`], so that a waiting time of [`AGES`]
//! and more is a lower bound. Loads and pool do not depend on ages and stay exact. The stationary state for lambda < 1
//! has a few dozen ages; as many as [`AGES`] need a start with a thousand balls a bin, or few bins near lambda = 1.

mod capacity;
mod fast;
mod model;
mod profile;

pub use capacity::Capacity;
pub use profile::CappedProfile;

use super::leaky::{self, Arrivals};
use super::start::{Initial, MAX_START_LOAD, Start};
use super::{
    Kernel, Measure, Observable, ObservableKind, Observation, ParameterError, Pool, Process, Runner, single_bins,
};
use crate::grid;
use crate::number;
use crate::rng::bounded::Packing;
use crate::rng::lanes::Lanes;
use crate::rng::thresholds::Thresholds;
use crate::rng::{Domain, Draws};
use crate::stats::Flow;
use crate::theory;
use fast::Fast;
use serde::{Deserialize, Serialize};

/// Ages that are told apart, from 1 on.
pub const AGES: usize = 1024;

/// The observables beside those of all processes: the pool is number 0, the waiting time histogram 0.
pub(super) const OBSERVABLES: &[Observable] = &[
    Observable {
        name: "pool",
        meaning: "balls in the pool at the end of a round",
        unit: "balls",
        kind: ObservableKind::Number,
    },
    Observable {
        name: "waiting_time",
        meaning: "rounds from arrival to deletion of the balls accepted in a round; 1024 and more are lower bounds",
        unit: "rounds",
        kind: ObservableKind::Histogram,
    },
];

/// Parameters of CAPPED(c, lambda), in the paper's letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of bins
    #[arg(long, value_parser = number::count, default_value = "1024")]
    pub n: u64,
    /// Capacity: balls that a bin holds at most, or `inf`
    #[arg(short, long, default_value = "2")]
    pub c: Capacity,
    /// Arrival rate: mean number of new balls a bin and round, in [0, 1]
    #[arg(long, value_parser = number::rate, default_value = "0.95", allow_hyphen_values = true)]
    pub lambda: f64,
    /// Law of the number of arrivals
    #[arg(long, value_enum, default_value = "fixed")]
    pub arrivals: Arrivals,
    /// Initial loads: `empty`, `each:H`, `one-bin:H`, `random:H`, `mean-field` (of loads and pool) or `file:PATH`; what
    /// exceeds c waits in the pool
    #[arg(long, default_value_t)]
    pub start: Start,
}

impl Default for Parameters {
    fn default() -> Self {
        let (start, arrivals) = (Start::Empty, Arrivals::Fixed);
        Self { n: 1024, c: Capacity::Finite(2), lambda: 0.95, arrivals, start }
    }
}

/// Grids of the parameters; see [`crate::grid`].
#[derive(Clone, Debug, clap::Args)]
pub struct Grid {
    /// Numbers of bins
    #[arg(long, value_name = "GRID", default_value = "1024")]
    pub n: grid::Counts,
    /// Capacities
    #[arg(short, long, value_name = "GRID", default_value = "2")]
    pub c: grid::Counts,
    /// Arrival rates
    #[arg(long, value_name = "GRID", default_value = "0.95", allow_hyphen_values = true)]
    pub lambda: grid::Rates,
    /// Law of the number of arrivals
    #[arg(long, value_enum, default_value = "fixed")]
    pub arrivals: Arrivals,
}

impl Grid {
    /// Values of n, c and lambda.
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.n.0.len(), self.c.0.len(), self.lambda.0.len()]
    }

    /// All combinations, by n, then c, then lambda, each from the mean field.
    pub(super) fn points(&self) -> impl Iterator<Item = Parameters> {
        let Self { n, c, lambda, arrivals } = self;
        n.0.iter().flat_map(move |&n| {
            c.0.iter().flat_map(move |&c| {
                let (c, arrivals, start) = (Capacity::Finite(c), *arrivals, Start::MeanField);
                lambda.0.iter().map(move |&lambda| Parameters { n, c, lambda, arrivals, start: start.clone() })
            })
        })
    }
}

impl Parameters {
    /// The leaky bins that these are for c = inf.
    #[must_use]
    pub fn as_leaky(&self) -> leaky::Parameters {
        let Self { n, lambda, arrivals, ref start, .. } = *self;
        leaky::Parameters { n, lambda, d: 1, arrivals, start: start.clone() }
    }

    /// Refuses what no question allows; what n and the start allow depends on the question.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        self.as_leaky().check_lambda_and_d()?;
        match self.c {
            Capacity::Finite(0) => Err(ParameterError::OutOfRange {
                name: "c",
                value: "0".to_owned(),
                reason: "a bin must have a place",
                remedy: "use c >= 1, or inf",
            }),
            Capacity::Finite(c) if c > u64::from(MAX_START_LOAD) => Err(ParameterError::OutOfRange {
                name: "c",
                value: c.to_string(),
                reason: "loads are counted up to 2^31",
                remedy: "use c <= 2^31, or inf",
            }),
            _ => Ok(()),
        }
    }

    /// The places of a bin; more than there are balls where c = inf.
    fn places(&self) -> u32 {
        self.c.finite().map_or(u32::MAX, |c| u32::try_from(c).unwrap_or(u32::MAX))
    }

    /// The initial loads of `bins` bins, before what exceeds c is taken to the pool.
    pub(crate) fn initial(&self, bins: u64) -> Result<Initial, ParameterError> {
        self.start.resolve(bins, || match self.c {
            Capacity::Infinite => theory::leaky::one_bin(&self.as_leaky(), Measure::Post),
            Capacity::Finite(c) => theory::capped::one_bin(c, self.lambda, &self.start),
        })
    }

    /// The pool by age before the first round, beside what exceeds c in the bins: balls that have been rejected 1, 2, ..
    /// times.
    pub(crate) fn initial_pool(&self, bins: u64) -> Result<Vec<u64>, ParameterError> {
        let mut pool = match (&self.start, self.c) {
            (Start::MeanField, Capacity::Finite(c)) => theory::capped::pool_by_age(c, self.lambda, &self.start)?
                .into_iter()
                .take(AGES)
                .map(|of_age| (of_age * bins as f64).round() as u64)
                .collect(),
            _ => Vec::new(),
        };
        pool.resize(AGES, 0);
        Ok(pool)
    }

    /// Most balls that may wait before the first round.
    fn most_waiting(&self, initial: &Initial, pool: &[u64]) -> u64 {
        let places = u64::from(self.places());
        let beyond = |load: u32| u64::from(load).saturating_sub(places);
        let excess = match initial {
            Initial::Same(h) => beyond(*h).saturating_mul(self.n),
            Initial::OneBin(h) | Initial::Random(h) => beyond(*h),
            Initial::Loads(loads) => loads.iter().map(|&load| beyond(load)).sum(),
            Initial::Independent(_) => 0,
        };
        pool.iter().fold(excess, |sum, &balls| sum.saturating_add(balls))
    }
}

/// Most Philox words that the balls of a round may occupy, so that word numbers stay in 32 bits with room.
const MAX_WORDS: u64 = 1 << 31;

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct Capped {
    packing: Packing,
    places: u32,
    arrivals: Thresholds,
    initial: Initial,
    initial_pool: Vec<u32>,
    /// Most balls that wait before the first round.
    waiting: u32,
    expected_balls: f64,
    expected_pool: f64,
}

impl Capped {
    /// Validates `parameters` and builds the arrival table.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = single_bins(parameters.n)?;
        parameters.check()?;
        let packing = Packing::new(bins, 1);
        let arrivals = parameters.arrivals.thresholds(parameters.lambda, bins);
        let initial = parameters.initial(parameters.n)?;
        let pool = parameters.initial_pool(parameters.n)?;
        let waiting = parameters.most_waiting(&initial, &pool);
        let balls = waiting.saturating_add(arrivals.last().into());
        let expected_balls = parameters.competing();
        // Word numbers have room for four times as many. Whatever the start, the pool leaves its expectation by about the
        // square root of all balls that have arrived, and at lambda = 1 a pool that begins to grow is below 33 n for as
        // long as a run may be: for an overflow some 2^60 balls must arrive.
        if packing.words(expected_balls as u64) > MAX_WORDS / 2 {
            return Err(ParameterError::OutOfRange {
                name: "n",
                value: bins.to_string(),
                reason: "more balls are expected to compete in a round than 2^30 random words are enough for",
                remedy: "use fewer bins, a larger c, a smaller lambda, or `leakybins run` with --backend profile",
            });
        }
        if balls >= 1 << 31 || packing.words(balls) > MAX_WORDS / 2 {
            return Err(ParameterError::Start {
                start: parameters.start.to_string(),
                reason: format!(
                    "{balls} balls may compete in the first round, for which 2^30 random words are too few"
                ),
                remedy: "use a smaller start, fewer bins, or `leakybins run` with --backend profile",
            });
        }
        let initial_pool = pool.into_iter().map(|balls| balls as u32).collect();
        let expected_pool = expected_balls - parameters.lambda * f64::from(bins);
        let places = parameters.places();
        let waiting = waiting as u32;
        Ok(Self { packing, places, arrivals, initial, initial_pool, waiting, expected_balls, expected_pool })
    }

    /// Words of a round in which `balls` balls compete; a ball has no more than one.
    ///
    /// # Panics
    /// Where balls pass their 32-bit numbers, rather than to throw some with the words of others.
    fn words_of(&self, balls: u64) -> u32 {
        let numbered = u32::try_from(balls).is_ok();
        assert!(numbered, "{balls} balls compete in a round, and their numbers have 32 bits; use fewer bins or rounds");
        self.packing.words(balls) as u32
    }
}

impl Process for Capped {
    fn bins(&self) -> u32 {
        self.packing.bins
    }

    fn words(&self) -> usize {
        self.packing.bins as usize + AGES
    }

    fn start(&self, seed: u64, replica: u32, state: &mut [u32]) {
        let (loads, pool) = state.split_at_mut(self.packing.bins as usize);
        self.initial.write(seed, replica, loads);
        pool.copy_from_slice(&self.initial_pool);
        for load in loads {
            pool[0] += load.saturating_sub(self.places);
            *load = self.places.min(*load);
        }
    }

    fn round(&self, draws: &Draws, state: &mut [u32], mut observation: Option<&mut Observation<'_>>) -> Flow {
        let (loads, pool) = state.split_at_mut(self.packing.bins as usize);
        let arrived = self.arrivals.draw(draws.arrivals());
        self.words_of(pool.iter().map(|&balls| u64::from(balls)).sum::<u64>() + u64::from(arrived));
        let mut first = 0;
        for age in (0..=AGES).rev() {
            let balls = if age == 0 { arrived } else { std::mem::take(&mut pool[age - 1]) };
            let mut rejected = 0;
            for ball in first..first + balls {
                self.packing.indices(draws, Domain::Choices, ball, |bin| {
                    let load = &mut loads[bin as usize];
                    if *load < self.places {
                        if let Some(seen) = &mut observation {
                            seen.further.count(0, age as u64 + u64::from(*load), 1);
                        }
                        *load += 1;
                    } else {
                        rejected += 1;
                    }
                });
            }
            pool[age.min(AGES - 1)] += rejected;
            first += balls;
        }
        let mut departed = 0u128;
        for load in loads {
            let pre = *load;
            *load = pre.saturating_sub(1);
            departed += u128::from(pre - *load);
            if let Some(seen) = &mut observation {
                seen.bin(if seen.measure == Measure::Pre { pre } else { *load });
            }
        }
        if let Some(seen) = observation {
            seen.further.number(0, pool.iter().map(|&balls| u64::from(balls)).sum());
        }
        Flow { arrived: arrived.into(), departed }
    }

    fn expected_balls(&self) -> f64 {
        self.expected_balls
    }

    fn runner(&self) -> Box<dyn Runner + '_> {
        Box::new(Fast::new(self, Lanes::best()))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            sources: &[include_str!("../../../shaders/capped.wgsl"), include_str!("../../../shaders/leaky.wgsl")],
            arrivals: &self.arrivals,
            rethrows: false,
            packing: self.packing,
            pool: Some(Pool {
                ages: AGES as u32,
                places: self.places,
                expected: self.waiting.saturating_add((2.0 * self.expected_pool) as u32).min(1 << 30),
            }),
            starts_empty: matches!(self.initial, Initial::Same(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first round would do.
    #[test]
    fn a_pool_that_outgrows_the_words_of_a_round_is_refused() {
        for (n, c, lambda, allowed) in [
            (1 << 30, 1, 0.99, false),
            (1 << 30, 1, 0.25, true),
            (1 << 28, 1, 0.99, false),
            (1 << 27, 1, 0.99, true),
            (1 << 26, 1, 1.0, false),
            (1 << 25, 1, 1.0, true),
        ] {
            let built = Capped::new(&Parameters { n, c: Capacity::Finite(c), lambda, ..Parameters::default() });
            let message = built.err().map_or(String::new(), |error| error.to_string());
            assert_eq!(message.contains("expected to compete"), !allowed, "n {n}, lambda {lambda}: {message}");
        }
    }

    #[test]
    #[should_panic(expected = "4294967296 balls compete")]
    fn the_definition_never_throws_two_balls_with_the_same_words() {
        let process = Capped::new(&Parameters { n: 1, lambda: 0.0, ..Parameters::default() }).expect("valid");
        let mut state = vec![0; process.words()];
        state[1..3].fill(1 << 31);
        process.round(&Draws::new(0, 0, 0), &mut state, None);
    }
}
