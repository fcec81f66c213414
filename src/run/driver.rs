//! Runs: blocks from one queue, their tallies added in order.

use super::queue::{self, Block, Common, Finished, Notify};
use super::stopping::{self, Reason};
use super::{Shard, Spec, SpecError};
use crate::backend::{BackendError, BlockResult, Control, Machine, Pool, StreamKind};
use crate::journal::{Contents, Entry, Header, Journal, JournalError, Snapshots};
use crate::process::{Form, ParameterError};
use crate::stats::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most blocks that are finished or running while an older one is not: their tallies wait in memory.
const AHEAD: u64 = 1024;
/// The same for each backend where the loads of the blocks wait, too.
const AHEAD_WITH_LOADS: u64 = 2;

/// Something worth telling a person while a run goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A device was lost; its block goes back to the queue, and the device is used again.
    DeviceRenewed {
        /// The device.
        device: Machine,
        /// What is known of the loss.
        reason: String,
    },
    /// A device was lost again, cannot be renewed, or refused a block; the others compute its blocks.
    DeviceRetired {
        /// The device.
        device: Machine,
        /// What is known of it.
        reason: String,
    },
    /// A block goes on from its snapshot.
    SnapshotTakenUp {
        /// Path of the snapshot.
        file: String,
    },
    /// A snapshot is of no use here; its block begins anew.
    SnapshotIgnored {
        /// Path of the snapshot.
        file: String,
        /// Why.
        reason: String,
    },
    /// A snapshot could not be written; the run goes on.
    SnapshotFailed {
        /// Path of the snapshot.
        file: String,
        /// Why.
        reason: String,
    },
    /// The last device was lost for good; all that is left is computed on the CPU.
    FellBackToCpu {
        /// The device.
        device: Machine,
        /// What is known of the loss.
        reason: String,
    },
}

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The specification is refused.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The process's parameters are refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The journal is damaged, of another run, or cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A sum of the tallies passes its integer.
    #[error("the sums over all replicas do not fit their integers of 64 and 128 bits; use fewer replicas or rounds")]
    TooLarge,
    /// The final loads could not be written.
    #[error("the final loads could not be written ({0}); check the path and the space left")]
    Loads(#[from] io::Error),
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was seen, of as many replicas as the tally says.
    pub tally: Tally,
    /// Why it ended there.
    pub reason: Reason,
    /// Wall time of the simulation, set-up of the process included; of a journal the sum over its blocks.
    pub elapsed: Duration,
    /// Which random numbers were drawn.
    pub stream: StreamKind,
    /// What computed it: the backends whose blocks it is made of, [joined](Machine::joined). `None` of a journal: each of
    /// its blocks has its own.
    pub machine: Option<Machine>,
}

