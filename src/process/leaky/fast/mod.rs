//! The fast CPU path of the leaky bins: the bits of [`Leaky`]'s round, many rounds at a time.
//!
//! # Method
//! Loads are kept in the narrowest of `u8`, `u16` and `u32` that holds them, twice: as they were at the start of the
//! round, which the choices read ([`State::before`]), and with the balls that joined since ([`State::after`]). Philox
//! words come in bulk ([`Lanes`]), become bin indices in one vector pass ([`throw`]), and only the choice and the
//! joining itself is scalar. One more vector pass over the bins ends the round ([`finish`]).
//!
//! # Why narrow loads are exact
//! A ball that joins a full bin wraps its load in `after`, and the sum of `after` falls short of (loads before + balls)
//! by 2^8 (or 2^16) for each wrap; nothing else changes that sum. It is therefore equal to (loads before + balls) if
//! and only if no load wrapped in this round, and that is compared at the end of every round. On a mismatch all that
//! was done since the call began is dropped, tally included, and done again with the next wider loads: the caller's
//! loads and tally are not touched before the end. The choices read `before` only, so that a wrap never steers one
//! before it is found.

mod finish;
mod throw;

use super::Leaky;
use crate::process::{Measure, Runner};
use crate::rng::Draws;
use crate::rng::lanes::{Kind, Lanes};
use crate::run::Schedule;
use crate::stats::{Flow, Tally};
use finish::{Cell, Load, finish};
use std::ops::Range;
use throw::Thrower;

/// What to run: the arguments of [`Runner::advance`] that do not change.
struct Stretch<'a> {
    seed: u64,
    replica: u32,
    rounds: Range<u64>,
    schedule: &'a Schedule,
}

/// Runs leaky bins fast.
pub(super) struct Fast<'a> {
    process: &'a Leaky,
    lanes: Lanes,
    thrower: Thrower,
    bytes: Vec<Cell<u8>>,
    halves: Vec<Cell<u16>>,
    words: Vec<Cell<u32>>,
}

impl<'a> Fast<'a> {
    pub(super) fn new(process: &'a Leaky) -> Self {
        Self::with_lanes(process, Lanes::best())
    }

    fn with_lanes(process: &'a Leaky, lanes: Lanes) -> Self {
        let thrower = Thrower::new(process.packing, lanes);
        Self { process, lanes, thrower, bytes: Vec::new(), halves: Vec::new(), words: Vec::new() }
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
        tally: &mut Tally,
    ) {
        let stretch = Stretch { seed, replica, rounds, schedule };
        let Self { process, lanes, thrower, bytes, halves, words } = self;
        // Half the range is left free, so that loads that fluctuate rarely make a stretch run twice.
        let max = loads.iter().copied().max().unwrap_or(0);
        let seen = (max < 1 << 7)
            .then(|| attempt(*lanes, process, thrower, bytes, loads, &stretch))
            .flatten()
            .or_else(|| (max < 1 << 15).then(|| attempt(*lanes, process, thrower, halves, loads, &stretch)).flatten())
            .or_else(|| attempt(*lanes, process, thrower, words, loads, &stretch));
        tally.merge(&seen.expect("a load stays below 2^32"));
    }
}

/// Runs the stretch with loads of type `T`: what was seen, or `None` where a load passed the range of `T`; `loads` is
/// then as it was.
fn attempt<T: Load>(
    lanes: Lanes,
    process: &Leaky,
    thrower: &mut Thrower,
    cells: &mut Vec<Cell<T>>,
    loads: &mut [u32],
    stretch: &Stretch<'_>,
) -> Option<Tally> {
    match lanes.kind() {
        // SAFETY (both): a `Lanes` of this kind exists only where the instructions were detected.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { attempt_avx2(process, thrower, cells, loads, stretch) },
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { attempt_avx512(process, thrower, cells, loads, stretch) },
        _ => attempt_here(process, thrower, cells, loads, stretch),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn attempt_avx2<T: Load>(
    process: &Leaky,
    thrower: &mut Thrower,
    cells: &mut Vec<Cell<T>>,
    loads: &mut [u32],
    stretch: &Stretch<'_>,
) -> Option<Tally> {
    attempt_here(process, thrower, cells, loads, stretch)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
fn attempt_avx512<T: Load>(
    process: &Leaky,
    thrower: &mut Thrower,
    cells: &mut Vec<Cell<T>>,
    loads: &mut [u32],
    stretch: &Stretch<'_>,
) -> Option<Tally> {
    attempt_here(process, thrower, cells, loads, stretch)
}

/// The loop itself, compiled into each of its callers with the instructions that they allow.
#[inline(always)]
fn attempt_here<T: Load>(
    process: &Leaky,
    thrower: &mut Thrower,
    cells: &mut Vec<Cell<T>>,
    loads: &mut [u32],
    stretch: &Stretch<'_>,
) -> Option<Tally> {
    let bins = loads.len() as u64;
    cells.clear();
    cells.extend(loads.iter().map(|&load| T::rested(T::wide(load))));
    let mut total: u64 = loads.iter().map(|&load| u64::from(load)).sum();
    let mut seen = Tally::default();
    for round in stretch.rounds.clone() {
        let draws = Draws::new(stretch.seed, stretch.replica, round);
        let balls = process.arrivals.draw(draws.arrivals());
        thrower.throw(&draws, balls, cells);
        let sampled = stretch.schedule.samples(round);
        let histogram = stretch.schedule.samples_loads(round).then_some(&mut seen.load_per_bin);
        let end = finish(cells, sampled, stretch.schedule.measure, histogram);
        let max = end.max.saturating_sub(1);
        if end.total != total + u64::from(balls) || max > u64::from(T::MAX) {
            return None;
        }
        seen.flow.add(Flow { arrived: u64::from(balls), departed: end.occupied });
        total = end.total - end.occupied;
        if sampled {
            match stretch.schedule.measure {
                Measure::Pre => seen.sample(end.max, end.total, bins - end.occupied),
                Measure::Post => seen.sample(max, total, bins - end.shared),
            }
        }
    }
    for (load, &[kept, _]) in loads.iter_mut().zip(&*cells) {
        *load = kept.into();
    }
    Some(seen)
}
