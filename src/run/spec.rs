//! The specification of a run: everything that fixes its result, and nothing else.

use super::stopping::{self, Stopping, StoppingError};
use crate::backend::{Job, ProfileJob, Work};
use crate::process::{Form, Measure, ProcessSpec};
use crate::rng::MAX_ROUNDS;
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// Most replicas of a run: the replica is one 32-bit counter word.
pub const MAX_REPLICAS: u64 = 1 << 32;

/// Which rounds are sampled, and how. Rounds are counted from 0 here; a user's round t is index t - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Rounds of each replica.
    pub rounds: u64,
    /// Rounds before the first that may be sampled.
    pub burn_in: u64,
    /// Every how manieth round after the burn-in is sampled: `burn_in + every`, `burn_in + 2 every`, ..
    pub every: u64,
    /// Every how manieth sampled round adds its full load histogram; 0: none does.
    pub loads_every: u64,
    /// When in a round the loads are observed.
    pub measure: Measure,
}

impl Schedule {
    /// Whether the round with this index is sampled.
    #[inline]
    #[must_use]
    pub fn samples(&self, round: u64) -> bool {
        round >= self.burn_in && (round + 1 - self.burn_in).is_multiple_of(self.every)
    }

    /// Whether the round with this index adds its load histogram.
    #[inline]
    #[must_use]
    pub fn samples_loads(&self, round: u64) -> bool {
        self.loads_every > 0
            && self.samples(round)
            && ((round + 1 - self.burn_in) / self.every).is_multiple_of(self.loads_every)
    }

    /// Sampled rounds of each replica.
    #[must_use]
    pub fn samples_per_replica(&self) -> u64 {
        (self.rounds - self.burn_in) / self.every
    }

    /// Sampled rounds of each replica that add their load histogram.
    #[must_use]
    pub fn load_samples_per_replica(&self) -> u64 {
        self.samples_per_replica().checked_div(self.loads_every).unwrap_or(0)
    }

    fn validate(&self) -> Result<(), SpecError> {
        if !(1..=MAX_ROUNDS).contains(&self.rounds) {
            return Err(SpecError::Rounds(self.rounds));
        }
        if self.burn_in >= self.rounds {
            return Err(SpecError::BurnIn { burn_in: self.burn_in, rounds: self.rounds });
        }
        if self.every == 0 || self.every > self.rounds - self.burn_in {
            return Err(SpecError::Every { every: self.every, left: self.rounds - self.burn_in });
        }
        Ok(())
    }
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The process and its parameters.
    #[serde(flatten)]
    pub process: ProcessSpec,
    /// Seed of all randomness.
    pub seed: u64,
    /// Independent replicas, numbered from 0.
    pub replicas: u64,
    /// Rounds, burn-in and sampling.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Rules that may end the run before all replicas are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
}

