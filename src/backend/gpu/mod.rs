//! The GPU, through wgpu: the same bits as every other backend, on whatever adapter there is.
//!
//! A block is cut into chunks whose loads fit the device at once; a chunk runs in submissions of as many rounds as the
//! time budget allows; after each, the tallies come back and are added up here as integers of 64 and 128 bits. When the block
//! is to be kept in the middle, the submissions in flight are waited for, and the states come back, too.

mod cells;
mod check;
mod chunk;
pub mod compose;
mod device;
mod plan;
mod ramp;
pub mod records;

pub use device::{AdapterKind, AdapterSummary, adapters};

use super::segments::Left;
use super::{
    Backend, BackendError, BlockResult, Control, Job, Keeper, Options, Partial, Unkept, Work, check_conservation,
};
use crate::journal::MOST_LOADS;
use crate::rng::Draws;
use crate::rng::bounded::Packing;
use crate::stats::Tally;
use chunk::{Chunk, Ended, Pipelines};
use compose::{Layout, Multiply};
use device::Device;
use plan::Form;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// How the work is laid out on the device, where the automatic choice is not wanted. Nothing here changes a result.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The layout; chosen from the number of bins and replicas where there is none.
    pub layout: Option<Layout>,
    /// The 64-bit product; the device's own integers where it has them and none is given.
    pub multiply: Option<Multiply>,
    /// Threads of a workgroup; chosen from the number of balls where there is none.
    pub workgroup: Option<u32>,
    /// Whether to use subgroups where the device has them.
    pub subgroups: bool,
    /// Most rounds of a submission.
    pub most_rounds: Option<u64>,
    /// Most rounds until the counters of the max loads are read; just before they can overflow where none is given.
    pub most_counted: Option<u64>,
    /// Whether shaders keep all of wgpu's run-time checks.
    pub checked: bool,
    /// Changes the composed shader before it is compiled: tests plant errors with it.
    #[doc(hidden)]
    pub mutate: Option<fn(&str) -> String>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            layout: None,
            multiply: None,
            workgroup: None,
            subgroups: true,
            most_rounds: None,
            most_counted: None,
            checked: false,
            mutate: None,
        }
    }
}

/// The GPU backend.
pub struct Gpu {
    budget: Duration,
    tuning: Tuning,
    device: Device,
    /// Pipelines of the last shader: the blocks of a run share it.
    pipelines: Option<Pipelines>,
    /// Injected faults: submissions until the device is destroyed, and how often that is still to happen.
    fault: Option<(u64, u32)>,
    submissions: u64,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("adapter", &self.device.summary).field("tuning", &self.tuning).finish()
    }
}

impl Gpu {
    /// Opens the adapter that `options` ask for, the first of several.
    ///
    /// # Errors
    /// [`BackendError::NoAdapter`] where none fits, [`BackendError::Device`] where it cannot be opened.
    pub fn open(options: &Options) -> Result<Self, BackendError> {
        let adapter = device::chosen(options.gpu.as_deref(), options.allow_software)?.swap_remove(0);
        Ok(Self::on(Device::open(adapter)?, options))
    }

    /// Opens all adapters that `options` ask for.
    ///
    /// # Errors
    /// As those of [`Gpu::open`], of any of them.
    pub fn open_each(options: &Options) -> Result<Vec<Self>, BackendError> {
        let adapters = device::chosen(options.gpu.as_deref(), options.allow_software)?;
        adapters.into_iter().map(|adapter| Ok(Self::on(Device::open(adapter)?, options))).collect()
    }

    fn on(device: Device, options: &Options) -> Self {
        let (budget, tuning) = (options.submit_budget, options.tuning);
        Self { budget, tuning, device, pipelines: None, fault: None, submissions: 0 }
    }

    /// The adapter.
    #[must_use]
    pub fn summary(&self) -> &AdapterSummary {
        &self.device.summary
    }

    /// Compares the adapter with known answers and with a short run of the reference: well under a second.
    ///
    /// # Errors
    /// [`BackendError::SelfCheck`] where they differ.
    pub fn self_check(&mut self) -> Result<(), BackendError> {
        check::self_check(self)
    }

