//! The leaky bins on profiles.
//!
//! A ball joins some bin of load j with probability `x^d - y^d`, x and y the fractions of the bins that have at least
//! and more than j balls at the start of the round, and each of these bins with the same: a weight of
//! `(x^d - y^d) / (x - y)`. Deletions are certain.

use super::Parameters;
use crate::process::start::Initial;
use crate::process::{Measure, ParameterError, profile_bins};
use crate::profile::{Count, ProfileChain, ROUND_WORK, State, TailChain, Thrower, Total, Watch, one_choice_work};
use crate::rng::stream::Stream;
use crate::stats::Flow;

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct LeakyProfile {
    pub(super) bins: u64,
    lambda: f64,
    pub(super) d: u32,
    pub(super) arrivals: Total,
    initial: Initial,
}

impl LeakyProfile {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let n = profile_bins(parameters.n)?;
        parameters.check_lambda_and_d()?;
        let initial = parameters.initial(n)?.for_profile(&parameters.start, n)?;
        let Parameters { lambda, d, arrivals, .. } = *parameters;
        Ok(Self { bins: n, lambda, d: d as u32, arrivals: arrivals.total(lambda, n), initial })
    }
}

/// Expected balls of a bin, for one ball a bin in all, of a load that `at_least` of `bins` bins have and `above` exceed.
pub(super) fn weight(bins: u64, d: u32, at_least: u64, above: u64) -> f64 {
    let n = bins as f64;
    difference_quotient(at_least as f64 / n, above as f64 / n, d)
}

impl ProfileChain for LeakyProfile {
    fn bins(&self) -> u64 {
        self.bins
    }

    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> State {
        self.initial.profile(self.bins, stream, thrower).into()
    }

    fn round(&self, stream: &mut Stream, thrower: &mut Thrower, state: &mut State, watch: &mut Watch<'_>) -> Flow {
        let profile = &mut state.bins;
        let balls = self.arrivals.draw(stream);
        let arrived =
            thrower.throw(stream, profile, balls, |at_least, above| weight(self.bins, self.d, at_least, above));
        (watch.loads)(Measure::Pre, profile);
        let departed = profile.serve();
        (watch.loads)(Measure::Post, profile);
        Flow { arrived: arrived.into(), departed: departed.into() }
    }

    fn round_work(&self) -> f64 {
        if self.d > 1 { ROUND_WORK } else { one_choice_work(self.bins, 1.0 - self.lambda) }
    }

    fn one_bin(&self) -> Option<[(f64, Count); 2]> {
        // Every bin has the weight 1, whatever the loads.
        (self.d == 1).then(|| self.arrivals.of_bin(1.0 / self.bins as f64))
    }

    fn tail(&self) -> Option<&dyn TailChain> {
        Some(self)
    }
}

/// `(x^d - y^d) / (x - y)` as the sum of `x^i y^(d-1-i)`.
///
/// # Numerics
/// Positive terms only: relative error below 3 d 2^-53, that of `x` and `y` included, however close they are.
fn difference_quotient(x: f64, y: f64, d: u32) -> f64 {
    let (mut quotient, mut power) = (1.0, 1.0);
    for _ in 1..d {
        power *= x;
        quotient = quotient * y + power;
    }
    quotient
}
