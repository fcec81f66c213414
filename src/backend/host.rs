//! The CPU: threads over replicas, with the plain or the fast runner.

use super::segments::{Partial, Segments, Walker};
use super::{Backend, BackendError, BlockResult, Control, Job, Keeper, Unkept, Work, check_conservation, memory};
use crate::journal::MOST_LOADS;
use crate::process::{Process, Reference, Runner};
use crate::stats::Record;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Balls thrown, or bins passed where these are more, between two looks at the control: some milliseconds of work.
const WORK_PER_STEP: f64 = 4e6;

/// A backend on the CPU.
#[derive(Debug)]
pub struct Host {
    fast: bool,
    /// Threads of its own, where those of the process are not meant.
    threads: Option<ThreadPool>,
}

impl Host {
    /// The definition itself: [`crate::process::Process::round`] for every round.
    #[must_use]
    pub fn reference() -> Self {
        Self { fast: false, threads: None }
    }

    /// The fast path of each process.
    #[must_use]
    pub fn cpu() -> Self {
        Self { fast: true, threads: None }
    }

    /// The fast path on `threads` threads of its own. A GPU beside it has short work for those of the process, which would
    /// wait there behind a whole block.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] where the system does not give so many.
    pub fn cpu_apart(threads: usize) -> Result<Self, BackendError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let refused =
            |e| BackendError::Unsupported(format!("{threads} threads cannot start ({e}); use fewer --threads"));
        Ok(Self { fast: true, threads: Some(pool.map_err(refused)?) })
    }
}

/// One thread's runner and state.
struct Worker<'a> {
    job: Job<'a>,
    runner: Box<dyn Runner + 'a>,
    state: Vec<u32>,
}

impl<'a> Worker<'a> {
    fn new(job: &Job<'a>, fast: bool) -> Self {
        let runner = if fast { job.process.runner() } else { Box::new(Reference(job.process)) };
        Self { job: *job, runner, state: vec![0; job.process.words()] }
    }
}

impl Walker for Worker<'_> {
    fn start(&mut self, replica: u64) {
        self.job.process.start(self.job.seed, replica as u32, &mut self.state);
    }

    fn resume(&mut self, state: &[u64]) {
        self.state.iter_mut().zip(state).for_each(|(balls, &kept)| *balls = kept as u32);
    }

    fn state(&self) -> Vec<u64> {
        self.state.iter().map(|&balls| balls.into()).collect()
    }

    fn balls(&self) -> u128 {
        self.state.iter().map(|&balls| u128::from(balls)).sum()
    }

    fn step(&mut self, replica: u64, rounds: Range<u64>, record: &mut Record) -> Result<(), BackendError> {
        self.runner.advance(self.job.seed, replica as u32, &mut self.state, rounds, &self.job.schedule, record);
        Ok(())
    }
}

/// Rounds of a step of `process`.
fn step(process: &dyn Process) -> u64 {
    (WORK_PER_STEP / process.round_work()).clamp(1.0, WORK_PER_STEP) as u64
}

/// Advances `state`, that of `replica`, through `rounds`, in steps between which it can be stopped; what was seen.
pub(crate) fn advance(
    job: &Job<'_>,
    runner: &mut dyn Runner,
    replica: u32,
    state: &mut [u32],
    rounds: Range<u64>,
    control: &Control,
) -> Result<Record, BackendError> {
    let step = step(job.process);
    let mut record = Record::default();
    let mut round = rounds.start;
    while round < rounds.end {
        if control.is_cancelled() {
            return Err(BackendError::Cancelled);
        }
        let end = (round + step).min(rounds.end);
        runner.advance(job.seed, replica, state, round..end, &job.schedule, &mut record);
        control.advance(end - round);
        round = end;
    }
    Ok(record)
}

/// Refuses a block that the machine has no room for.
fn require_memory(job: &Job<'_>, replicas: u64) -> Result<(), BackendError> {
    // A worker's state and its runner's memory of at most two words a bin; kept loads, and their copy for the dump.
    const WORKER_BYTES: u64 = 12;
    const KEPT_BYTES: u64 = 8;
    let bins = u64::from(job.process.bins());
    let words = job.process.words() as u64;
    let workers = replicas.min(rayon::current_num_threads() as u64);
    let kept = if job.keep_loads { replicas * KEPT_BYTES } else { 0 };
    let what = format!("running {workers} x {bins} bins at once");
    memory::require(
        what,
        words * workers * WORKER_BYTES + bins * kept,
        "use fewer bins, fewer --threads or no --dump-loads",
    )
}

impl Backend for Host {
    fn name(&self) -> &'static str {
        if self.fast { "cpu" } else { "reference" }
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let Work::Bins(job) = work else { return Err(self.stream().refuse()) };
        match &self.threads {
            Some(threads) => threads.install(|| self.block(job, block, control, keeper)),
            None => self.block(job, block, control, keeper),
        }
    }
}

impl Host {
    fn block(
        &self,
        job: &Job<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let replicas = block.end - block.start;
        require_memory(job, replicas)?;
        let worker = || Worker::new(job, self.fast);
        let words = job.process.words() as u64 * replicas.min(rayon::current_num_threads() as u64);
        let keeper = if words > MOST_LOADS { &Unkept } else { keeper };
        let segments = Segments { rounds: job.schedule.rounds, step: step(job.process), control, keeper };
        if !job.keep_loads {
            return Ok(BlockResult { tally: segments.block(block, worker)?, loads: Vec::new() });
        }
        let bins = job.process.bins() as usize;
        let mut loads = vec![0u32; bins * replicas as usize];
        let unpaused = AtomicBool::new(false);
        let segments = Segments { keeper: &Unkept, ..segments };
        let seen = (loads.par_chunks_mut(bins).enumerate())
            .try_fold(
                || (worker(), Partial::default()),
                |(mut worker, mut seen), (i, kept)| {
                    segments.replica(&mut worker, (block.start + i as u64, None), &mut seen, &unpaused)?;
                    kept.copy_from_slice(&worker.state[..kept.len()]);
                    Ok((worker, seen))
                },
            )
            .map(|folded| folded.map(|(_, seen)| seen))
            .try_reduce(Partial::default, |a, b| Ok(a.merged(b)))?;
        // Nobody keeps this block: replicas are left only where the run is cancelled.
        if !seen.left.is_empty() {
            return Err(BackendError::Cancelled);
        }
        check_conservation(&seen.tally, &block)?;
        Ok(BlockResult { tally: seen.tally, loads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Measure;
    use crate::process::leaky::{Leaky, Parameters};
    use crate::run::Schedule;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_run_of_many_bins_and_hardly_any_ball_can_be_cancelled() {
        let process = Leaky::new(&Parameters { n: 1 << 20, lambda: 1e-9, ..Parameters::default() }).expect("valid");
        let schedule = Schedule { rounds: 1 << 40, burn_in: 0, every: 1 << 39, loads_every: 0, measure: Measure::Post };
        let work = Work::Bins(Job { process: &process, seed: 1, schedule, keep_loads: false });
        for mut host in [Host::cpu(), Host::reference()] {
            let control = Control::default();
            let begun = Instant::now();
            let ended = thread::scope(|scope| {
                let running = scope.spawn(|| host.run(&work, 0..1, &control));
                while control.rounds() == 0 && begun.elapsed() < Duration::from_secs(20) {
                    thread::sleep(Duration::from_millis(1));
                }
                control.cancel();
                running.join().expect("no panic")
            });
            assert!(matches!(ended, Err(BackendError::Cancelled)), "{ended:?}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        }
    }
}
