//! Processes on profiles: how many bins have each load, and nothing about which.
//!
//! Where bins are exchangeable the profile is a Markov chain by itself. A round is drawn from its exact law in time that
//! depends on the number of loads that occur and hardly on n: a billion bins cost little more than a thousand.
//!
//! # Not the same bits
//! The profile has the law of the process and a stream of its own ([`crate::rng::Domain::Profile`]): a run on it is
//! another sample than a run bin by bin with the same seed. It is reproducible in the same way: a replica's round is a
//! function of (seed, replica, round) and the profile before it, on any thread and in any block.
//! [`PROFILE_STREAM_VERSION`] names that function.

mod counts;
mod levels;
mod throw;

pub use counts::{Count, CountTail};
pub use levels::{Level, Profile};
pub use throw::{Balls, Thrower};

use crate::rng::stream::Stream;
use std::fmt;

/// Version of everything that fixes the bits of a run on profiles: the order of draws, the samplers, the throws.
pub const PROFILE_STREAM_VERSION: u32 = 1;

/// Most bins of a profile. Their number and the number of balls of a round are whole numbers in an `f64`.
pub const MAX_BINS: u64 = 1_000_000_000_000_000;

/// Work of a round, in balls that are thrown one by one in the same time: some tens of microseconds, whatever n.
pub const ROUND_WORK: f64 = 1e4;

/// A process with validated parameters as a Markov chain on profiles.
pub trait ProfileChain: fmt::Debug + Send + Sync {
    /// Number of bins, n, at most [`MAX_BINS`].
    fn bins(&self) -> u64;

    /// The profile before the first round; `stream` is at the first number of [`crate::rng::Domain::Start`].
    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> Profile;

    /// The arrivals of a round: adds them to `profile` and returns their number.
    fn arrive(&self, stream: &mut Stream, thrower: &mut Thrower, profile: &mut Profile) -> u64;

    /// The deletions of a round: takes them from `profile` and returns their number.
    fn depart(&self, stream: &mut Stream, profile: &mut Profile) -> u64;

    /// Expected balls moved in one round of one replica.
    fn expected_balls(&self) -> f64;

    /// The process as rare max loads need it ([`crate::tail`]), if it can be conditioned on them.
    fn tail(&self) -> Option<&dyn TailChain> {
        None
    }
}

/// A chain on profiles whose next round can be made to raise a bin to a level.
///
/// A round is its arrivals and its deletions; a bin reaches a level where its load after them is at least that.
pub trait TailChain: ProfileChain {
    /// Expected number of bins that reach each of `levels` (from 1 on) in the next round, given `profile`.
    ///
    /// `counts` is memory that belongs to this chain alone.
    fn expected_reaching(&self, counts: &mut CountTail, profile: &Profile, levels: &[u64], expected: &mut Vec<f64>);

    /// A round in which some bin reaches `level`: the bin is chosen in proportion to its probability to do so, and
    /// everything else has its law given that this bin does.
    ///
    /// A next profile in which N bins reach the level comes out with N times its probability over the expected number.
    ///
    /// # Panics
    /// If no bin of `profile` can reach the level.
    fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    );
}
