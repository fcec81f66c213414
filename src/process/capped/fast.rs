//! The fast CPU path of CAPPED(c, lambda): the bits of [`Capped`]'s round.
//!
//! Philox words come in bulk ([`Lanes`]) and become bin indices in one pass over a chunk of balls that fits the first-level
//! cache; then the balls ask their bins one by one, oldest first, without a branch that depends on a load. Since the age
//! is the same for long stretches of balls, waiting times are counted by place and added to the histogram once an age;
//! places beyond the usual ones go there at once, so that no table is as long as the largest load.

use super::{AGES, Capped};
use crate::process::{Measure, Runner};
use crate::rng::lanes::{Keys, Lanes};
use crate::rng::{Domain, Draws};
use crate::run::Schedule;
use crate::stats::{Flow, Further, Record};
use std::ops::Range;

/// Words drawn at once: with their indices they stay in the first-level cache.
const CHUNK_WORDS: u32 = 512;
/// Words are drawn in multiples of this (one vector group), so that no fill ends in the middle of one.
const ROUND_UP: usize = 16;

/// Places below this are counted by place.
const USUAL_PLACES: usize = 4096;

/// Runs CAPPED(c, lambda) fast.
pub(super) struct Fast<'a> {
    process: &'a Capped,
    bins: Bins,
    /// Balls accepted of the age at hand, by the place that they found, for the usual places.
    by_place: Vec<u64>,
    /// Largest age in the pool.
    oldest: usize,
}

/// The bins that the balls of a round ask, in the order of the balls.
struct Bins {
    lanes: Lanes,
    /// Round keys of the last seed.
    keys: Keys,
    key: [u32; 2],
    words: Vec<u32>,
    indices: Vec<u32>,
    /// Indices drawn and not yet taken.
    ready: Range<usize>,
    /// Words of the round not yet drawn.
    left: Range<u32>,
}

impl Bins {
    /// Begins the round of `draws`, in which so many words are needed.
    fn restart(&mut self, draws: &Draws, words: u32) {
        if self.key != draws.key() {
            self.key = draws.key();
            self.keys = Keys::new(self.key);
        }
        (self.left, self.ready) = (0..words, 0..0);
    }

    /// The bins of the next balls, at least one and at most `most`.
    #[inline]
    fn take(&mut self, process: &Capped, draws: &Draws, most: u32) -> &[u32] {
        if self.ready.is_empty() {
            self.draw(process, draws);
        }
        let taken = self.ready.start..self.ready.end.min(self.ready.start + most as usize);
        self.ready.start = taken.end;
        &self.indices[taken]
    }

    /// Draws the next chunk of words and turns it into indices.
    fn draw(&mut self, process: &Capped, draws: &Draws) {
        let packing = &process.packing;
        let first = self.left.start;
        let count = CHUNK_WORDS.min(self.left.len() as u32);
        self.left.start += count;
        let words = &mut self.words[..(count as usize).next_multiple_of(ROUND_UP)];
        self.lanes.fill(&self.keys, draws.counter(Domain::Choices, 0, first / 4), words);
        let per_word = packing.indices_per_word as usize;
        for ((word, indices), number) in words.iter().zip(self.indices.chunks_exact_mut(per_word)).zip(first..) {
            let word = if packing.rejects(*word) { packing.redraw(draws, Domain::Choices, number) } else { *word };
            let mut left = u64::from(word);
            for index in indices {
                let wide = left * u64::from(packing.bins);
                *index = (wide >> 32) as u32;
                left = wide & u64::from(u32::MAX);
            }
        }
        self.ready = 0..count as usize * per_word;
    }
}

impl<'a> Fast<'a> {
    /// The runner of `process`, on the given lane set.
    pub(super) fn new(process: &'a Capped, lanes: Lanes) -> Self {
        let words = (CHUNK_WORDS as usize).next_multiple_of(ROUND_UP);
        let indices = vec![0; words * process.packing.indices_per_word as usize];
        let keys = Keys::new([0; 2]);
        let bins = Bins { lanes, keys, key: [0; 2], words: vec![0; words], indices, ready: 0..0, left: 0..0 };
        Self { process, bins, by_place: Vec::new(), oldest: 0 }
    }

    /// Lets the balls of a round ask their bins; returns how many arrive.
    fn throw(&mut self, draws: &Draws, loads: &mut [u32], pool: &mut [u32], mut seen: Option<&mut Further>) -> u32 {
        let arrived = self.process.arrivals.draw(draws.arrivals());
        let balls = sum(&pool[..self.oldest]) + u64::from(arrived);
        self.bins.restart(draws, self.process.words_of(balls));
        for age in (0..=self.oldest).rev() {
            let balls = if age == 0 { arrived } else { std::mem::take(&mut pool[age - 1]) };
            let accepted = match &mut seen {
                Some(further) => {
                    let accepted =
                        self.ask::<true>(draws, loads, balls, |place| further.count(0, age as u64 + place, 1));
                    for (place, count) in (0..).zip(&mut self.by_place).filter(|(_, count)| **count > 0) {
                        further.count(0, age as u64 + place, std::mem::take(count).into());
                    }
                    accepted
                }
                None => self.ask::<false>(draws, loads, balls, |_| ()),
            };
            pool[age.min(AGES - 1)] += balls - accepted;
        }
        // What was of the largest age is older by one now, if it is there.
        self.oldest = oldest(&pool[..AGES.min(self.oldest + 1)]);
        arrived
    }

