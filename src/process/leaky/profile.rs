//! The leaky bins on profiles.
//!
//! A ball joins some bin of load j with probability `x^d - y^d`, x and y the fractions of the bins that have at least
//! and more than j balls at the start of the round, and each of these bins with the same: a weight of
//! `(x^d - y^d) / (x - y)`. Deletions are certain.

use super::{Arrivals, Parameters};
use crate::process::ParameterError;
use crate::process::start::Initial;
use crate::profile::{Balls, MAX_BINS, Profile, ProfileChain, TailChain, Thrower};
use crate::rng::samplers::{Rounded, binomial};
use crate::rng::stream::Stream;

/// Most balls at the start, so that no number of rounds carries them past 64 bits.
const MAX_BALLS: u128 = 1 << 62;

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct LeakyProfile {
    pub(super) bins: u64,
    pub(super) lambda: f64,
    d: u32,
    pub(super) arrivals: Law,
    initial: Initial,
}

/// Law of the number of balls of a round.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Odds of a generator to emit a ball.
    Binomial(f64),
    /// Mean number of balls.
    Poisson(f64),
    Fixed(Rounded),
}

impl LeakyProfile {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let n = parameters.n;
        if !(1..=MAX_BINS).contains(&n) {
            let (reason, remedy) = ("profiles have from 1 to 10^15 bins", "use 1 <= n <= 10^15");
            return Err(ParameterError::OutOfRange { name: "n", value: n.to_string(), reason, remedy });
        }
        parameters.check_lambda_and_d()?;
        let initial = parameters.initial(n)?;
        if let Initial::Same(h) = initial
            && u128::from(n) * u128::from(h) > MAX_BALLS
        {
            let reason = "the bins hold more than 2^62 balls in all".to_owned();
            let remedy = "use fewer bins or a smaller load";
            return Err(ParameterError::Start { start: parameters.start.to_string(), reason, remedy });
        }
        let Parameters { lambda, d, arrivals, .. } = *parameters;
        let arrivals = match arrivals {
            Arrivals::Binomial => Law::Binomial(lambda / (1.0 - lambda)),
            Arrivals::Poisson => Law::Poisson(lambda * n as f64),
            Arrivals::Fixed => Law::Fixed(Rounded::new(lambda, n)),
        };
        Ok(Self { bins: n, lambda, d: d as u32, arrivals, initial })
    }
}

impl LeakyProfile {
    /// Expected balls of a bin, for one ball a bin in all, of a load that `at_least` bins have and `above` exceed.
    pub(super) fn weight(&self, at_least: u64, above: u64) -> f64 {
        let n = self.bins as f64;
        difference_quotient(at_least as f64 / n, above as f64 / n, self.d)
    }
}

impl ProfileChain for LeakyProfile {
    fn bins(&self) -> u64 {
        self.bins
    }

    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> Profile {
        self.initial.profile(self.bins, stream, thrower)
    }

    fn arrive(&self, stream: &mut Stream, thrower: &mut Thrower, profile: &mut Profile) -> u64 {
        let balls = match &self.arrivals {
            Law::Binomial(odds) => Balls::Exactly(binomial(stream, self.bins, *odds)),
            Law::Poisson(mean) => Balls::Poisson(*mean),
            Law::Fixed(law) => Balls::Exactly(law.draw(stream.bits())),
        };
        thrower.throw(stream, profile, balls, |at_least, above| self.weight(at_least, above))
    }

    fn depart(&self, _: &mut Stream, profile: &mut Profile) -> u64 {
        profile.serve()
    }

    fn expected_balls(&self) -> f64 {
        self.lambda * self.bins as f64
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
