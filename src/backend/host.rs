//! The CPU: threads over replicas, with the plain or the fast runner.

use super::{Backend, BackendError, BlockResult, Control, Job, Work, check_conservation, memory};
use crate::process::{Reference, Runner};
use crate::stats::{Record, Tally};
use rayon::prelude::*;
use std::ops::Range;

/// Balls thrown, or bins passed where these are more, between two looks at the control: some milliseconds of work.
const WORK_PER_STEP: f64 = 4e6;

/// A backend on the CPU.
#[derive(Debug)]
pub struct Host {
    fast: bool,
}

impl Host {
    /// The definition itself: [`crate::process::Process::round`] for every round.
    #[must_use]
    pub fn reference() -> Self {
        Self { fast: false }
    }

    /// The fast path of each process.
    #[must_use]
    pub fn cpu() -> Self {
        Self { fast: true }
    }
}

/// One thread's runner, its scratch loads, and the tally of its replicas so far.
struct Worker<'a> {
    runner: Box<dyn Runner + 'a>,
    scratch: Vec<u32>,
    tally: Tally,
}

impl<'a> Worker<'a> {
    fn new(job: &Job<'a>, fast: bool) -> Self {
        let runner = if fast { job.process.runner() } else { Box::new(Reference(job.process)) };
        Self { runner, scratch: vec![0; job.process.words()], tally: Tally::default() }
    }

    /// Runs all rounds of `replica`; copies its final loads to `kept` if they are wanted.
    fn replica(
        mut self,
        job: &Job<'a>,
        replica: u64,
        kept: Option<&mut [u32]>,
        control: &Control,
    ) -> Result<Self, BackendError> {
        let state = &mut self.scratch;
        let total = |state: &[u32]| state.iter().map(|&balls| u128::from(balls)).sum::<u128>();
        job.process.start(job.seed, replica as u32, state);
        self.tally.initial_balls += total(state);
        let record = advance(job, &mut *self.runner, replica as u32, state, 0..job.schedule.rounds, control)?;
        self.tally.final_balls += total(state);
        self.tally.add(&record);
        if let Some(kept) = kept {
            kept.copy_from_slice(&state[..kept.len()]);
        }
        Ok(self)
    }
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
    let step = (WORK_PER_STEP / job.process.round_work()).clamp(1.0, WORK_PER_STEP) as u64;
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

    fn run(&mut self, work: &Work<'_>, block: Range<u64>, control: &Control) -> Result<BlockResult, BackendError> {
        let Work::Bins(job) = work else { return Err(self.stream().refuse()) };
        let bins = job.process.bins() as usize;
        require_memory(job, block.end - block.start)?;
        let fresh = || Worker::new(job, self.fast);
        let add = |mut a: Tally, b: Tally| {
            a.merge(&b);
            Ok(a)
        };
        let mut loads = vec![0u32; if job.keep_loads { bins * (block.end - block.start) as usize } else { 0 }];
        let tally = if job.keep_loads {
            (loads.par_chunks_mut(bins).enumerate())
                .try_fold(fresh, |worker, (i, kept)| worker.replica(job, block.start + i as u64, Some(kept), control))
                .map(|worker| worker.map(|w| w.tally))
                .try_reduce(Tally::default, add)
        } else {
            (block.clone().into_par_iter())
                .try_fold(fresh, |worker, replica| worker.replica(job, replica, None, control))
                .map(|worker| worker.map(|w| w.tally))
                .try_reduce(Tally::default, add)
        }?;
        check_conservation(&tally, &block)?;
        Ok(BlockResult { tally, loads })
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
