//! Throws that are made to raise a bin to a level.
//!
//! Given the loads before a throw, the number of balls of a bin has a simple law, p being the probability of a ball to
//! join it: Binomial(g, q p) for g generators that emit with probability q, Poisson(m p) for a Poisson number of mean m,
//! or Binomial(A, p) for a fixed number A. Given that this bin gets `a` of them, the others are thrown on the other bins
//! by the same weights: from the g - a generators left, each of which emits for another bin with odds
//! q (1 - p) / (1 - q); or Poisson(m (1 - p)); or A - a.

use super::total::{NONE, odds};
use super::{Balls, Count, CountTail, Level, Profile, Thrower, Total};
use crate::rng::samplers::binomial;
use crate::rng::stream::Stream;

/// A throw, and the deletions after it.
#[derive(Clone, Copy, Debug)]
pub struct Throw<W> {
    /// How many balls.
    pub balls: Total,
    /// Their number of bins times the probability of a ball to join a given bin, of a load that x of the bins have at
    /// least, and y exceed: `weight(x, y)`.
    pub weight: W,
    /// Balls that every bin deletes after the throw, as far as it has them.
    pub deleted: u64,
}

/// A bin that a throw raises, and what is left of the throw.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    /// Its load before the throw, and how many bins have that: each of them with the same probability.
    pub among: Level,
    /// Bins of a higher load.
    above: u64,
    /// Balls that it gets.
    pub balls: u64,
    /// Balls that the others get: each has the law of a ball that does not join the raised bin.
    pub others: Balls,
}

impl Throw<fn(u64, u64) -> f64> {
    /// A throw of balls that join every bin with the same probability, without deletions after it.
    #[must_use]
    pub fn even(balls: Total) -> Self {
        Self { balls, weight: |_, _| 1.0, deleted: 0 }
    }
}

impl<W: Fn(u64, u64) -> f64> Throw<W> {
    /// The levels of `profile` from the lowest on, each with the probability of a ball to join a bin of it and the number
    /// of bins above it.
    fn weighted<'a>(&self, profile: &'a Profile) -> impl Iterator<Item = (Level, f64, u64)> + use<'a, '_, W> {
        let bins = profile.bins();
        let mut at_least = bins;
        profile.levels().iter().map(move |&level| {
            let above = at_least - level.bins;
            let p = (self.weight)(at_least, above) / bins as f64;
            at_least = above;
            (level, p, above)
        })
    }

    /// Balls that raise a bin of load `load` to `level` after the deletions.
    fn needed(&self, level: u64, load: u64) -> u64 {
        (level + self.deleted).saturating_sub(load)
    }

    /// Appends the expected number of bins that are at each of `levels` (from 1 on) after the deletions, `profile` being
    /// the bins before the throw.
    pub fn expected_reaching(
        &self,
        counts: &mut CountTail,
        profile: &Profile,
        levels: &[u64],
        expected: &mut Vec<f64>,
    ) {
        let first = expected.len();
        expected.resize(first + levels.len(), 0.0);
        let Some(&highest) = levels.iter().max() else { return };
        for (Level { load, bins }, p, _) in self.weighted(profile) {
            counts.set(self.balls.of_bin(p), self.needed(highest, 0));
            for (sum, &level) in expected[first..].iter_mut().zip(levels) {
                *sum += bins as f64 * counts.at_least(self.needed(level, load));
            }
        }
    }

    /// Chooses a bin in proportion to its probability to be at `level` after the deletions, and its balls given that it
    /// is.
    ///
    /// # Panics
    /// If no bin can be.
    pub fn raise(&self, stream: &mut Stream, counts: &mut CountTail, profile: &Profile, level: u64) -> Raised {
        let most = self.needed(level, 0);
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(profile.levels().len());
        for (Level { load, bins }, p, _) in self.weighted(profile) {
            counts.set(self.balls.of_bin(p), most);
            sum += bins as f64 * counts.at_least(self.needed(level, load));
            sums.push(sum);
        }
        assert!(sum > 0.0, "a bin can reach the level");
        let target = stream.unit() * sum;
        let chosen = sums.partition_point(|&sum| sum < target);
        let (among, p, above) = self.weighted(profile).nth(chosen).expect("the target is at most the sum");

        counts.set(self.balls.of_bin(p), most);
        let needed = self.needed(level, among.load);
        let elsewhere = (1.0 - p).max(0.0);
        let (balls, others) = match self.balls {
            Total::Binomial(generators, emits) => {
                let balls = counts.draw(stream, needed);
                (balls, Balls::Exactly(binomial(stream, generators - balls, odds(emits) * elsewhere)))
            }
            Total::Poisson(mean) => (counts.draw(stream, needed), Balls::Poisson(mean * elsewhere)),
            Total::Exactly(all) => {
                let balls = counts.draw(stream, needed);
                (balls, Balls::Exactly(all - balls))
            }
            Total::Rounded(law) => {
                // The number of balls of the round first, given that the bin gets enough of them.
                let [(few, rarely), (many, often)] = law.values();
                let tail = counts.at_least(needed);
                counts.set([(often, Count::Binomial(many, p)), NONE], most);
                let (all, probability) =
                    if stream.unit() * tail <= counts.at_least(needed) { (many, often) } else { (few, rarely) };
                counts.set([(probability, Count::Binomial(all, p)), NONE], most);
                let balls = counts.draw(stream, needed);
                (balls, Balls::Exactly(all - balls))
            }
        };
        Raised { among, above, balls, others }
    }

    /// Performs a throw in which some bin comes to be at `level` after the deletions, and the deletions.
    ///
    /// # Panics
    /// If no bin can.
    pub fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    ) {
        let Raised { among, above, balls, others } = self.raise(stream, counts, profile, level);
        let without = profile
            .levels()
            .iter()
            .map(|level| Level { bins: level.bins - u64::from(level.load == among.load), ..*level });
        let mut rest = Profile::new(without);
        if rest.bins() > 0 {
            // Weights are those of all bins: what is counted without the raised bin is counted with it again.
            thrower.throw(stream, &mut rest, others, |at_least, higher| {
                let at_least = at_least + u64::from(at_least > above);
                let higher = higher + u64::from(higher + 1 >= above + among.bins);
                (self.weight)(at_least, higher)
            });
        }
        let raised = Level { load: among.load + balls, bins: 1 };
        *profile = Profile::new(rest.levels().iter().copied().chain([raised]));
        for _ in 0..self.deleted {
            profile.serve();
        }
    }
}
