//! How many balls a throw has in all.

use super::{Balls, Count};
use crate::rng::samplers::{Rounded, binomial};
use crate::rng::stream::Stream;

/// Law of the number of balls of a throw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Total {
    /// Each of so many generators emits a ball with the same probability.
    Binomial(u64, f64),
    /// A Poisson number of this mean.
    Poisson(f64),
    /// One of two neighbouring numbers.
    Rounded(Rounded),
    /// So many.
    Exactly(u64),
}

/// No second part of a mixture.
pub(super) const NONE: (f64, Count) = (0.0, Count::Poisson(0.0));

/// Odds of an event of probability `p`.
pub(super) fn odds(p: f64) -> f64 {
    p / (1.0 - p)
}

impl Total {
    /// The balls of a throw, or the Poisson mean of their number.
    pub fn draw(&self, stream: &mut Stream) -> Balls {
        match *self {
            Total::Binomial(generators, p) => Balls::Exactly(binomial(stream, generators, odds(p))),
            Total::Poisson(mean) => Balls::Poisson(mean),
            Total::Rounded(law) => Balls::Exactly(law.draw(stream.bits())),
            Total::Exactly(balls) => Balls::Exactly(balls),
        }
    }

    /// Law of the number of balls of a bin that each of them joins with probability `p`, as parts of a mixture with their
    /// probabilities.
    #[must_use]
    pub fn of_bin(&self, p: f64) -> [(f64, Count); 2] {
        match *self {
            Total::Binomial(generators, emits) => [(1.0, Count::Binomial(generators, emits * p)), NONE],
            Total::Poisson(mean) => [(1.0, Count::Poisson(mean * p)), NONE],
            Total::Rounded(law) => law.values().map(|(balls, probability)| (probability, Count::Binomial(balls, p))),
            Total::Exactly(balls) => [(1.0, Count::Binomial(balls, p)), NONE],
        }
    }
}
