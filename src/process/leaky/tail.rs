//! Rounds of the leaky bins that are made to raise a bin to a level.
//!
//! Given the loads at the start of a round, a bin's balls have a simple law, p being the probability of a ball to join
//! it: Binomial(n, lambda p), Poisson(lambda n p), or Binomial(A, p) for a fixed number A of balls. Given that this bin
//! gets `a` of them, the others are thrown on the other bins by the same weights: from the n - a generators left,
//! each of which emits for another bin with odds lambda (1 - p) / (1 - lambda); or Poisson(lambda n (1 - p)); or A - a.

use super::LeakyProfile;
use super::profile::Law;
use crate::profile::{Balls, Count, CountTail, Level, Profile, TailChain, Thrower};
use crate::rng::samplers::binomial;
use crate::rng::stream::Stream;

/// No second part of a mixture.
const NONE: (f64, Count) = (0.0, Count::Poisson(0.0));

impl LeakyProfile {
    /// Law of the number of balls of a bin of weight `weight`.
    pub(super) fn balls(&self, weight: f64) -> [(f64, Count); 2] {
        let p = weight / self.bins as f64;
        match &self.arrivals.law {
            Law::Binomial(_) => [(1.0, Count::Binomial(self.bins, self.lambda * p)), NONE],
            Law::Poisson(mean) => [(1.0, Count::Poisson(mean * p)), NONE],
            Law::Fixed(law) => law.values().map(|(balls, probability)| (probability, Count::Binomial(balls, p))),
        }
    }

    /// Prepares the tails, up to `most` balls, of the number of balls of a bin of weight `weight`.
    fn set(&self, counts: &mut CountTail, weight: f64, most: u64) {
        counts.set(self.balls(weight), most);
    }

    /// The levels of `profile` from the lowest on, each with the weight of its bins and the number of bins above it.
    fn weighted<'a>(&self, profile: &'a Profile) -> impl Iterator<Item = (Level, f64, u64)> + use<'a, '_> {
        let mut at_least = self.bins;
        profile.levels().iter().map(move |&level| {
            let above = at_least - level.bins;
            let weight = self.weight(at_least, above);
            at_least = above;
            (level, weight, above)
        })
    }
}

/// Balls that raise a bin of load `load` to `level` after its deletion.
fn needed(level: u64, load: u64) -> u64 {
    (level + 1).saturating_sub(load)
}

impl TailChain for LeakyProfile {
    fn expected_reaching(&self, counts: &mut CountTail, profile: &Profile, levels: &[u64], expected: &mut Vec<f64>) {
        let first = expected.len();
        expected.resize(first + levels.len(), 0.0);
        let Some(&highest) = levels.iter().max() else { return };
        for (Level { load, bins }, weight, _) in self.weighted(profile) {
            self.set(counts, weight, needed(highest, 0));
            for (sum, &level) in expected[first..].iter_mut().zip(levels) {
                *sum += bins as f64 * counts.at_least(needed(level, load));
            }
        }
    }

    fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    ) {
        let most = needed(level, 0);
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(profile.levels().len());
        for (Level { load, bins }, weight, _) in self.weighted(profile) {
            self.set(counts, weight, most);
            sum += bins as f64 * counts.at_least(needed(level, load));
            sums.push(sum);
        }
        assert!(sum > 0.0, "a bin can reach the level");
        let target = stream.unit() * sum;
        let chosen = sums.partition_point(|&sum| sum < target);
        let (raised, weight, above) = self.weighted(profile).nth(chosen).expect("the target is at most the sum");

        self.set(counts, weight, most);
        let needed = needed(level, raised.load);
        let p = weight / self.bins as f64;
        let (balls, others) = match &self.arrivals.law {
            Law::Binomial(odds) => {
                let balls = counts.draw(stream, needed);
                (balls, Balls::Exactly(binomial(stream, self.bins - balls, odds * (1.0 - p).max(0.0))))
            }
            Law::Poisson(mean) => (counts.draw(stream, needed), Balls::Poisson(mean * (1.0 - p).max(0.0))),
            Law::Fixed(law) => {
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
        let without = profile
            .levels()
            .iter()
            .map(|level| Level { bins: level.bins - u64::from(level.load == raised.load), ..*level });
        let mut rest = Profile::new(without);
        if rest.bins() > 0 {
            // Weights are those of all bins: what is counted without the raised bin is counted with it again.
            thrower.throw(stream, &mut rest, others, |at_least, higher| {
                let at_least = at_least + u64::from(at_least > above);
                let higher = higher + u64::from(higher + 1 >= above + raised.bins);
                self.weight(at_least, higher)
            });
        }
        let raised = Level { load: raised.load + balls, bins: 1 };
        *profile = Profile::new(rest.levels().iter().copied().chain([raised]));
        profile.serve();
    }
}