/// A specification that cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No round, or too many.
    #[error("rounds = {0} is not allowed (rounds are counted in 48 bits); use 1 <= rounds <= 2^48")]
    Rounds(u64),
    /// Nothing left after the burn-in.
    #[error(
        "burn-in = {burn_in} leaves nothing of {rounds} rounds to sample; use a burn-in below the number of rounds"
    )]
    BurnIn {
        /// Rounds of burn-in.
        burn_in: u64,
        /// Rounds in all.
        rounds: u64,
    },
    /// The start is not forgotten in time.
    #[error(
        "the pilot found no burn-in below rounds = {rounds}: the max load or the total load from {starts} still differ \
         after {pilot_rounds} rounds; use more --rounds, a start nearer to the stationary state, or a number for --burn-in"
    )]
    StartShows {
        /// Rounds in all.
        rounds: u64,
        /// The starts compared.
        starts: String,
        /// Rounds of the pilot.
        pilot_rounds: u64,
    },
    /// More bins than the pilot can simulate.
    #[error(
        "the pilot of burn-in = auto simulates single bins, and n = {0} is too large for that (2^31 at most); use a \
         number for --burn-in (one found for fewer bins will do), or --start mean-field --burn-in 0"
    )]
    PilotBins(u64),
    /// More balls than the pilot can put into one bin.
    #[error(
        "the pilot of burn-in = auto starts with all balls in one bin, and {0} are too many for that (2^31 at most); use \
         a number for --burn-in"
    )]
    PilotBalls(u64),
    /// No round would be sampled.
    #[error("every = {every} samples none of the {left} rounds after the burn-in; use 1 <= every <= rounds - burn-in")]
    Every {
        /// Sampling interval.
        every: u64,
        /// Rounds after the burn-in.
        left: u64,
    },
    /// No loads to observe there.
    #[error(
        "measure = pre is not allowed (a round of {0} begins with its deletions, and is observed at its end); use post"
    )]
    Measure(&'static str),
    /// A rule that cannot be followed.
    #[error(transparent)]
    Stopping(#[from] StoppingError),
    /// No replica, or too many.
    #[error("replicas = {0} is not allowed (a replica is a 32-bit number); use 1 <= replicas <= 2^32")]
    Replicas(u64),
}

/// Most replicas of a block.
const BLOCK_REPLICAS: u64 = 16_384;
/// Work of a block, in balls (or bins passed, where these are more), over all its rounds: a minute or two of two CPU
/// cores, seconds of a GPU.
const BLOCK_WORK: f64 = (1u64 << 36) as f64;
/// Yet a block has this part of the replicas, and so many of them: they are what threads and GPUs share.
const BLOCK_PART: u64 = 16;
const BLOCK_FEWEST: RangeInclusive<u64> = 64..=1024;
/// Loads of a block stay within this number of bins where a single replica does (256 MiB of loads).
const BLOCK_BINS: u64 = 1 << 26;

impl Spec {
    /// Checks all that does not belong to the process.
    ///
    /// # Errors
    /// [`SpecError`] says what is refused, why, and what to do.
    pub fn validate(&self) -> Result<(), SpecError> {
        if !(1..=MAX_REPLICAS).contains(&self.replicas) {
            return Err(SpecError::Replicas(self.replicas));
        }
        if let Some(stopping) = &self.stopping {
            stopping.validate()?;
        }
        if self.process.measured(self.schedule.measure).is_none() {
            return Err(SpecError::Measure(self.process.name()));
        }
        self.schedule.validate()
    }

    /// What a backend is asked to do of the run of `process`, which this specifies. A profile has no loads to keep.
    #[must_use]
    pub fn work<'a>(&self, process: &'a Form, keep_loads: bool) -> Work<'a> {
        let Self { seed, replicas, schedule, .. } = *self;
        match process {
            Form::Bins(process) => Work::Bins(Job { process: &**process, seed, schedule, keep_loads }),
            Form::Profile(process) => Work::Profile(ProfileJob { process: &**process, seed, replicas, schedule }),
        }
    }

    /// The blocks of replicas that the run of `process`, which this specifies, is divided into. They follow from the
    /// specification and the form of the process alone, so that a block means the same wherever it is computed. With rules
    /// for stopping a block ends at each look.
    pub fn blocks(&self, process: &Form) -> impl Iterator<Item = Range<u64>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let block = (start < self.replicas).then(|| self.block_with(process, start))?;
            start = block.end;
            Some(block)
        })
    }

    /// The block that `replica` is in.
    #[must_use]
    pub fn block_with(&self, process: &Form, replica: u64) -> Range<u64> {
        let work = process.round_work() * self.schedule.rounds as f64;
        let fewest = (self.replicas / BLOCK_PART).clamp(*BLOCK_FEWEST.start(), *BLOCK_FEWEST.end());
        let size = ((BLOCK_WORK / work) as u64).max(fewest).min(BLOCK_BINS / process.loads()).clamp(1, BLOCK_REPLICAS);
        let looks = || self.stopping.iter().flat_map(|_| stopping::looks());
        let start = looks().take_while(|&look| look <= replica).last().unwrap_or(0).max(replica / size * size);
        let look = looks().find(|&look| look > replica).unwrap_or(u64::MAX);
        start..((replica / size + 1) * size).min(look).min(self.replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StreamKind;
    use crate::process::leaky::Parameters;

    #[test]
    fn blocks_take_a_minute_but_keep_devices_busy() {
        let size = |stream, n, rounds, replicas| {
            let process = ProcessSpec::Leaky(Parameters { n, ..Parameters::default() });
            let schedule = Schedule { rounds, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
            let built = process.build_for(stream).expect("valid parameters");
            let spec = Spec { process, seed: 0, replicas, schedule, stopping: None };
            spec.blocks(&built).next().map(|block| block.end)
        };
        let (bins, profile) = (StreamKind::Bins, StreamKind::Profile);
        // Short rounds: as many replicas as there may be. Longer ones: 2^36 balls. Still longer ones: enough replicas.
        assert_eq!(size(bins, 1024, 2000, 1 << 20), Some(16_384));
        assert_eq!(size(bins, 1024, 1 << 15, 1 << 20), Some(1 << 11));
        assert_eq!(size(bins, 1024, 1 << 30, 1 << 20), Some(1024));
        assert_eq!(size(bins, 1024, 1 << 30, 4096), Some(256));
        assert_eq!(size(bins, 1024, 1 << 30, 256), Some(64));
        // As many loads as the memory should hold at once.
        assert_eq!(size(bins, 1 << 22, 1 << 20, 256), Some(16));
        assert_eq!(size(bins, 1 << 27, 10, 256), Some(1));
        // A profile takes the time of some balls and the memory of none, whatever n.
        assert_eq!(size(profile, 1 << 40, 1000, 1 << 20), Some(6871));
        assert_eq!(size(profile, 1 << 40, 1 << 30, 256), Some(64));
    }

    #[test]
    fn sampling_starts_one_interval_after_the_burn_in() {
        let s = Schedule { rounds: 20, burn_in: 5, every: 4, loads_every: 2, measure: Measure::Post };
        assert_eq!((0..20).filter(|&r| s.samples(r)).collect::<Vec<_>>(), [8, 12, 16]);
        assert_eq!((0..20).filter(|&r| s.samples_loads(r)).collect::<Vec<_>>(), [12]);
        assert_eq!((s.samples_per_replica(), s.load_samples_per_replica()), (3, 1));
        assert_eq!(Schedule { loads_every: 0, ..s }.load_samples_per_replica(), 0);
    }

    #[test]
    fn blocks_tile_the_replicas() {
        let schedule = Schedule { rounds: 1, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
        let (bins, profile) = (StreamKind::Bins, StreamKind::Profile);
        for (replicas, n, rounds, stream) in [
            (1, 1, 1, bins),
            (16_384, 64, 1, bins),
            (16_385, 64, 1 << 16, bins),
            (100_000, 1024, 1 << 20, bins),
            (7, 30_000_000, 1, bins),
            (100_000, 1_000_000_000_000_000, 1, profile),
        ] {
            for stopping in [None, Some(Stopping::default())] {
                let process = ProcessSpec::Leaky(Parameters { n, ..Parameters::default() });
                let form = process.build_for(stream).expect("valid parameters");
                let spec = Spec { process, seed: 0, replicas, schedule: Schedule { rounds, ..schedule }, stopping };
                let blocks: Vec<_> = spec.blocks(&form).collect();
                assert_eq!((blocks[0].start, blocks.last().map(|b| b.end)), (0, Some(replicas)));
                assert!(blocks.windows(2).all(|w| w[0].end == w[1].start));
                for block in &blocks {
                    let inside = [block.start, block.start.midpoint(block.end), block.end - 1];
                    assert_eq!(inside.map(|replica| spec.block_with(&form, replica)), [(); 3].map(|()| block.clone()));
                }
                let ends_at = |look| blocks.iter().any(|block| block.end == look);
                assert!(stopping.is_none() || stopping::looks().take_while(|&look| look <= replicas).all(ends_at));
            }
        }
    }
}
