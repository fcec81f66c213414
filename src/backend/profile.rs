//! Runs on profiles: threads over replicas, each replica one profile.
//!
//! The law is that of the other backends, the bits are not, and there is room for
//! [`MAX_BINS`](crate::profile::MAX_BINS) bins.

use super::segments::{Segments, Walker};
use super::{Backend, BackendError, BlockResult, Control, Keeper, StreamKind, Unkept, Work};
use crate::profile::{Level, Profile, ProfileChain, State, Thrower, Watch};
use crate::rng::stream::Stream;
use crate::rng::{Domain, Draws};
use crate::run::Schedule;
use crate::stats::{Record, Tally};
use std::ops::Range;

/// Rounds between two looks at the control: some milliseconds of work.
const ROUNDS_PER_STEP: u64 = 64;
/// Most balls of a run: half the range of a count, for arrivals may exceed one a bin and round.
const MOST_COUNTED: u128 = 1 << 127;

/// The backend on profiles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Profiles;

impl Backend for Profiles {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn stream(&self) -> StreamKind {
        StreamKind::Profile
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let Work::Profile(job) = work else { return Err(self.stream().refuse()) };
        Ok(BlockResult { tally: job.run_kept(block, control, keeper)?, loads: Vec::new() })
    }
}

/// A run on profiles.
#[derive(Clone, Copy, Debug)]
pub struct ProfileJob<'a> {
    /// The process.
    pub process: &'a dyn ProfileChain,
    /// Seed of all randomness.
    pub seed: u64,
    /// Replicas of the whole run, whose counts must fit a tally.
    pub replicas: u64,
    /// Rounds and sampling.
    pub schedule: Schedule,
}

impl ProfileJob<'_> {
    /// Refuses a run whose sums would not fit the 128 bits that a tally has for each.
    ///
    /// The largest are those of the squares of the replicas' sums. Loads are not known before the run: they are looked at
    /// where they are sampled.
    fn check_counts(&self) -> Result<(), BackendError> {
        let (replicas, rounds) = (self.replicas, self.schedule.rounds);
        let (n, samples) = (self.process.bins(), self.schedule.samples_per_replica());
        let balls = u128::from(n).checked_mul(u128::from(rounds) * u128::from(replicas));
        if balls.is_none_or(|balls| balls > MOST_COUNTED) {
            return Err(BackendError::Unsupported(format!(
                "{replicas} replicas of {rounds} rounds with {n} bins throw more balls than are counted (2^127); use \
                 fewer replicas, rounds or bins"
            )));
        }
        let most = self.most_balls();
        if n > most {
            return Err(BackendError::Unsupported(format!(
                "{samples} samples of {n} bins in each of {replicas} replicas are too many for the exact sums of squares \
                 (of 128 bits, which hold {most} bins or balls a sample here); sample less often (--every), or use fewer \
                 replicas or bins"
            )));
        }
        Ok(())
    }

    /// Runs all rounds of the replicas in `block`, which is part of `0..replicas`.
    ///
    /// # Errors
    /// [`BackendError`]; a result is returned only if it conserves balls.
    pub fn run(&self, block: Range<u64>, control: &Control) -> Result<Tally, BackendError> {
        self.run_kept(block, control, &Unkept)
    }

    fn run_kept(&self, block: Range<u64>, control: &Control, keeper: &dyn Keeper) -> Result<Tally, BackendError> {
        self.check_counts()?;
        let segments = Segments { rounds: self.schedule.rounds, step: ROUNDS_PER_STEP, control, keeper };
        segments.block(block, || Worker::new(self))
    }

    /// Balls of the replica that was left in `state`; `None` where these are not levels that ascend, of n bins together,
    /// and as many numbers of balls elsewhere as the process has.
    pub(super) fn balls_of(&self, state: &[u64]) -> Option<u128> {
        let (&levels, rest) = state.split_first()?;
        let (bins, elsewhere) = rest.split_at_checked(usize::try_from(levels).ok()?.checked_mul(2)?)?;
        let (levels, _) = bins.as_chunks::<2>();
        let ascend = levels.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        let n = levels.iter().try_fold(0u64, |n, &[_, bins]| n.checked_add(bins).filter(|_| bins > 0))?;
        let mut worker = Worker::new(self);
        worker.start(0);
        if !ascend || n != self.process.bins() || elsewhere.len() != worker.state.elsewhere.len() {
            return None;
        }
        let in_bins = levels.iter().map(|&[load, bins]| u128::from(load) * u128::from(bins));
        in_bins.chain(elsewhere.iter().copied().map(u128::from)).try_fold(0u128, u128::checked_add)
    }

    /// Largest total load for which the squares of the replicas' sums fit their sum.
    fn most_balls(&self) -> u64 {
        let most = (u128::MAX / u128::from(self.replicas)).isqrt() / u128::from(self.schedule.samples_per_replica());
        most.min(u128::from(u64::MAX)) as u64
    }
}

/// One thread's memory and profile.
struct Worker<'a> {
    job: &'a ProfileJob<'a>,
    most_balls: u64,
    stream: Stream,
    thrower: Thrower,
    state: State,
}

