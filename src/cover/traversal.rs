//! One replica with its balls: the queues of the bins, and the bins that each ball has been in.
//!
//! # A round
//! Every non-empty bin, in the order of the bins, gives the ball that the discipline names: ball i of the round. Then ball
//! 0, 1, .. goes to the end of the queue of its bin, which is drawn as [`Repeated`] draws it.
//!
//! Balls are numbered from 0 on, bin by bin, and so they queue at the start: the lowest number is the first in its bin.
//!
//! # Memory and time
//! A replica takes n bits a ball for the bins that it has been in, some 41 bytes a ball and 104 bytes a bin beside them. A
//! move is four accesses to memory at random: queue, ball and bits at the bin that it goes to, and the queue that it leaves.

use super::{Spec, require_memory};
use crate::process::Process;
use crate::process::repeated::Repeated;
use crate::rng::bounded::{Packing, below};
use crate::rng::lanes::{Keys, Lanes};
use crate::rng::{Domain, Draws, key_of};
use crate::run::RunError;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem;

/// Which of its balls a bin gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// The one that came first
    #[default]
    Fifo,
    /// The one that came last
    Lifo,
    /// Any, with equal probabilities
    Random,
}

impl Queue {
    /// Its name as in `--queue`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Queue::Fifo => "fifo",
            Queue::Lifo => "lifo",
            Queue::Random => "random",
        }
    }

    /// Takes a ball from `queue`, which is that of `bin`; `None` of an empty one.
    #[inline]
    fn take(self, queue: &mut VecDeque<u32>, draws: &Draws, bin: u32) -> Option<u32> {
        match self {
            Queue::Fifo => queue.pop_front(),
            Queue::Lifo => queue.pop_back(),
            Queue::Random if queue.len() < 2 => queue.pop_back(),
            // The last ball takes the place of the one that leaves.
            Queue::Random => queue.swap_remove_back(below(draws, Domain::Queue, bin, queue.len() as u32) as usize),
        }
    }
}

/// Words drawn at once, a multiple of a block's four.
const CHUNK_WORDS: usize = 256;
/// A queue keeps room for this many balls, or for four times those that it has.
const SPARE: usize = 16;

/// A ball on its way.
#[derive(Clone, Copy, Debug)]
struct Ball {
    /// Rounds that were done when it came to its bin.
    since: u64,
    /// Bins that it has not been in.
    missing: u32,
}

/// A replica of repeated balls-into-bins whose balls have identities.
#[derive(Debug)]
pub struct Traversal {
    process: Repeated,
    packing: Packing,
    discipline: Queue,
    seed: u64,
    replica: u32,
    lanes: Lanes,
    keys: Keys,
    queues: Vec<VecDeque<u32>>,
    balls: Vec<Ball>,
    /// A row of bits for each ball: the bins that it has been in.
    visited: Vec<u64>,
    /// Words of such a row.
    row: usize,
    /// Balls given in the round at hand.
    given: Vec<u32>,
    rounds: u64,
    moves: u64,
    max_delay: u64,
    /// Balls that have been in every bin.
    finished: usize,
    first: Option<u64>,
    covered: Option<u64>,
}

impl Traversal {
    /// Replica 0 of `spec` before its first round.
    ///
    /// # Errors
    /// [`RunError`]: refused parameters, or too little memory.
    pub fn new(spec: &Spec) -> Result<Self, RunError> {
        let process = Repeated::new(&spec.parameters)?;
        let balls = spec.balls()? as usize;
        require_memory(spec, 1)?;
        let bins = process.bins();
        let row = (bins as usize).div_ceil(64);
        let mut traversal = Self {
            packing: Packing::new(bins, 1),
            process,
            discipline: spec.queue,
            seed: spec.seed,
            replica: 0,
            lanes: Lanes::best(),
            keys: Keys::new(key_of(spec.seed)),
            queues: vec![VecDeque::new(); bins as usize],
            balls: vec![Ball { since: 0, missing: 0 }; balls],
            visited: vec![0; balls * row],
            row,
            given: Vec::with_capacity(balls.min(bins as usize)),
            rounds: 0,
            moves: 0,
            max_delay: 0,
            finished: 0,
            first: None,
            covered: None,
        };
        traversal.restart(0);
        Ok(traversal)
    }

    /// Bytes that a replica takes, at most.
    pub(super) fn bytes(bins: u64, balls: u64) -> u64 {
        // A ball: itself, up to four places of four bytes in its queue, two more while that is moved, and a mark at the
        // end. A bin: its queue with the spare places, a load at the start and a ball given.
        let ball = bins.div_ceil(64) * 8 + size_of::<Ball>() as u64 + 25;
        let bin = (size_of::<VecDeque<u32>>() + 4 * SPARE + 8) as u64;
        balls.saturating_mul(ball).saturating_add(bins.saturating_mul(bin))
    }

