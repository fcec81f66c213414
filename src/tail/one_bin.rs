//! One bin alone, where its balls do not depend on the other bins: with one choice.

use super::chain::{Chain, Walker};
use crate::profile::{Count, CountTail, ProfileChain};
use crate::rng::stream::Stream;

/// Equal parts of the unit interval that the search for a number of balls begins from.
const PARTS: usize = 1024;

/// A bin that gets an independent number of balls each round, and deletes one if it has any.
pub(super) struct OneBin<'a> {
    /// All bins, one of which is looked at.
    all: &'a dyn ProfileChain,
    balls: CountTail,
    /// For each part of the unit interval, the balls at its upper end: at least so many below it.
    at_least: Vec<u32>,
}

impl<'a> OneBin<'a> {
    /// A bin of `all` with this law of its balls; it is never asked to reach more than `highest`.
    pub(super) fn new(all: &'a dyn ProfileChain, law: [(f64, Count); 2], highest: u64) -> Self {
        let mut balls = CountTail::default();
        balls.set(law, highest + 1);
        let ends = (1..=PARTS).map(|end| end as f64 / PARTS as f64);
        let at_least = ends.map(|end| (1..).take_while(|&a| balls.at_least(a) >= end).count() as u32).collect();
        Self { all, balls, at_least }
    }

    /// Balls of a round.
    fn draw(&self, stream: &mut Stream) -> u64 {
        let target = stream.unit();
        let part = ((target * PARTS as f64) as usize).min(PARTS - 1);
        let mut balls = u64::from(self.at_least[part]);
        while self.balls.at_least(balls + 1) >= target {
            balls += 1;
        }
        balls
    }
}

/// Balls that raise a bin of load `load` to `level` after its deletion.
fn needed(level: u64, load: u64) -> u64 {
    (level + 1).saturating_sub(load)
}

impl Chain for OneBin<'_> {
    type State = u64;

    fn start(&self, walker: &mut Walker<'_>) -> u64 {
        let Walker { stream, thrower, .. } = walker;
        let profile = self.all.start(stream, thrower).bins;
        let place = stream.below(profile.bins());
        let mut below = 0;
        let mut is_here = |bins: u64| {
            below += bins;
            place < below
        };
        profile.levels().iter().find(|at| is_here(at.bins)).expect("the place is one of the bins").load
    }

    fn advance(&self, walker: &mut Walker<'_>, load: &mut u64) {
        *load = (*load + self.draw(&mut walker.stream)).saturating_sub(1);
    }

    fn max_load(&self, load: &u64) -> u64 {
        *load
    }

    fn reaching(&self, &load: &u64, level: u64) -> u64 {
        u64::from(load >= level)
    }

    fn expected_reaching(&self, _: &mut CountTail, &load: &u64, levels: &[u64], expected: &mut Vec<f64>) {
        expected.extend(levels.iter().map(|&level| self.balls.at_least(needed(level, load))));
    }

    fn force(&self, walker: &mut Walker<'_>, load: &mut u64, level: u64) {
        *load = (*load + self.balls.draw(&mut walker.stream, needed(level, *load))).saturating_sub(1);
    }
}
