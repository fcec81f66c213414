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
mod force;
mod levels;
mod throw;
mod total;

pub use counts::{Count, CountTail};
pub use force::{Raised, Throw};
pub use levels::{Level, Profile};
pub use throw::{Balls, Thrower};
pub use total::Total;

use crate::float;
use crate::process::Measure;
use crate::rng::stream::Stream;
use crate::stats::{Flow, Further};
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

/// What a process on profiles keeps of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The bins.
    pub bins: Profile,
    /// Numbers of balls that are elsewhere, if the process has such.
    pub elsewhere: Vec<u64>,
}

impl State {
    /// Balls of the replica.
    #[must_use]
    pub fn balls(&self) -> u128 {
        self.bins.balls() + self.elsewhere.iter().map(|&balls| u128::from(balls)).sum::<u128>()
    }
}

impl From<Profile> for State {
    fn from(bins: Profile) -> Self {
        Self { bins, elsewhere: Vec::new() }
    }
}

/// Watches a round.
pub struct Watch<'a> {
    /// Takes the bins as they are at this point of the round.
    pub loads: &'a mut dyn FnMut(Measure, &Profile),
    /// Takes the observables that the process has beside the loads, if the round is sampled.
    pub further: Option<&'a mut Further>,
}

/// A process with validated parameters as a Markov chain on profiles.
pub trait ProfileChain: fmt::Debug + Send + Sync {
    /// Number of bins, n, at most [`MAX_BINS`].
    fn bins(&self) -> u64;

    /// The state before the first round; `stream` is at the first number of [`crate::rng::Domain::Start`].
    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> State;

    /// Performs one round on `state`, whose bins it shows to `watch` wherever in the round they may be observed.
    fn round(&self, stream: &mut Stream, thrower: &mut Thrower, state: &mut State, watch: &mut Watch<'_>) -> Flow;

    /// About the work of a round, in balls that are thrown one by one, for sizing what is done at once: from
    /// [`ROUND_WORK`] on, and more where many loads occur.
    fn round_work(&self) -> f64;

    /// Law of the balls that a bin gets in a round, as parts of a mixture with their probabilities, where it depends on
    /// neither the loads nor the rounds before: each bin is then a Markov chain by itself. The balls of different bins
    /// have to be negatively associated (Joag-Dev and Proschan 1983), as those of throws of independent balls are.
    fn one_bin(&self) -> Option<[(f64, Count); 2]> {
        None
    }

    /// The process as rare max loads need it ([`crate::tail`]), if it can be conditioned on them.
    fn tail(&self) -> Option<&dyn TailChain> {
        None
    }
}

/// A chain on profiles, with nothing elsewhere, whose next round can be made to raise a bin to a level.
///
/// A bin reaches a level where its load at the end of a round is at least that. [`Throw`] does both for a round that is
/// one throw.
pub trait TailChain: ProfileChain {
    /// Appends the expected number of bins that reach each of `levels` (from 1 on) in the next round, given `profile`.
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
