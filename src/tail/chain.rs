//! What a chain must be able to do for the stages to climb on it.

use crate::backend::{BackendError, Control};
use crate::process::TailBins;
use crate::profile::{CountTail, State, TailChain, Thrower, Watch};
use crate::rng::stream::Stream;
use crate::rng::{Domain, Draws};

/// Most rounds that share a step.
const ROUNDS_PER_STEP: u64 = 256;
/// Rounds between two reports to the control.
const ROUNDS_PER_REPORT: u64 = 4096;

/// A chain whose next round can be made to raise a bin to a level.
pub(super) trait Chain: Sync {
    /// The bins, and whatever else the next round depends on.
    type State: Clone;

    /// The state before the first round.
    fn start(&self, walker: &mut Walker<'_>) -> Self::State;

    /// Performs a round.
    fn advance(&self, walker: &mut Walker<'_>, state: &mut Self::State);

    /// Largest load.
    fn max_load(&self, state: &Self::State) -> u64;

    /// Number of bins of at least this load.
    fn reaching(&self, state: &Self::State, level: u64) -> u64;

    /// Appends the expected number of bins that reach each of `levels` in the next round.
    fn expected_reaching(&self, counts: &mut CountTail, state: &Self::State, levels: &[u64], expected: &mut Vec<f64>);

    /// Performs a round in which some bin reaches `level`, as [`TailChain::force`] does.
    fn force(&self, walker: &mut Walker<'_>, state: &mut Self::State, level: u64);
}

/// The random numbers and the memory of an island.
///
/// The numbers are those of a step, a function of (seed, island, step); steps are taken one after another.
pub(super) struct Walker<'a> {
    control: &'a Control<'a>,
    seed: u64,
    island: u32,
    step: u64,
    rounds: u64,
    /// Rounds of this step.
    of_step: u64,
    /// Rounds that the control knows.
    reported: u64,
    pub(super) stream: Stream,
    pub(super) thrower: Thrower,
    pub(super) counts: CountTail,
}

impl<'a> Walker<'a> {
    pub(super) fn new(seed: u64, island: u32, control: &'a Control<'a>) -> Self {
        Self {
            control,
            seed,
            island,
            step: 0,
            rounds: 0,
            of_step: 0,
            reported: 0,
            stream: Stream::new(&Draws::new(seed, island, 0), Domain::Tail),
            thrower: Thrower::default(),
            counts: CountTail::default(),
        }
    }

    /// Goes to the random numbers of the next step.
    pub(super) fn step(&mut self) -> Result<(), BackendError> {
        if self.control.is_cancelled() {
            return Err(BackendError::Cancelled);
        }
        self.stream.restart(&Draws::new(self.seed, self.island, self.step), Domain::Tail);
        self.step += 1;
        self.of_step = 0;
        Ok(())
    }

    /// Counts a round that is about to be drawn.
    pub(super) fn round(&mut self) -> Result<(), BackendError> {
        self.rounds += 1;
        self.of_step += 1;
        if self.rounds - self.reported == ROUNDS_PER_REPORT {
            self.control.advance(ROUNDS_PER_REPORT);
            self.reported = self.rounds;
        }
        if self.of_step > ROUNDS_PER_STEP { self.step() } else { Ok(()) }
    }

    /// Rounds so far, forced ones included.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }
}

/// All bins, one by one: as many words a state as they are, and as much work a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins<'a>(pub(super) &'a dyn TailBins);

impl Bins<'_> {
    fn loads<'s>(&self, state: &'s [u32]) -> &'s [u32] {
        &state[..self.0.bins() as usize]
    }
}

impl Chain for Bins<'_> {
    type State = Box<[u32]>;

    fn start(&self, walker: &mut Walker<'_>) -> Box<[u32]> {
        let mut state = vec![0; self.0.words()].into_boxed_slice();
        // A start is drawn by a seed: each time another one.
        self.0.start(walker.stream.bits(), 0, &mut state);
        state
    }

    fn advance(&self, walker: &mut Walker<'_>, state: &mut Box<[u32]>) {
        self.0.advance(&mut walker.stream, state);
    }

    fn max_load(&self, state: &Box<[u32]>) -> u64 {
        self.loads(state).iter().max().copied().unwrap_or(0).into()
    }

    fn reaching(&self, state: &Box<[u32]>, level: u64) -> u64 {
        self.loads(state).iter().filter(|load| u64::from(**load) >= level).count() as u64
    }

    fn expected_reaching(&self, counts: &mut CountTail, state: &Box<[u32]>, levels: &[u64], expected: &mut Vec<f64>) {
        self.0.expected_reaching(counts, state, levels, expected);
    }

    fn force(&self, walker: &mut Walker<'_>, state: &mut Box<[u32]>, level: u64) {
        let Walker { stream, thrower, counts, .. } = walker;
        self.0.force(stream, thrower, counts, state, level);
    }
}

/// All bins, on profiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profiles<'a>(pub(super) &'a dyn TailChain);

impl Chain for Profiles<'_> {
    type State = State;

    fn start(&self, walker: &mut Walker<'_>) -> State {
        self.0.start(&mut walker.stream, &mut walker.thrower)
    }

    fn advance(&self, walker: &mut Walker<'_>, state: &mut State) {
        let mut watch = Watch { loads: &mut |_, _| {}, further: None };
        self.0.round(&mut walker.stream, &mut walker.thrower, state, &mut watch);
    }

    fn max_load(&self, state: &State) -> u64 {
        state.bins.max_load()
    }

    fn reaching(&self, state: &State, level: u64) -> u64 {
        state.bins.levels().iter().rev().take_while(|at| at.load >= level).map(|at| at.bins).sum()
    }

    fn expected_reaching(&self, counts: &mut CountTail, state: &State, levels: &[u64], expected: &mut Vec<f64>) {
        self.0.expected_reaching(counts, &state.bins, levels, expected);
    }

    fn force(&self, walker: &mut Walker<'_>, state: &mut State, level: u64) {
        let Walker { stream, thrower, counts, .. } = walker;
        self.0.force(stream, thrower, counts, &mut state.bins, level);
    }
}
