//! Throws of balls on a profile, drawn from their exact law.
//!
//! Each ball of a throw goes to a bin with probability proportional to the bin's weight, which depends on the load that
//! the bin had before the throw alone; what is wanted is how many bins of each load get how many balls.
//!
//! # Method
//! Poisson numbers of balls, independent from bin to bin, are easy: of the bins of a level, a binomial number gets more
//! than none, a binomial number of these more than one, and so on ([`PoissonLadder`]). Given its total `s`, such a throw
//! is a throw of exactly `s` balls, whatever the mean. So to throw exactly `a` balls:
//!
//! 1. Throw Poisson numbers of mean `a` - 2 sqrt(`a`) in all. Where their total `s` exceeds `a`, which happens in about
//!    one of 40 throws, begin again. What is left is a mixture of throws of exactly `s` balls, `s` at most `a`.
//! 2. Throw the missing `a` - `s` balls, by the same weights, on the bins as they are now: a throw of `a` balls is one of
//!    `s` and one of `a` - `s`. They are about 2 sqrt(`a`), so few that hardly two meet: they are divided among the
//!    classes of equal bins made so far (a multinomial draw), and within a class only collisions are looked at
//!    ([`scatter`]), of which a round has about four.
//!
//! Nothing is ever removed and nothing is approximated. The idea to fall short on purpose and to add is Devroye and Los
//! (2024); step 2 is in the place of their recursion.

use super::{Level, Profile};
use crate::rng::samplers::{PoissonLadder, binomial, scatter};
use crate::rng::stream::Stream;

/// How many balls a throw has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Balls {
    /// So many.
    Exactly(u64),
    /// A Poisson number of this mean.
    Poisson(f64),
}

/// By how many standard deviations the Poisson throw falls short on average.
const SHORTFALL: f64 = 2.0;
/// Exact throws of fewer balls than this for each level are divided among the levels at once.
const FEW_BALLS_PER_LEVEL: u64 = 4;
/// Division ball by ball below so many balls a class, by binomial numbers above.
const BALLS_PER_CLASS: u64 = 2;

/// Bins that are alike in a throw.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Load with the balls thrown so far.
    load: u64,
    /// Number of bins.
    bins: u64,
    /// Weight of each.
    weight: f64,
}

impl Class {
    fn mass(&self) -> f64 {
        self.bins as f64 * self.weight
    }
}

/// Throws balls; keeps its memory from throw to throw.
#[derive(Debug, Default)]
pub struct Thrower {
    /// The levels before the throw.
    levels: Vec<Class>,
    /// The bins after the Poisson throw, by level and then by balls.
    classes: Vec<Class>,
    ladder: PoissonLadder,
    /// Sums of masses.
    masses: Vec<f64>,
    /// Balls of the last part of the throw, for each class.
    hits: Vec<u64>,
    /// Levels of the next profile: the memory of the one before the last.
    spare: Vec<Level>,
}

impl Thrower {
    /// Throws `balls` on `profile` and returns their number.
    ///
    /// `weight(x, y)` is the relative probability of a ball to go to a given bin of a load that `x` of the bins have at
    /// least, and `y` exceed. Its error is that of the law: relative, for each level.
    pub fn throw(
        &mut self,
        stream: &mut Stream,
        profile: &mut Profile,
        balls: Balls,
        weight: impl Fn(u64, u64) -> f64,
    ) -> u64 {
        self.levels.clear();
        let mut at_least = profile.bins();
        for &Level { load, bins } in profile.levels() {
            let above = at_least - bins;
            self.levels.push(Class { load, bins, weight: weight(at_least, above) });
            at_least = above;
        }
        let mass: f64 = self.levels.iter().map(Class::mass).sum();
        let (thrown, left) = match balls {
            Balls::Poisson(mean) => {
                let thrown = self.poisson_throw(stream, mean / mass, u64::MAX);
                (thrown.expect("no number of balls is too many"), 0)
            }
            Balls::Exactly(balls) if balls < FEW_BALLS_PER_LEVEL * self.levels.len() as u64 => {
                self.classes.clone_from(&self.levels);
                (0, balls)
            }
            Balls::Exactly(balls) => {
                let mean = balls as f64 - SHORTFALL * (balls as f64).sqrt();
                let mean = mean.max(0.0) / mass;
                let thrown = loop {
                    if let Some(thrown) = self.poisson_throw(stream, mean, balls) {
                        break thrown;
                    }
                };
                (thrown, balls - thrown)
            }
        };
        self.divide(stream, left);
        self.gather(stream, profile);
        thrown + left
    }

