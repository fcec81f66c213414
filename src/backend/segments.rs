//! Blocks in segments: replicas that can be left in the middle and taken up again, by another process if need be.
//!
//! What is kept of a replica under way is its state, its record so far and its next round: nothing else is carried from
//! one round to the next, so that where a segment ends is invisible in the result. A GPU leaves and takes up the same, in
//! [chunks](super::gpu).

use super::{BackendError, Control, check_conservation};
use crate::stats::{Record, Tally};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A replica under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its next round.
    pub round: u64,
    /// Its state: its words, or of a profile the number of its levels, load and number of bins of each, one after the
    /// other, and the numbers of balls elsewhere.
    pub state: Vec<u64>,
    /// What it has shown so far.
    pub record: Record,
}

/// A replica that is not finished, by its number: under way, or not begun.
pub(super) type Left = (u64, Option<Box<Begun>>);

/// A block in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// What the finished replicas have shown; the initial balls also of those under way, and on a GPU what is counted there
    /// over all replicas of a chunk: loads of bins and waiting times.
    pub tally: Tally,
    /// The replicas that are not finished: under way, or not begun.
    pub left: Vec<Left>,
}

impl Partial {
    /// A block of which nothing is done.
    pub(super) fn fresh(block: Range<u64>) -> Self {
        Self { tally: Tally::default(), left: block.map(|replica| (replica, None)).collect() }
    }

    /// Rounds done, over all replicas of `rounds` rounds each.
    pub(super) fn done(&self, rounds: u64) -> u64 {
        let begun = self.left.iter().filter_map(|(_, begun)| begun.as_ref());
        self.tally.replicas * rounds + begun.map(|begun| begun.round).sum::<u64>()
    }

    pub(super) fn merged(mut self, other: Self) -> Self {
        self.tally.merge(&other.tally);
        self.left.extend(other.left);
        self
    }
}

/// Keeps a block that takes long, in the middle.
pub trait Keeper: Sync {
    /// Where the block was left, if it was.
    fn resume(&self) -> Option<Partial>;

    /// Whether it is time to keep it: every so often, and before a run that is interrupted ends.
    fn is_due(&self) -> bool;

    /// Keeps it. Where that fails the run goes on.
    fn keep(&self, partial: &Partial);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unkept;

impl Keeper for Unkept {
    fn resume(&self) -> Option<Partial> {
        None
    }

    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: &Partial) {}
}

/// One thread's memory for the replica that it runs.
pub(super) trait Walker: Send {
    /// Begins `replica`.
    fn start(&mut self, replica: u64);

    /// Takes up a replica in this state.
    fn resume(&mut self, state: &[u64]);

    /// The state of the replica, from which [`resume`](Self::resume) goes on.
    fn state(&self) -> Vec<u64>;

    /// Balls of the replica.
    fn balls(&self) -> u128;

    /// Runs some rounds of `replica`.
    fn step(&mut self, replica: u64, rounds: Range<u64>, record: &mut Record) -> Result<(), BackendError>;
}

/// How a block is run.
pub(super) struct Segments<'a> {
    /// Rounds of each replica.
    pub(super) rounds: u64,
    /// Rounds between two looks at control and keeper.
    pub(super) step: u64,
    pub(super) control: &'a Control<'a>,
    pub(super) keeper: &'a dyn Keeper,
}

impl Segments<'_> {
    /// Runs all replicas of `block`, in as many segments as the keeper asks for.
    pub(super) fn block<W: Walker>(
        &self,
        block: Range<u64>,
        walker: impl Fn() -> W + Send + Sync,
    ) -> Result<Tally, BackendError> {
        let mut partial = self.keeper.resume().unwrap_or_else(|| Partial::fresh(block.clone()));
        let mut kept = partial.done(self.rounds);
        self.control.advance(kept);
        loop {
            let paused = AtomicBool::new(false);
            // One by one, those under way first: no thread begins another while one of them waits, so that there are never
            // more of them than threads.
            partial.left.sort_unstable_by_key(|(replica, begun)| (begun.is_none(), *replica));
            let rest = (std::mem::take(&mut partial.left).into_iter().par_bridge())
                .try_fold(
                    || (walker(), Partial::default()),
                    |(mut walker, mut rest), (replica, begun)| {
                        self.replica(&mut walker, (replica, begun), &mut rest, &paused)?;
                        Ok((walker, rest))
                    },
                )
                .map(|folded| folded.map(|(_, rest)| rest))
                .try_reduce(Partial::default, |a, b| Ok(a.merged(b)))?;
            partial = partial.merged(rest);
            if partial.left.is_empty() {
                check_conservation(&partial.tally, &block)?;
                return Ok(partial.tally);
            }
            let (cancelled, done) = (self.control.is_cancelled(), partial.done(self.rounds));
            if done > kept && (!cancelled || self.keeper.is_due()) {
                self.keeper.keep(&partial);
                kept = done;
            }
            if cancelled {
                return Err(BackendError::Cancelled);
            }
        }
    }

    /// Runs a replica to its end, or at least a step of it unless the segment has ended before: one ends when it is time to
    /// keep the block, or when the run is cancelled. What is seen, or what is left, goes to `rest`.
    pub(super) fn replica<W: Walker>(
        &self,
        walker: &mut W,
        (replica, begun): Left,
        rest: &mut Partial,
        paused: &AtomicBool,
    ) -> Result<(), BackendError> {
        if paused.load(Ordering::Relaxed) || self.control.is_cancelled() {
            rest.left.push((replica, begun));
            return Ok(());
        }
        let (mut round, mut record) = match begun.map(|begun| *begun) {
            Some(Begun { round, state, record }) => {
                walker.resume(&state);
                (round, record)
            }
            None => {
                walker.start(replica);
                rest.tally.initial_balls += walker.balls();
                (0, Record::default())
            }
        };
        while round < self.rounds {
            let end = (round + self.step).min(self.rounds);
            walker.step(replica, round..end, &mut record)?;
            self.control.advance(end - round);
            round = end;
            if self.keeper.is_due() || self.control.is_cancelled() {
                paused.store(true, Ordering::Relaxed);
            }
            if round < self.rounds && paused.load(Ordering::Relaxed) {
                rest.left.push((replica, Some(Box::new(Begun { round, state: walker.state(), record }))));
                return Ok(());
            }
        }
        rest.tally.final_balls += walker.balls();
        rest.tally.add(&record);
        Ok(())
    }
}
