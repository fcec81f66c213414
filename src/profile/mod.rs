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

mod levels;
mod throw;

pub use levels::{Level, Profile};
pub use throw::{Balls, Thrower};

use crate::float;
use crate::process::Measure;
use crate::rng::stream::Stream;
use crate::stats::Flow;
use std::fmt;

/// Version of everything that fixes the bits of a run on profiles: the order of draws, the samplers, the throws.
pub const PROFILE_STREAM_VERSION: u32 = 1;

/// Most bins of a profile. Their number and the number of balls of a round are whole numbers in an `f64`.
pub const MAX_BINS: u64 = 1_000_000_000_000_000;

/// Work of a round where few loads occur, in balls that are thrown one by one in the same time: some tens of
/// microseconds, whatever n.
pub const ROUND_WORK: f64 = 1e4;

/// About the work of a round of throws with one choice among `n` bins, whose loads have a `drift` of so many balls a
/// round towards 0: the fraction of the bins with load k or more is near `exp(-2 drift k)`, and each load that occurs
/// costs as much as 300 balls.
pub(crate) fn one_choice_work(n: u64, drift: f64) -> f64 {
    let n = n as f64;
    ROUND_WORK + 300.0 * (float::ln(n) / (2.0 * drift)).min(n)
}

/// A process with validated parameters as a Markov chain on profiles.
pub trait ProfileChain: fmt::Debug + Send + Sync {
    /// Number of bins, n, at most [`MAX_BINS`].
    fn bins(&self) -> u64;

    /// The profile before the first round; `stream` is at the first number of [`crate::rng::Domain::Start`].
    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> Profile;

    /// Performs one round on `profile`, which it shows to `seen` wherever in the round it may be observed.
    fn round(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        profile: &mut Profile,
        seen: &mut dyn FnMut(Measure, &Profile),
    ) -> Flow;

    /// About the work of a round, in balls that are thrown one by one, for sizing what is done at once: from
    /// [`ROUND_WORK`] on, and more where many loads occur.
    fn round_work(&self) -> f64;
}
