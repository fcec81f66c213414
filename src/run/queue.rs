//! One queue of blocks, from which all backends of a pool take their work.
//!
//! A block on a lost device goes back to the queue; the device is renewed once and leaves the pool at its second loss,
//! where the last one is replaced by the CPU. A device that refuses a block leaves it to the others, and the pool; where it
//! is the last one the run ends. Whoever finds the queue empty, or so far ahead of a slow device that its
//! results would pile up, begins the oldest block that is still running a second time: the bits are the same, so that
//! the first result counts and the other attempt is stopped. A slow device holds up nobody for longer than it takes to
//! stop: on a GPU until its submissions are back.

use super::Spec;
use super::driver::{Event, RunError};
use crate::backend::{Backend, BackendError, BlockResult, Control, Host, Keeper, Machine, Pool, Unkept, Work};
use crate::journal::Snapshots;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A block and its number in the run.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) replicas: Range<u64>,
}

/// A block that is finished.
pub(super) struct Finished {
    pub(super) block: Block,
    pub(super) result: BlockResult,
    /// Wall time since the block before it was finished, or the beginning, and what earlier sittings spent on it: over all
    /// blocks, the time of the run.
    pub(super) elapsed: Duration,
    pub(super) machine: Machine,
    /// Position in the pool of what computed it.
    pub(super) worker: usize,
}

/// What the blocks of a run have in common.
pub(super) struct Common<'a> {
    pub(super) spec: &'a Spec,
    pub(super) work: Work<'a>,
    /// Most blocks between the oldest unfinished one and the newest that is begun.
    pub(super) ahead: u64,
    pub(super) control: &'a Control<'a>,
    /// Where blocks that take long are kept, and the id of their journal.
    pub(super) snapshots: Option<(&'a Snapshots, &'a str)>,
}

/// Told of each block as it is finished, in any order; whether the run is over.
pub(super) type Receive<'a> = &'a mut (dyn FnMut(Finished) -> Result<bool, RunError> + Send);
/// Told what happens to devices.
pub(super) type Notify<'a> = &'a mut (dyn FnMut(Event) + Send);

/// Computes `blocks` on the backends of `pool`.
pub(super) fn compute<'a>(
    common: &'a Common<'a>,
    pool: &mut Pool,
    blocks: impl Iterator<Item = Block> + Send + 'a,
    receive: Receive<'a>,
    notify: Notify<'a>,
) -> Result<(), RunError> {
    let control = common.control.part();
    let queue = Queue {
        common,
        control: &control,
        balls_per_replica: common.spec.schedule.rounds as f64 * common.spec.process.expected_balls(),
        changed: Condvar::new(),
        state: Mutex::new(State {
            waiting: Box::new((0..).zip(blocks)),
            returned: BTreeMap::new(),
            running: BTreeMap::new(),
            next: 0,
            workers: pool.backends.len(),
            last: Instant::now(),
            ended: None,
            receive,
            notify,
        }),
    };
    let mut seats: Vec<Seat> = std::mem::take(&mut pool.backends).into_iter().enumerate().map(Seat::new).collect();
    let (own, others) = seats.split_first_mut().expect("a pool has a backend");
    thread::scope(|scope| {
        for seat in others {
            scope.spawn(|| queue.serve(seat));
        }
        queue.serve(own);
    });
    pool.backends = seats.into_iter().filter(|seat| !seat.retired).map(|seat| seat.backend).collect();
    queue.state.into_inner().unwrap_or_else(PoisonError::into_inner).ended.unwrap_or(Ok(()))
}

/// A backend at the queue.
struct Seat {
    backend: Box<dyn Backend>,
    /// Its position in the pool.
    index: usize,
    losses: u32,
    retired: bool,
}

impl Seat {
    fn new((index, backend): (usize, Box<dyn Backend>)) -> Self {
        Self { backend, index, losses: 0, retired: false }
    }
}

/// A block that a backend was given.
struct Attempt<'c> {
    place: u64,
    block: Block,
    control: Arc<Control<'c>>,
    /// Whether another has begun the block before, who alone keeps it in the middle.
    is_second: bool,
}

/// A block that is being computed, by one backend or two.
struct Running<'c> {
    block: Block,
    attempts: Vec<Arc<Control<'c>>>,
}

