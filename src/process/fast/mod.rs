//! The fast CPU path of processes whose rounds are [`Batches`]: the bits of their definitions, many rounds at a time.
//!
//! # Method
//! A bin is a [`Cell`]: its load at the start of the round, which the choices read, and the balls that have joined it
//! since, both in the narrowest of `u8`, `u16` and `u32` that will do. Philox words come in bulk ([`Lanes`]) and become
//! bin indices in one vector pass; only the choice and the joining are done ball by ball ([`mod@throw`]). One more vector
//! pass over the cells ends the round ([`mod@finish`]). Where a round begins with its deletions they are part of that
//! pass, too: balls that choose by loads see those before the deletions, and a process with one choice sees none.
//!
//! # Why narrow cells are exact
//! Two things can go wrong in a round, and each is looked for at its end.
//! * More balls join a bin than its counter holds. Each wrap makes the sum of all cells 2^8 (or 2^16) less than (loads
//!   before + balls, less the deletions if they come first), and nothing else changes that sum, which is taken in 64
//!   bits. So the two are equal if and only if no counter wrapped.
//! * A load, at the end of the round, is larger than the type holds. The largest load is found in twice the width.
//!
//! Then all that was done since the call began is dropped, record included, and done again with wider cells: the
//! caller's loads and record are not touched before the end. In `u32` neither can happen: a round has fewer than 2^32
//! balls, and a load that starts at most at 2^31 and gains one ball a round in the mean, or none, stays in range for
//! longer than anyone computes (and if it did not, the run would stop with a panic, not go on).

mod finish;
mod throw;

use super::{Measure, Runner};
use crate::rng::Draws;
use crate::rng::bounded::Packing;
use crate::rng::lanes::{Kind, Lanes};
use crate::rng::thresholds::Thresholds;
use crate::run::Schedule;
use crate::stats::{Flow, Record};
use finish::{Cell, Load, finish};
use std::ops::Range;
use throw::Thrower;

/// Rounds in which a batch of balls is thrown, each joining a least loaded of its choices, and every non-empty bin
/// deletes one ball.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batches<'a> {
    /// Law of the number of balls that arrive in a round.
    pub(super) arrivals: &'a Thresholds,
    /// Whether the deleted balls of the round are thrown, too; they are known where the deletions come first.
    pub(super) rethrows: bool,
    /// How the bins that the balls sample are drawn.
    pub(super) packing: Packing,
    /// Which comes first.
    pub(super) order: Order,
}

/// What a round begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The throw; loads may be observed after it or at the end.
    ThrowThenDelete,
    /// The deletions; loads are observed at the end.
    DeleteThenThrow,
}

/// What to run.
struct Stretch<'a> {
    process: Batches<'a>,
    seed: u64,
    replica: u32,
    rounds: Range<u64>,
    schedule: &'a Schedule,
}

/// Runs them fast.
pub(super) struct Fast<'a> {
    process: Batches<'a>,
    thrower: Thrower,
    /// Memory for the cells, of whatever type they are: at most two words a bin.
    memory: Vec<u64>,
}

impl<'a> Fast<'a> {
    /// The runner of `process`, on the given lane set.
    pub(super) fn new(process: Batches<'a>, lanes: Lanes) -> Self {
        let thrower = Thrower::new(process.packing, lanes);
        Self { process, thrower, memory: Vec::new() }
    }
}

impl Runner for Fast<'_> {
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        loads: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    ) {
        let stretch = Stretch { process: self.process, seed, replica, rounds, schedule };
        let max = loads.iter().copied().max().unwrap_or(0);
        // A quarter of the range is left free, so that loads that fluctuate rarely make a stretch run twice.
        let fits = |most: u32| max <= most / 4 * 3;
        let mut seen = None;
        if fits(u8::MAX.into()) {
            seen = attempt::<u8>(&stretch, &mut self.thrower, &mut self.memory, loads);
        }
        if seen.is_none() && fits(u16::MAX.into()) {
            seen = attempt::<u16>(&stretch, &mut self.thrower, &mut self.memory, loads);
        }
        let seen = seen.or_else(|| attempt::<u32>(&stretch, &mut self.thrower, &mut self.memory, loads));
        record.merge(&seen.expect("a load stays below 2^32"));
    }
}