    /// The answers of the adapter's Philox4x32-10 to (counter, key) pairs, for known-answer tests.
    ///
    /// # Errors
    /// Where the device fails.
    pub fn philox(
        &self,
        questions: &[([u32; 4], [u32; 2])],
        multiply: Multiply,
    ) -> Result<Vec<[u32; 4]>, BackendError> {
        check::philox(&self.device, questions, multiply)
    }

    /// The first bin that each of `balls` balls samples, as the adapter draws it.
    ///
    /// # Errors
    /// Where the device fails.
    pub fn first_choices(
        &self,
        packing: &Packing,
        draws: &Draws,
        balls: u32,
        multiply: Multiply,
    ) -> Result<Vec<u32>, BackendError> {
        check::first_choices(&self.device, packing, draws, balls, multiply)
    }

    /// Destroys the device after so many further submissions, and its successors likewise, `losses` times in all:
    /// tests see with it that a lost device changes no result.
    #[doc(hidden)]
    pub fn inject_losses(&mut self, after_submissions: u64, losses: u32) {
        self.fault = Some((after_submissions, losses));
        self.submissions = 0;
    }

    fn block(
        &mut self,
        job: &Job<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let kernel = job.process.kernel();
        let mut partial = keeper.resume().unwrap_or_else(|| Partial::fresh(block.clone()));
        partial.left.sort_unstable_by_key(|(replica, _)| *replica);
        control.advance(partial.done(job.schedule.rounds));
        let mut loads = Vec::new();
        let mut form = Form::first(block.end - block.start);
        while !partial.left.is_empty() {
            let mut plan = plan::plan(&self.device, &self.tuning, job, within_reach(&partial.left), form)?;
            let (left, others) = partial.left.split_at(plan.replicas as usize);
            plan.variant.staggered = is_staggered(left);
            let mut source = chunk::source(&kernel, &plan);
            if let Some(mutate) = self.tuning.mutate {
                source = mutate(&source);
            }
            let pipelines = match self.pipelines.take().filter(|p| p.are_of(&source)) {
                Some(pipelines) => pipelines,
                None => Pipelines::new(&self.device, source, plan.variant.layout, self.tuning.checked)?,
            };
            let pipelines = &*self.pipelines.insert(pipelines);
            let (fault, submissions) = (&mut self.fault, &mut self.submissions);
            let mut submitted = |device: &Device| {
                *submissions += 1;
                if let Some((after, losses)) = fault
                    && *submissions > *after
                    && *losses > 0
                {
                    *losses -= 1;
                    *submissions = 0;
                    device.device.destroy();
                }
            };
            let has_room = plan.replicas * kernel.words() as u64 <= MOST_LOADS;
            let keeping = Keeping { keeper: if has_room { keeper } else { &Unkept }, tally: &partial.tally, others };
            let ended = match Chunk::new(&self.device, pipelines, job, plan, form, left)? {
                Ok(chunk) => chunk.run(self.budget, control, &keeping, &mut submitted)?,
                Err(larger) => Ended::Outgrown(larger),
            };
            match ended {
                Ended::Outgrown(larger) => form = larger,
                Ended::Finished(shown) => {
                    partial.left.drain(..plan.replicas as usize);
                    partial = partial.merged(shown.partial);
                    partial.left.sort_unstable_by_key(|(replica, _)| *replica);
                    loads.extend(shown.loads);
                    if !partial.left.is_empty() {
                        if keeper.is_due() {
                            keeper.keep(&partial);
                        }
                        if control.is_cancelled() {
                            return Err(BackendError::Cancelled);
                        }
                    }
                }
            }
        }
        check_conservation(&partial.tally, &block)?;
        Ok(BlockResult { tally: partial.tally, loads })
    }
}

/// Rounds by which a replica of a chunk may be ahead of another; a shader adds a submission's to it.
const REACH: u64 = 1 << 31;

/// The next round of a replica.
fn next_round((_, begun): &Left) -> u64 {
    begun.as_ref().map_or(0, |begun| begun.round)
}