struct Queue<'a, 'c> {
    common: &'a Common<'a>,
    /// Cancelled when the run is over, whatever its end.
    control: &'c Control<'c>,
    /// Balls that are expected to be thrown in a replica.
    balls_per_replica: f64,
    /// Notified when a waiting backend may find work, or the end.
    changed: Condvar,
    state: Mutex<State<'a, 'c>>,
}

/// Blocks have a place in the queue, counted from 0: their numbers have gaps where a journal holds some of them.
struct State<'a, 'c> {
    /// Blocks that nobody has begun.
    waiting: Box<dyn Iterator<Item = (u64, Block)> + Send + 'a>,
    /// Those that a device has given back, by place.
    returned: BTreeMap<u64, Block>,
    running: BTreeMap<u64, Running<'c>>,
    /// Place of the first waiting block.
    next: u64,
    /// Backends that have not retired.
    workers: usize,
    /// When a block was finished last, or the run begun.
    last: Instant,
    ended: Option<Result<(), RunError>>,
    receive: Receive<'a>,
    notify: Notify<'a>,
}

impl<'c> State<'_, 'c> {
    /// The next block for a backend that is idle.
    fn next(&mut self, ahead: u64) -> Option<(u64, Block)> {
        if let Some(returned) = self.returned.pop_first() {
            return Some(returned);
        }
        let oldest = self.running.first_key_value().map_or(self.next, |(&place, _)| place);
        if self.next - oldest < ahead
            && let Some(waiting) = self.waiting.next()
        {
            self.next += 1;
            return Some(waiting);
        }
        let alone = self.running.iter().find(|(_, running)| running.attempts.len() == 1);
        alone.map(|(&place, running)| (place, running.block.clone()))
    }

    fn begin(&mut self, (place, block): (u64, Block), control: &'c Control<'c>) -> Attempt<'c> {
        let control = Arc::new(control.part());
        let running =
            self.running.entry(place).or_insert_with(|| Running { block: block.clone(), attempts: Vec::new() });
        let is_second = !running.attempts.is_empty();
        running.attempts.push(Arc::clone(&control));
        Attempt { place, block, control, is_second }
    }

    fn end(&mut self, how: Result<(), RunError>) {
        self.ended.get_or_insert(how);
    }
}

impl<'a, 'c> Queue<'a, 'c> {
    /// Computes blocks on a backend until there are none, or it retires.
    fn serve(&self, seat: &mut Seat) {
        let _alarm = Alarm(self);
        while let Some(attempt) = self.take() {
            let replicas = attempt.block.replicas.clone();
            log_begun(&replicas, &*seat.backend);
            let begun = Instant::now();
            let tell = |event: Event| (self.lock().notify)(event);
            let keeper = self.common.snapshots.filter(|_| !attempt.is_second).map(|(snapshots, id)| {
                snapshots.keeper(id, (&self.common.work, self.common.control), replicas.clone(), &tell)
            });
            let kept: &dyn Keeper = keeper.as_ref().map_or(&Unkept, |keeper| keeper);
            let result = seat.backend.run_kept(&self.common.work, replicas, &attempt.control, kept);
            let carried = keeper.map_or(Duration::ZERO, |keeper| keeper.carried());
            match result {
                Err(BackendError::Lost(reason)) => {
                    self.put_back(&attempt);
                    self.renew(seat, reason);
                    if seat.retired {
                        return;
                    }
                }
                Err(ref error) if is_refusal(error) && self.retire(seat, error) => {
                    self.put_back(&attempt);
                    return;
                }
                result => self.finish(seat, attempt, result, (begun.elapsed(), carried)),
            }
        }
    }

    /// Waits for a block; `None` when the run is over.
    fn take(&self) -> Option<Attempt<'c>> {
        let mut state = self.lock();
        loop {
            if self.common.control.is_cancelled() {
                state.end(Err(BackendError::Cancelled.into()));
            }
            if state.ended.is_some() {
                self.wake(&state);
                return None;
            }
            if let Some(block) = state.next(self.common.ahead) {
                return Some(state.begin(block, self.control));
            }
            if state.running.is_empty() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives a block back; where another has begun it, too, a second attempt becomes possible again.
    fn put_back(&self, attempt: &Attempt<'c>) {
        let mut state = self.lock();
        attempt.control.retract(attempt.control.rounds());
        let Some(running) = state.running.get_mut(&attempt.place) else { return };
        running.attempts.retain(|control| !Arc::ptr_eq(control, &attempt.control));
        if running.attempts.is_empty() {
            state.running.remove(&attempt.place);
            state.returned.insert(attempt.place, attempt.block.clone());
        }
        self.wake(&state);
    }

    /// Retires a device that refuses a block, if the run goes on and another is there; whether it does.
    fn retire(&self, seat: &mut Seat, error: &BackendError) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() || state.workers == 1 {
            return false;
        }
        state.workers -= 1;
        seat.retired = true;
        let device = Machine::of(&*seat.backend);
        (state.notify)(Event::DeviceRetired { device, reason: error.to_string() });
        true
    }

