//! One replica on its way: its loads at the rounds of the grid, and the first round that meets the level.
//!
//! Every round's max load is in the record of a stretch of rounds, but not which round had it. Only a stretch whose
//! smallest max load meets the level is therefore run again from the loads before it, in halves: counter-based
//! randomness repeats it exactly, and the first half that meets the level holds the first round that does.
//!
//! Balls outside of the bins are not in the record round by round: with such, a stretch that is watched is one round.

use super::{Seen, Spec};
use crate::backend::{self, BackendError, Control, Job};
use crate::process::{Measure, Process, Runner};
use crate::run::Schedule;
use crate::stats::Record;
use std::ops::Range;

/// Rounds of a stretch, at most: their max loads are counted one by one.
const STRETCH: u64 = 1 << 16;

/// Samples every round.
const WATCHED: Schedule = Schedule { rounds: u64::MAX, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
/// Samples none.
const UNWATCHED: Schedule = Schedule { burn_in: u64::MAX, ..WATCHED };

/// Follows replicas, one after the other.
pub(super) struct Walker<'a> {
    job: Job<'a>,
    level: u64,
    runner: Box<dyn Runner + 'a>,
    state: Vec<u32>,
    /// Loads before the stretch at hand, and those of a second look at it.
    before: Vec<u32>,
    again: Vec<u32>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(process: &'a dyn Process, spec: &Spec) -> Self {
        let job = Job { process, seed: spec.seed, schedule: WATCHED, keep_loads: false };
        let empty = || vec![0; process.words()];
        let (state, before, again) = (empty(), empty(), empty());
        Self { job, level: spec.level, runner: process.runner(), state, before, again }
    }

    /// Follows `replica` to the points of `seen`, where it is added; the first round that meets the level.
    pub(super) fn follow(
        &mut self,
        replica: u32,
        control: &Control,
        seen: &mut Seen,
    ) -> Result<Option<u64>, BackendError> {
        self.job.process.start(self.job.seed, replica, &mut self.state);
        seen.balls.initial_balls += u128::from(self.total());
        let mut first = self.recovered(self.max()).then_some(0);
        let watched = if self.elsewhere().is_empty() { STRETCH } else { 1 };
        let mut round = 0;
        for point in &mut seen.outcome.points {
            while round < point.round {
                let most = if first.is_some() { STRETCH } else { watched };
                let stretch = round..point.round.min(round + most);
                round = stretch.end;
                let record = if first.is_some() {
                    self.advance(UNWATCHED, replica, stretch, control)?
                } else {
                    self.before.copy_from_slice(&self.state);
                    let record = self.advance(WATCHED, replica, stretch.clone(), control)?;
                    if self.meets(&record) {
                        first = Some(self.first_round(replica, stretch, control)?);
                    }
                    record
                };
                seen.balls.flow.add(record.flow);
            }
            point.max_load.add(self.max(), 1);
            point.total_load.add(self.total(), 1);
        }
        seen.balls.final_balls += u128::from(self.total());
        Ok(first)
    }

    fn advance(
        &mut self,
        schedule: Schedule,
        replica: u32,
        rounds: Range<u64>,
        control: &Control,
    ) -> Result<Record, BackendError> {
        let job = Job { schedule, ..self.job };
        backend::advance(&job, &mut *self.runner, replica, &mut self.state, rounds, control)
    }

    /// Whether a round of the stretch of `record` meets the level.
    fn meets(&self, record: &Record) -> bool {
        record.max_load.iter().next().is_some_and(|(least, _)| self.recovered(least))
    }

    /// Whether `max` balls in the fullest bin, and an n-th part of those elsewhere now, are at most the level.
    fn recovered(&self, max: u64) -> bool {
        let bins = u128::from(self.job.process.bins());
        let elsewhere: u128 = self.elsewhere().iter().map(|&balls| u128::from(balls)).sum();
        u128::from(max) * bins + elsewhere <= u128::from(self.level) * bins
    }

    /// The balls outside of the bins now.
    fn elsewhere(&self) -> &[u32] {
        &self.state[self.job.process.bins() as usize..]
    }

    /// The first round of `stretch` that meets the level, counted from 1; there is one, and `before` holds the loads
    /// before it.
    fn first_round(&mut self, replica: u32, mut stretch: Range<u64>, control: &Control) -> Result<u64, BackendError> {
        while stretch.end - stretch.start > 1 {
            let half = stretch.start..stretch.start + (stretch.end - stretch.start) / 2;
            self.again.copy_from_slice(&self.before);
            let record =
                backend::advance(&self.job, &mut *self.runner, replica, &mut self.again, half.clone(), control)?;
            control.retract(half.end - half.start);
            if self.meets(&record) {
                stretch.end = half.end;
            } else {
                stretch.start = half.end;
                std::mem::swap(&mut self.before, &mut self.again);
            }
        }
        Ok(stretch.end)
    }

    fn max(&self) -> u64 {
        let bins = self.job.process.bins() as usize;
        self.state[..bins].iter().copied().max().unwrap_or(0).into()
    }

    fn total(&self) -> u64 {
        self.state.iter().map(|&load| u64::from(load)).sum()
    }
}