/// Runs `spec` on the backends of `pool`, which share its blocks. The result does not show how.
///
/// A block on a lost device is redone by whoever is free. A device that is lost a second time, or refuses a block, leaves the
/// pool; the last one is replaced by the CPU where it is lost, and ends the run where it refuses. `dump` receives the final loads of all replicas: u32, little-endian, replica-major.
///
/// # Errors
/// [`RunError`]; nothing of a failed run is returned.
pub fn run(
    spec: &Spec,
    pool: &mut Pool,
    control: &Control,
    mut dump: Option<&mut (dyn Write + Send)>,
    notify: Notify<'_>,
) -> Result<Outcome, RunError> {
    spec.validate()?;
    let begun = Instant::now();
    let stream = pool.stream();
    if dump.is_some() && stream == StreamKind::Profile {
        let why = "a profile has no loads of single bins to dump; use --backend cpu or gpu for them";
        return Err(BackendError::Unsupported(why.to_owned()).into());
    }
    let process = spec.process.build_for(stream)?;
    let ahead = if dump.is_some() { AHEAD_WITH_LOADS * pool.machines().len() as u64 } else { AHEAD };
    let common = Common { spec, work: spec.work(&process, dump.is_some()), ahead, control, snapshots: None };
    let mut sum = Sum::new(spec, &process);
    let mut waiting: BTreeMap<u64, (BlockResult, usize, Machine)> = BTreeMap::new();
    let mut machines: BTreeMap<usize, Vec<Machine>> = BTreeMap::new();
    let mut receive = |Finished { block, result, machine, worker, .. }: Finished| {
        waiting.insert(block.number, (result, worker, machine));
        sum.advance(|number, _| {
            let Some((BlockResult { tally, loads }, worker, machine)) = waiting.remove(&number) else {
                return Ok(Seen::Awaited);
            };
            if let Some(dump) = dump.as_deref_mut() {
                let little_endian: Vec<u32> = loads.iter().map(|l| l.to_le()).collect();
                dump.write_all(bytemuck::cast_slice(&little_endian))?;
            }
            // A backend that was replaced by the CPU is two machines.
            let known = machines.entry(worker).or_default();
            if !known.contains(&machine) {
                known.push(machine);
            }
            Ok(Seen::Tally(Box::new(tally), begun.elapsed()))
        })
    };
    let blocks = (0..).zip(spec.blocks(&process)).map(|(number, replicas)| Block { number, replicas });
    queue::compute(&common, pool, blocks, &mut receive, notify)?;
    if let Some(dump) = dump {
        dump.flush()?;
    }
    let machines: Vec<Machine> = machines.into_values().flatten().collect();
    let (tally, reason) = sum.end();
    Ok(Outcome { tally, reason, elapsed: begun.elapsed(), stream, machine: Machine::joined(&machines) })
}

/// Runs the blocks of `shard` that `journal` lacks; each is written into it as it is finished.
///
/// Where it ends, also by an error, all finished blocks are in the journal, and the same call goes on from there. A time
/// limit counts the time of all blocks, whenever and wherever they were computed. With `snapshots` a block that takes long
/// goes on from its last one, too.
///
/// # Errors
/// [`RunError`]; [`RunError::Journal`] where the journal is of another run, or cannot be written.
pub fn run_journaled(
    spec: &Spec,
    pool: &mut Pool,
    control: &Control,
    (journal, shard): (&mut Journal, Shard),
    snapshots: Option<&Snapshots>,
    notify: Notify<'_>,
) -> Result<Outcome, RunError> {
    spec.validate()?;
    let process = spec.process.build_for(pool.stream())?;
    journal.require(&Header::new(spec, &process))?;
    let id = journal.contents().id().to_owned();
    let snapshots = snapshots.map(|snapshots| (snapshots, &*id));
    let common = Common { spec, work: spec.work(&process, false), ahead: AHEAD, control, snapshots };
    let mut sum = Sum::new(spec, &process);
    let mut elapsed = Duration::ZERO;
    let mut add = |contents: &Contents| {
        sum.advance(|number, block| {
            let Some(entry) = contents.entry(block) else {
                return Ok(if shard.owns(number) { Seen::Awaited } else { Seen::LeftOut });
            };
            elapsed += entry.elapsed;
            Ok(Seen::Tally(Box::new(entry.tally.clone()), elapsed))
        })
    };
    if !add(journal.contents())? {
        let done: BTreeSet<u64> = journal.contents().entries().map(|entry| entry.block.start).collect();
        let missing = (0..)
            .zip(spec.blocks(&process))
            .map(|(number, replicas)| Block { number, replicas })
            .filter(move |block| shard.owns(block.number) && !done.contains(&block.replicas.start));
        let mut receive = |Finished { block, result, elapsed, machine, .. }: Finished| {
            let replicas = block.replicas.clone();
            journal.append(Entry { block: block.replicas, tally: result.tally, elapsed, machine })?;
            if let Some((snapshots, _)) = snapshots {
                snapshots.remove(&replicas);
            }
            add(journal.contents())
        };
        queue::compute(&common, pool, missing, &mut receive, notify)?;
    }
    let (tally, reason) = sum.end();
    Ok(Outcome { tally, reason, elapsed, stream: journal.contents().header().stream(), machine: None })
}