    /// Goes to the start of `replica`.
    pub fn restart(&mut self, replica: u32) {
        (self.replica, self.rounds, self.moves, self.max_delay) = (replica, 0, 0, 0);
        (self.finished, self.first, self.covered) = (0, None, None);
        self.visited.fill(0);
        self.balls.fill(Ball { since: 0, missing: self.packing.bins });
        let mut loads = vec![0; self.queues.len()];
        self.process.start(self.seed, replica, &mut loads);
        let mut next = 0;
        for (bin, load) in (0..).zip(loads) {
            let queue = &mut self.queues[bin as usize];
            queue.clear();
            queue.extend(next..next + load);
            trim(queue);
            (next..next + load).for_each(|ball| self.visit(ball, bin));
            next += load;
        }
    }

    /// Performs one round.
    ///
    /// # Panics
    /// After 2^48 rounds.
    pub fn round(&mut self) {
        let draws = Draws::new(self.seed, self.replica, self.rounds);
        let mut given = mem::take(&mut self.given);
        given.clear();
        for (bin, queue) in (0..).zip(&mut self.queues) {
            if let Some(ball) = self.discipline.take(queue, &draws, bin) {
                trim(queue);
                self.max_delay = self.max_delay.max(self.rounds - self.balls[ball as usize].since);
                given.push(ball);
            }
        }
        self.rounds += 1;
        self.moves += given.len() as u64;
        let per_word = self.packing.balls_per_word as usize;
        let mut words = [0; CHUNK_WORDS];
        for (chunk, balls) in given.chunks(CHUNK_WORDS * per_word).enumerate() {
            let first = (chunk * CHUNK_WORDS) as u32;
            let words = &mut words[..balls.len().div_ceil(per_word)];
            self.lanes.fill(&self.keys, draws.counter(Domain::Choices, 0, first / 4), words);
            for ((number, &word), balls) in (first..).zip(&*words).zip(balls.chunks(per_word)) {
                let rejected = self.packing.rejects(word);
                let mut word = if rejected { self.packing.redraw(&draws, Domain::Choices, number) } else { word };
                for &ball in balls {
                    let wide = u64::from(word) * u64::from(self.packing.bins);
                    word = wide as u32;
                    let bin = (wide >> 32) as u32;
                    self.queues[bin as usize].push_back(ball);
                    self.balls[ball as usize].since = self.rounds;
                    self.visit(ball, bin);
                }
            }
        }
        self.given = given;
    }

    /// Marks that `ball` is in `bin` after the rounds done.
    #[inline]
    fn visit(&mut self, ball: u32, bin: u32) {
        let word = &mut self.visited[ball as usize * self.row + bin as usize / 64];
        let bit = 1 << (bin % 64);
        if *word & bit != 0 {
            return;
        }
        *word |= bit;
        let missing = &mut self.balls[ball as usize].missing;
        *missing -= 1;
        if *missing == 0 {
            self.finished += 1;
            self.first = self.first.or(Some(self.rounds));
            self.covered = (self.finished == self.balls.len()).then_some(self.rounds);
        }
    }

    /// Number of balls, m.
    #[must_use]
    pub fn balls(&self) -> u32 {
        self.balls.len() as u32
    }

    /// The balls of `bin`: in the order in which they came for [`Queue::Fifo`] and [`Queue::Lifo`], for
    /// [`Queue::Random`] with the last in the place of each that left.
    ///
    /// # Panics
    /// If there is no such bin.
    pub fn queue(&self, bin: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.queues[bin as usize].iter().copied()
    }

    /// Rounds done.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Balls that bins gave, over all rounds.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The first round after which some ball has been in every bin, 0 being the start.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// The first round after which every ball has been in every bin, 0 being the start.
    #[must_use]
    pub fn covered(&self) -> Option<u64> {
        self.covered
    }

    /// The most rounds that a ball stayed in a bin while the bin gave others; balls that still stay there count with the
    /// rounds so far.
    #[must_use]
    pub fn max_delay(&self) -> u64 {
        self.balls.iter().map(|ball| self.rounds - ball.since).fold(self.max_delay, u64::max)
    }

    /// Balls that are in a queue, each counted once: all of them, unless the program or the machine errs.
    pub(super) fn balls_in_one_queue(&self) -> u64 {
        let mut seen = vec![false; self.balls.len()];
        let queued = self.queues.iter().flatten();
        queued.filter(|&&ball| !mem::replace(&mut seen[ball as usize], true)).count() as u64
    }
}

/// Gives back room that `queue` no longer needs.
#[inline]
fn trim(queue: &mut VecDeque<u32>) {
    if queue.capacity() > SPARE.max(4 * queue.len()) {
        queue.shrink_to(SPARE.max(2 * queue.len()));
    }
}