impl<'a> Worker<'a> {
    fn new(job: &'a ProfileJob<'a>) -> Self {
        let stream = Stream::new(&Draws::new(job.seed, 0, 0), Domain::Start);
        let (most_balls, thrower, state) = (job.most_balls(), Thrower::default(), Profile::default().into());
        Self { job, most_balls, stream, thrower, state }
    }
}

impl Walker for Worker<'_> {
    fn start(&mut self, replica: u64) {
        self.stream.restart(&Draws::new(self.job.seed, replica as u32, 0), Domain::Start);
        self.state = self.job.process.start(&mut self.stream, &mut self.thrower);
    }

    fn resume(&mut self, state: &[u64]) {
        let (bins, elsewhere) = state[1..].split_at(2 * state[0] as usize);
        let bins = Profile::new(bins.chunks_exact(2).map(|level| Level { load: level[0], bins: level[1] }));
        self.state = State { bins, elsewhere: elsewhere.to_vec() };
    }

    fn state(&self) -> Vec<u64> {
        let State { bins, elsewhere } = &self.state;
        let levels = bins.levels().iter().flat_map(|level| [level.load, level.bins]);
        std::iter::once(bins.levels().len() as u64).chain(levels).chain(elsewhere.iter().copied()).collect()
    }

    fn balls(&self) -> u128 {
        self.state.balls()
    }

    fn step(&mut self, replica: u64, rounds: Range<u64>, record: &mut Record) -> Result<(), BackendError> {
        let Self { job, most_balls, stream, thrower, state } = self;
        // Apart from the record, which the loads go to at the same time.
        let mut further = std::mem::take(&mut record.further);
        for round in rounds {
            stream.restart(&Draws::new(job.seed, replica as u32, round), Domain::Profile);
            let mut sampled = Ok(());
            let samples = job.schedule.samples(round);
            let mut loads = |measure, profile: &Profile| {
                if samples && measure == job.schedule.measure {
                    sampled = sample(job, round, profile, *most_balls, record);
                }
            };
            let mut watch = Watch { loads: &mut loads, further: samples.then_some(&mut further) };
            let flow = job.process.round(stream, thrower, state, &mut watch);
            sampled?;
            if samples {
                check_total(state.balls() - state.bins.balls(), *most_balls)?;
            }
            record.flow.add(flow);
        }
        record.further = further;
        Ok(())
    }
}

/// Refuses a number of balls too large for the sums of its squares.
fn check_total(balls: u128, most_balls: u64) -> Result<(), BackendError> {
    if balls <= u128::from(most_balls) {
        return Ok(());
    }
    Err(BackendError::Unsupported(format!(
        "a total of {balls} balls is too large for the exact sums of squares of this run (of 128 bits, which hold \
         {most_balls} balls a sample here); sample less often (--every), or use fewer replicas or bins"
    )))
}

/// Adds `profile`, of a sampled round, to `record`.
fn sample(
    job: &ProfileJob<'_>,
    round: u64,
    profile: &Profile,
    most_balls: u64,
    record: &mut Record,
) -> Result<(), BackendError> {
    let balls = profile.balls();
    check_total(balls, most_balls)?;
    record.sample(profile.max_load(), balls as u64, profile.empty_bins());
    if job.schedule.samples_loads(round) {
        for level in profile.levels() {
            record.load_per_bin.add(level.load, level.bins.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Measure;
    use crate::process::leaky::{LeakyProfile, Parameters};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_run_can_be_cancelled() {
        let process = LeakyProfile::new(&Parameters { n: 1 << 40, ..Parameters::default() }).expect("valid");
        let schedule = Schedule { rounds: 1 << 20, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
        let job = ProfileJob { process: &process, seed: 1, replicas: 2, schedule };
        let control = Control::default();
        let begun = Instant::now();
        let ended = thread::scope(|scope| {
            let running = scope.spawn(|| job.run(0..2, &control));
            while control.rounds() == 0 && begun.elapsed() < Duration::from_secs(20) {
                thread::sleep(Duration::from_millis(1));
            }
            control.cancel();
            running.join().expect("no panic")
        });
        assert!(matches!(ended, Err(BackendError::Cancelled)), "{ended:?}");
    }

    #[test]
    fn counts_that_do_not_fit_are_refused_before_the_run() {
        let process = LeakyProfile::new(&Parameters { n: 1 << 40, ..Parameters::default() }).expect("valid");
        let schedule = Schedule { rounds: 1 << 20, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
        let job = |replicas, schedule| ProfileJob { process: &process, seed: 1, replicas, schedule };
        let refused = |job: ProfileJob<'_>| job.run(0..1, &Control::default()).expect_err("refused").to_string();
        // Squares of 2^20 samples of 2^40 bins: 2^120 for each replica.
        assert!(job(255, schedule).check_counts().is_ok());
        assert!(refused(job(256, schedule)).contains("1048576 samples of 1099511627776 bins in each of 256 replicas"));
        // One sample a replica, but 2^127 balls and more.
        let long = Schedule { rounds: 1 << 48, burn_in: (1 << 48) - 1, ..schedule };
        assert!(job(1 << 16, long).check_counts().is_ok());
        let larger = LeakyProfile::new(&Parameters { n: 1 << 49, ..Parameters::default() }).expect("valid");
        let job = ProfileJob { process: &larger, seed: 1, replicas: 1 << 32, schedule: long };
        assert!(refused(job).contains("2^127"));
    }
}