/// What the blocks in a journal give, without computing any.
///
/// # Errors
/// [`RunError::TooLarge`] where sums do not fit their integers: the tallies were made up.
pub fn replay(contents: &Contents) -> Result<Outcome, RunError> {
    let mut elapsed = Duration::ZERO;
    let mut sum = Sum::new(contents.spec(), contents.process());
    sum.advance(|_, block| {
        let Some(entry) = contents.entry(block) else { return Ok(Seen::LeftOut) };
        elapsed += entry.elapsed;
        Ok(Seen::Tally(Box::new(entry.tally.clone()), elapsed))
    })?;
    let (tally, reason) = sum.end();
    Ok(Outcome { tally, reason, elapsed, stream: contents.header().stream(), machine: None })
}

/// What is known of a block.
enum Seen {
    /// Its tally, and the time spent up to it.
    Tally(Box<Tally>, Duration),
    /// It is not part of this.
    LeftOut,
    /// It is still to come.
    Awaited,
}

/// The tallies of blocks, added in order until a rule for stopping is met or there are no more.
struct Sum<'a> {
    spec: &'a Spec,
    process: &'a Form,
    tally: Tally,
    /// Number of the next block, and its first replica.
    next: (u64, u64),
    /// Whether no block was left out so far.
    complete: bool,
    ended: Option<Reason>,
}

impl<'a> Sum<'a> {
    fn new(spec: &'a Spec, process: &'a Form) -> Self {
        Self { spec, process, tally: Tally::default(), next: (0, 0), complete: true, ended: None }
    }

    /// Adds the next blocks as long as `look_up`, which is given the number of a block, too, knows them. Whether this is
    /// the end.
    fn advance(
        &mut self,
        mut look_up: impl FnMut(u64, &Range<u64>) -> Result<Seen, RunError>,
    ) -> Result<bool, RunError> {
        while self.ended.is_none() {
            let (number, replica) = self.next;
            if replica == self.spec.replicas {
                self.ended = Some(if self.complete { Reason::Replicas } else { Reason::Incomplete });
                break;
            }
            let block = self.spec.block_with(self.process, replica);
            match look_up(number, &block)? {
                Seen::Awaited => return Ok(false),
                Seen::LeftOut => self.complete = false,
                Seen::Tally(more, elapsed) => {
                    if !self.tally.can_merge(&more) {
                        return Err(RunError::TooLarge);
                    }
                    self.tally.merge(&more);
                    // A rule is about the first replicas, all of them.
                    if self.complete {
                        self.ended = look(self.spec, self.process, &self.tally, elapsed);
                    }
                }
            }
            self.next = (number + 1, block.end);
        }
        Ok(true)
    }

    fn end(self) -> (Tally, Reason) {
        (self.tally, self.ended.unwrap_or(Reason::Incomplete))
    }
}

/// Whether the run ends after the replicas of `tally`, the first blocks, and why.
fn look(spec: &Spec, process: &Form, tally: &Tally, elapsed: Duration) -> Option<Reason> {
    let stopping = spec.stopping?;
    let done = tally.replicas;
    let is_look = done == spec.replicas || stopping::looks().take_while(|&look| look <= done).any(|look| look == done);
    let met = is_look.then(|| stopping.met(tally, &spec.schedule)).flatten();
    let late = || done < spec.replicas && stopping.out_of_time(tally, elapsed, spec.block_with(process, done).end);
    let reason = met.or_else(|| late().then_some(Reason::MaxTime));
    let met = reason.map_or("none", Reason::name);
    tracing::debug!(replicas = done, met, "looked at the rules after {done} replicas; met: {met}");
    reason
}