    /// Renews a device after its first loss; after the second it retires, or becomes the CPU if nobody else is left.
    fn renew(&self, seat: &mut Seat, reason: String) {
        seat.losses += 1;
        let device = Machine::of(&*seat.backend);
        let given_up = match seat.losses {
            1 => seat.backend.renew().err().map(|e| format!("{reason}; it cannot be used again: {e}")),
            _ => Some(format!("{reason}; for the second time")),
        };
        let mut state = self.lock();
        let event = match given_up {
            None => Event::DeviceRenewed { device, reason },
            Some(reason) if state.workers > 1 => {
                state.workers -= 1;
                seat.retired = true;
                Event::DeviceRetired { device, reason: format!("it was lost: {reason}") }
            }
            Some(reason) => {
                seat.backend = Box::new(Host::cpu());
                Event::FellBackToCpu { device, reason }
            }
        };
        (state.notify)(event);
    }

    /// Hands over the result of an attempt, if it is still wanted.
    fn finish(
        &self,
        seat: &Seat,
        attempt: Attempt<'c>,
        result: Result<BlockResult, BackendError>,
        (took, carried): (Duration, Duration),
    ) {
        let Attempt { place, block, control, .. } = attempt;
        let mut state = self.lock();
        if state.ended.is_some() || !state.running.contains_key(&place) {
            control.retract(control.rounds());
            if let Some((snapshots, _)) = self.common.snapshots
                && !matches!(state.ended, Some(Err(_)))
            {
                // Its block is in the journal, or beyond the end of the run.
                snapshots.remove(&block.replicas);
            }
            return;
        }
        match result {
            Ok(result) => {
                let attempts = state.running.remove(&place).map_or_else(Vec::new, |running| running.attempts);
                attempts.iter().for_each(|attempt| attempt.cancel());
                log_finished(self.balls_per_replica, &block.replicas, took.as_secs_f64());
                let now = Instant::now();
                let elapsed = carried + (now - std::mem::replace(&mut state.last, now));
                let machine = Machine::of(&*seat.backend);
                match (state.receive)(Finished { block, result, elapsed, machine, worker: seat.index }) {
                    Ok(false) => {}
                    Ok(true) => state.end(Ok(())),
                    Err(error) => state.end(Err(error)),
                }
            }
            Err(error) => state.end(Err(error.into())),
        }
        self.wake(&state);
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, 'c>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has those look again who wait for work, and those stop who work, if the run is over.
    fn wake(&self, state: &State<'_, '_>) {
        if state.ended.is_some() {
            self.control.cancel();
        }
        self.changed.notify_all();
    }
}

/// Ends the run where a backend panics: the others would wait for its block.
struct Alarm<'q, 'a, 'c>(&'q Queue<'a, 'c>);

impl Drop for Alarm<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            state.end(Err(BackendError::Cancelled.into()));
            self.0.wake(&state);
        }
    }
}

fn log_begun(block: &Range<u64>, backend: &dyn Backend) {
    tracing::debug!(
        first = block.start,
        end = block.end,
        backend = backend.name(),
        "replicas {} to {} begun on {}",
        block.start,
        block.end - 1,
        backend.name()
    );
}

/// Whether others may be able to do what this device cannot; balls that are lost or wrong answers are no such thing.
fn is_refusal(error: &BackendError) -> bool {
    matches!(error, BackendError::Unsupported(_) | BackendError::Memory { .. } | BackendError::Device(_))
}

fn log_finished(balls_per_replica: f64, block: &Range<u64>, seconds: f64) {
    let balls = (block.end - block.start) as f64 * balls_per_replica;
    tracing::debug!(
        first = block.start,
        end = block.end,
        seconds,
        balls_per_s = balls / seconds,
        "replicas {} to {} finished in {seconds:.3} s, {:.3e} balls/s",
        block.start,
        block.end - 1,
        balls / seconds
    );
}
