//! The fast CPU path of the leaky bins. (Placeholder: the plain runner.)

use super::Leaky;
use crate::process::{Reference, Runner};
use crate::run::Schedule;
use crate::stats::Tally;
use std::ops::Range;

/// Runs leaky bins fast.
pub(super) struct Fast<'a>(Reference<'a>);

impl<'a> Fast<'a> {
    pub(super) fn new(process: &'a Leaky) -> Self {
        Self(Reference(process))
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
        self.0.advance(seed, replica, loads, rounds, schedule, tally);
    }
}