    /// A Poisson number of mean `mean` of balls, wherever they go; drawn as those of `bins` bins, of which there should be
    /// about as many.
    pub fn number(&mut self, stream: &mut Stream, mean: f64, bins: u64) -> u64 {
        self.levels.clear();
        self.levels.push(Class { load: 0, bins, weight: 1.0 });
        self.poisson_throw(stream, mean / bins as f64, u64::MAX).expect("no number of balls is too many")
    }

    /// Gives each bin a Poisson number of balls, `mean` times its weight on average, and makes the classes; returns the
    /// total, or `None` where it exceeds `most`.
    fn poisson_throw(&mut self, stream: &mut Stream, mean: f64, most: u64) -> Option<u64> {
        self.classes.clear();
        let mut thrown = 0;
        for level in &self.levels {
            let Class { mut load, mut bins, weight } = *level;
            for &odds in self.ladder.odds(mean * weight) {
                let more = binomial(stream, bins, odds);
                if more < bins {
                    self.classes.push(Class { load, bins: bins - more, weight });
                }
                thrown += more;
                bins = more;
                load += 1;
                if bins == 0 {
                    break;
                }
            }
            if bins > 0 {
                self.classes.push(Class { load, bins, weight });
            }
            if thrown > most {
                return None;
            }
        }
        Some(thrown)
    }

    /// Divides `balls` among the classes: a multinomial draw into `hits`.
    fn divide(&mut self, stream: &mut Stream, mut balls: u64) {
        self.hits.clear();
        self.hits.resize(self.classes.len(), 0);
        if balls == 0 {
            return;
        }
        self.masses.clear();
        let mut sum = 0.0;
        if balls < BALLS_PER_CLASS * self.classes.len() as u64 {
            self.masses.extend(self.classes.iter().map(|class| {
                sum += class.mass();
                sum
            }));
            for _ in 0..balls {
                // Above 0 and at most the sum: the class found exists and has mass.
                let target = stream.unit() * sum;
                self.hits[self.masses.partition_point(|&mass| mass < target)] += 1;
            }
            return;
        }
        // Masses of the classes after each.
        self.masses.extend(self.classes.iter().rev().map(|class| {
            let after = sum;
            sum += class.mass();
            after
        }));
        for ((class, after), hits) in self.classes.iter().zip(self.masses.iter().rev()).zip(&mut self.hits) {
            *hits = binomial(stream, balls, class.mass() / after);
            balls -= *hits;
            if balls == 0 {
                break;
            }
        }
    }

    /// Scatters the hits within their classes and makes the profile of the result.
    fn gather(&mut self, stream: &mut Stream, profile: &mut Profile) {
        let mut levels = std::mem::take(&mut self.spare);
        levels.clear();
        for (class, &hits) in self.classes.iter().zip(&self.hits) {
            let mut untouched = class.bins;
            scatter(stream, hits, class.bins, &mut |balls, bins| {
                add(&mut levels, class.load + balls, bins);
                untouched -= bins;
            });
            add(&mut levels, class.load, untouched);
        }
        self.spare = std::mem::replace(profile, Profile::ascending(levels)).into_levels();
    }
}

/// Adds bins to ascending levels, looking from the end: the levels of a throw nearly ascend.
fn add(levels: &mut Vec<Level>, load: u64, bins: u64) {
    if bins == 0 {
        return;
    }
    let below = levels.iter().rposition(|level| level.load <= load);
    match below {
        Some(at) if levels[at].load == load => levels[at].bins += bins,
        _ => levels.insert(below.map_or(0, |at| at + 1), Level { load, bins }),
    }
}
