//! What a process offers, bin by bin, to rare max loads.

use super::Process;
use crate::profile::{CountTail, Thrower};
use crate::rng::stream::Stream;

/// A process whose next round can be made to raise a bin to a level, bin by bin: [`TailChain`](crate::profile::TailChain)
/// for bins that need not be alike.
///
/// Its rounds have the law of [`Process::round`] and are drawn from a stream: other samples than those of a run. A bin
/// reaches a level where its load at the end of a round is at least that.
pub trait TailBins: Process {
    /// Performs a round on `state`.
    fn advance(&self, stream: &mut Stream, state: &mut [u32]);

    /// Appends the expected number of bins that reach each of `levels` (from 1 on) in the next round, given `state`.
    ///
    /// `counts` is memory that belongs to this process alone.
    fn expected_reaching(&self, counts: &mut CountTail, state: &[u32], levels: &[u64], expected: &mut Vec<f64>);

    /// A round in which some bin reaches `level`: the bin is chosen in proportion to its probability to do so, and
    /// everything else has its law given that this bin does.
    ///
    /// # Panics
    /// If no bin can reach the level.
    fn force(&self, stream: &mut Stream, thrower: &mut Thrower, counts: &mut CountTail, state: &mut [u32], level: u64);
}