/// Runs the stretch with cells of type `T`: what was seen, or `None` where `T` turned out too narrow; `loads` is then
/// as it was.
fn attempt<T: Load>(
    stretch: &Stretch<'_>,
    thrower: &mut Thrower,
    memory: &mut Vec<u64>,
    loads: &mut [u32],
) -> Option<Record> {
    match thrower.lanes().kind() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Lanes` of this kind exists only where the instructions were detected.
        Kind::Avx2 => unsafe { attempt_avx2::<T>(stretch, thrower, memory, loads) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { attempt_avx512::<T>(stretch, thrower, memory, loads) },
        _ => attempt_here::<T>(stretch, thrower, memory, loads),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn attempt_avx2<T: Load>(
    stretch: &Stretch<'_>,
    thrower: &mut Thrower,
    memory: &mut Vec<u64>,
    loads: &mut [u32],
) -> Option<Record> {
    attempt_here::<T>(stretch, thrower, memory, loads)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
fn attempt_avx512<T: Load>(
    stretch: &Stretch<'_>,
    thrower: &mut Thrower,
    memory: &mut Vec<u64>,
    loads: &mut [u32],
) -> Option<Record> {
    attempt_here::<T>(stretch, thrower, memory, loads)
}

/// The loop itself, compiled into each of its callers with the instructions that they allow.
#[inline(always)]
fn attempt_here<T: Load>(
    stretch: &Stretch<'_>,
    thrower: &mut Thrower,
    memory: &mut Vec<u64>,
    loads: &mut [u32],
) -> Option<Record> {
    let Stretch { process, seed, replica, ref rounds, schedule } = *stretch;
    let bins = loads.len() as u64;
    let needed = (loads.len() * size_of::<Cell<T>>()).div_ceil(size_of::<u64>());
    if memory.len() < needed {
        // Afresh, so that the old memory is never held beside the new.
        *memory = Vec::new();
        *memory = vec![0; needed];
    }
    let cells: &mut [Cell<T>] = &mut bytemuck::cast_slice_mut(memory)[..loads.len()];
    for (cell, &load) in cells.iter_mut().zip(&*loads) {
        *cell = T::rested(T::wide(load));
    }
    let mut total: u64 = loads.iter().map(|&load| u64::from(load)).sum();
    let mut occupied = loads.iter().filter(|&&load| load > 0).count() as u64;
    let mut seen = Record::default();
    for round in rounds.clone() {
        let draws = Draws::new(seed, replica, round);
        let thrown_again = if process.rethrows { occupied as u32 } else { 0 };
        let balls = process.arrivals.draw(draws.arrivals()) + thrown_again;
        thrower.throw(&draws, balls, cells);
        let sampled = schedule.samples(round);
        let histogram = schedule.samples_loads(round).then_some(&mut seen.load_per_bin);
        let end = finish(cells, process.order, sampled, schedule.measure, histogram);
        let with_balls = total + u64::from(balls);
        let (conserved, largest, departed) = match process.order {
            Order::ThrowThenDelete => (with_balls, end.max.saturating_sub(1), end.occupied),
            Order::DeleteThenThrow => (with_balls - occupied, end.max, occupied),
        };
        if end.total != conserved || largest > u64::from(T::MAX) {
            return None;
        }
        seen.flow.add(Flow { arrived: balls.into(), departed: departed.into() });
        total = with_balls - departed;
        occupied = end.occupied;
        if sampled {
            match (process.order, schedule.measure) {
                (Order::ThrowThenDelete, Measure::Post) => seen.sample(largest, total, bins - end.shared),
                _ => seen.sample(end.max, end.total, bins - end.occupied),
            }
        }
    }
    for (load, &[kept, _]) in loads.iter_mut().zip(&*cells) {
        *load = kept.into();
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::leaky::{Leaky, Parameters};
    use crate::process::{Process, Reference};

    fn leaky(n: u64, lambda: f64, d: u64) -> Leaky {
        Leaky::new(&Parameters { n, lambda, d, ..Parameters::default() }).expect("valid parameters")
    }

    const SCHEDULE: Schedule = Schedule { rounds: 40, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Pre };

    fn by_attempt<T: Load>(process: &Leaky, loads: &mut [u32]) -> Option<Record> {
        let process = process.batches();
        let stretch = Stretch { process, seed: 5, replica: 1, rounds: 0..SCHEDULE.rounds, schedule: &SCHEDULE };
        let mut results = Lanes::available().iter().map(|&lanes| {
            let mut loads = loads.to_vec();
            (attempt::<T>(&stretch, &mut Thrower::new(process.packing, lanes), &mut Vec::new(), &mut loads), loads)
        });
        let (seen, after) = results.next().expect("there is a lane set");
        for other in results {
            assert_eq!(other, (seen.clone(), after.clone()), "lane sets differ");
        }
        loads.copy_from_slice(&after);
        seen
    }

    fn by_definition(process: &Leaky, loads: &mut [u32]) -> Record {
        let mut record = Record::default();
        Reference(process).advance(5, 1, loads, 0..SCHEDULE.rounds, &SCHEDULE, &mut record);
        record
    }

    /// Whether `T` is wide enough; where it is, the result is that of the definition, else nothing has changed.
    fn wide_enough<T: Load>(process: &Leaky, start: &[u32]) -> bool {
        let (mut loads, mut expected) = (start.to_vec(), start.to_vec());
        match by_attempt::<T>(process, &mut loads) {
            Some(seen) => {
                assert_eq!(seen, by_definition(process, &mut expected));
                assert_eq!(loads, expected);
                true
            }
            None => {
                assert_eq!(loads, start);
                false
            }
        }
    }

    #[test]
    fn every_width_gives_the_definition_on_every_lane_set() {
        for (n, d) in
            [(1, 2), (9, 2), (64, 1), (64, 2), (300, 3), (300, 5), (1000, 1), (1024, 1), (1025, 2), (70_000, 2)]
        {
            let process = leaky(n, 0.95, d);
            let start = vec![3; n as usize];
            assert!(wide_enough::<u8>(&process, &start));
            assert!(wide_enough::<u16>(&process, &start));
            assert!(wide_enough::<u32>(&process, &start));
        }
    }

    #[test]
    fn a_load_that_outgrows_its_cell_is_noticed() {
        // With lambda = 1 and d = 1 some of 64 bins is sure to gain a ball in 40 rounds.
        let process = leaky(64, 1.0, 1);
        assert!(!wide_enough::<u8>(&process, &[255; 64]));
        assert!(wide_enough::<u16>(&process, &[255; 64]));
        assert!(!wide_enough::<u16>(&process, &[65_535; 64]));
        assert!(wide_enough::<u32>(&process, &[65_535; 64]));
        // A load of 256 before and 255 after the deletion still fits.
        let one = leaky(1, 1.0, 1);
        assert!(wide_enough::<u8>(&one, &[255]));
        assert!(wide_enough::<u16>(&one, &[65_535]));
    }

    #[test]
    fn a_wrapped_counter_is_noticed() {
        let with_balls = |balls| {
            let process = Leaky { arrivals: Thresholds::constant(balls), ..leaky(1, 0.5, 2) };
            [wide_enough::<u8>(&process, &[0]), wide_enough::<u16>(&process, &[0]), wide_enough::<u32>(&process, &[0])]
        };
        assert_eq!(with_balls(1), [true, true, true]);
        assert_eq!(with_balls(256), [false, true, true]);
        assert_eq!(with_balls(511), [false, true, true]);
        assert_eq!(with_balls(65_536), [false, false, true]);
        assert_eq!(with_balls(70_000), [false, false, true]);
    }

    #[test]
    fn a_stretch_that_outgrows_its_cells_runs_again_in_wider_ones() {
        for (balls, start) in [(300, 0), (2, 191), (70_000, 0), (2000, 49_151)] {
            let process = Leaky { arrivals: Thresholds::constant(balls), ..leaky(1, 0.5, 2) };
            let (mut loads, mut expected) = ([start], [start]);
            let mut record = Record::default();
            let mut runner = process.runner();
            runner.advance(5, 1, &mut loads, 0..SCHEDULE.rounds, &SCHEDULE, &mut record);
            assert_eq!(record, by_definition(&process, &mut expected));
            assert_eq!(loads, expected);
        }
    }
}