/// The first and the last of the next rounds.
fn rounds_of(left: &[Left]) -> (u64, u64) {
    left.iter().map(next_round).fold((u64::MAX, 0), |(least, most), round| (least.min(round), most.max(round)))
}

/// How many replicas, the first and those behind it, can be in one chunk.
fn within_reach(left: &[Left]) -> u64 {
    let mut span = (u64::MAX, 0);
    let fits = |replica: &&Left| {
        let round = next_round(replica);
        span = (span.0.min(round), span.1.max(round));
        span.1 - span.0 < REACH
    };
    left.iter().take_while(fits).count() as u64
}

/// Whether these do not follow each other, or are at different rounds.
fn is_staggered(left: &[Left]) -> bool {
    let follows = |pair: &[Left]| pair[0].0 + 1 == pair[1].0 && next_round(&pair[0]) == next_round(&pair[1]);
    !left.windows(2).all(follows)
}

/// The keeper of a block, for one of its chunks.
struct Keeping<'a> {
    keeper: &'a dyn Keeper,
    /// What the chunks before have shown.
    tally: &'a Tally,
    /// The replicas left that are not in the chunk.
    others: &'a [Left],
}

impl Keeping<'_> {
    fn is_due(&self) -> bool {
        self.keeper.is_due()
    }

    /// Keeps the block, of which `chunk` is in the middle.
    fn keep(&self, chunk: Partial) {
        let rest = Partial { tally: self.tally.clone(), left: self.others.to_vec() };
        self.keeper.keep(&rest.merged(chunk));
    }
}

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn adapter(&self) -> Option<String> {
        Some(self.device.summary.to_string())
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let Work::Bins(job) = work else { return Err(self.stream().refuse()) };
        // The loads of finished replicas are not in a snapshot.
        let keeper = if job.keep_loads { &Unkept } else { keeper };
        // wgpu panics where a device is lost while it waits.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.block(job, block, control, keeper)));
        match outcome {
            Ok(Err(BackendError::Device(error))) => match self.device.loss() {
                Some(reason) => Err(BackendError::Lost(reason)),
                None => Err(BackendError::Device(error)),
            },
            Ok(result) => result,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("", String::as_str);
                match self.device.loss() {
                    Some(reason) => Err(BackendError::Lost(reason)),
                    None if text.contains("lost") => Err(BackendError::Lost(text.to_owned())),
                    None => resume_unwind(panic),
                }
            }
        }
    }

    fn renew(&mut self) -> Result<(), BackendError> {
        self.pipelines = None;
        self.device = Device::open(device::again(&self.device.summary)?)?;
        // What made the device go may have left it wrong. Faults that are injected are meant for the run.
        let fault = self.fault.take();
        let checked = self.self_check();
        self.fault = fault;
        self.submissions = 0;
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Begun;
    use crate::stats::Record;

    #[test]
    fn replicas_are_together_unless_far_apart_and_staggered_unless_alike() {
        let at = |rounds: &[(u64, u64)]| -> Vec<Left> {
            let begun = |round| Begun { round, state: Vec::new(), record: Record::default() };
            rounds.iter().map(|&(replica, round)| (replica, (round > 0).then(|| Box::new(begun(round))))).collect()
        };
        for (rounds, together, staggered) in [
            (&[(3, 0)][..], 1, false),
            (&[(3, 0), (4, 0), (5, 0)], 3, false),
            (&[(3, 7), (4, 7)], 2, false),
            (&[(3, 7), (5, 7)], 2, true),
            (&[(3, 7), (4, 8)], 2, true),
            (&[(3, 0), (4, REACH - 1), (5, 1)], 3, true),
            (&[(3, REACH), (4, 5), (5, 4), (6, 0), (7, 9)], 3, true),
            (&[(3, 1), (4, 5), (5, REACH + 1), (6, 0)], 2, true),
        ] {
            let left = at(rounds);
            assert_eq!((within_reach(&left), is_staggered(&left)), (together, staggered), "{rounds:?}");
        }
        assert_eq!(rounds_of(&at(&[(3, 7), (4, 2), (5, 9)])), (2, 9));
    }
}