    /// Lets the next `balls` balls, all of one age, ask their bins; returns how many are accepted. With `BY_PLACE` those
    /// accepted are counted, at an unusual place by `unusual`.
    #[inline(always)]
    fn ask<const BY_PLACE: bool>(
        &mut self,
        draws: &Draws,
        loads: &mut [u32],
        balls: u32,
        mut unusual: impl FnMut(u64),
    ) -> u32 {
        let places = self.process.places;
        let (mut left, mut accepted) = (balls, 0);
        while left > 0 {
            let bins = self.bins.take(self.process, draws, left);
            left -= bins.len() as u32;
            for &bin in bins {
                let load = &mut loads[bin as usize];
                let has_room = *load < places;
                if BY_PLACE && has_room {
                    let place = *load as usize;
                    if place >= USUAL_PLACES {
                        unusual(place as u64);
                    } else {
                        if place >= self.by_place.len() {
                            self.by_place.resize(place + 1, 0);
                        }
                        self.by_place[place] += 1;
                    }
                }
                *load += u32::from(has_room);
                accepted += u32::from(has_room);
            }
        }
        accepted
    }
}

impl Runner for Fast<'_> {
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        state: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    ) {
        let (loads, pool) = state.split_at_mut(self.process.packing.bins as usize);
        self.oldest = oldest(pool);
        for round in rounds {
            let draws = Draws::new(seed, replica, round);
            let sampled = schedule.samples(round);
            let arrived = self.throw(&draws, loads, pool, sampled.then_some(&mut record.further));
            let mut departed = 0u64;
            if sampled {
                let (mut max, mut total, mut empty) = (0, 0, 0);
                let counted = schedule.samples_loads(round);
                for load in &mut *loads {
                    let pre = *load;
                    *load -= u32::from(pre > 0);
                    departed += u64::from(pre > 0);
                    let seen = if schedule.measure == Measure::Pre { pre } else { *load };
                    max = seen.max(max);
                    total += u64::from(seen);
                    empty += u64::from(seen == 0);
                    if counted {
                        record.load_per_bin.add(seen.into(), 1);
                    }
                }
                record.sample(max.into(), total, empty);
                record.further.number(0, sum(&pool[..self.oldest]));
            } else {
                for load in &mut *loads {
                    let busy = u32::from(*load > 0);
                    *load -= busy;
                    departed += u64::from(busy);
                }
            }
            record.flow.add(Flow { arrived: arrived.into(), departed: departed.into() });
        }
    }
}

/// Largest age in a pool by age; 0 where it is empty.
fn oldest(pool: &[u32]) -> usize {
    pool.iter().rposition(|&balls| balls > 0).map_or(0, |i| i + 1)
}

/// Balls in a pool by age.
fn sum(pool: &[u32]) -> u64 {
    pool.iter().map(|&balls| u64::from(balls)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::capped::{Capacity, Parameters};
    use crate::process::start::Start;
    use crate::process::{Process, Reference};

    #[test]
    fn every_lane_set_gives_the_definition() {
        let schedule = Schedule { rounds: 30, burn_in: 3, every: 2, loads_every: 2, measure: Measure::Pre };
        for (n, c, lambda, start) in [
            (1, Capacity::Finite(1), 1.0, Start::OneBin(9)),
            (3, Capacity::Finite(2), 0.75, Start::Random(5000)),
            (64, Capacity::Finite(1), 0.9375, Start::Empty),
            (1000, Capacity::Finite(3), 0.99, Start::Each(23)),
            (1024, Capacity::Infinite, 0.95, Start::Each(3)),
            (16, Capacity::Infinite, 0.95, Start::OneBin(4100)),
            (70_000, Capacity::Finite(2), 0.95, Start::MeanField),
        ] {
            let process = Capped::new(&Parameters { n, c, lambda, start, ..Parameters::default() }).expect("valid");
            let run = |runner: &mut dyn Runner| {
                let (mut state, mut record) = (vec![0; process.words()], Record::default());
                process.start(7, 2, &mut state);
                runner.advance(7, 2, &mut state, 0..9, &schedule, &mut record);
                runner.advance(7, 2, &mut state, 9..schedule.rounds, &schedule, &mut record);
                (state, record)
            };
            let expected = run(&mut Reference(&process));
            for &lanes in Lanes::available() {
                let mut fast = Fast::new(&process, lanes);
                assert!(run(&mut fast) == expected, "n {n}, c {c}, {}", lanes.name());
                assert!(fast.by_place.len() <= USUAL_PLACES, "memory does not grow with the largest load");
            }
        }
    }
}
