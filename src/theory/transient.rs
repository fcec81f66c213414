//! The law of a bin round by round, from any start: exact for one choice, in the limit of many bins for more.
//!
//! Bins that start alike form a group with one law. All groups see the same fractions `x_j` (see
//! [`mean_field`](super::mean_field)), so that a single overloaded bin is followed by itself and not smeared over all.
//!
//! # Numerics
//! Probabilities below [`FLOOR`] at the two ends of a law are dropped: they are far below what any number of bins up to
//! 2^53 makes visible. Everything else is a sum of positive terms.

use super::TheoryError;
use super::arrivals::ArrivalLaw;
use super::marginal::Marginal;
use super::mean_field::share;
use super::population::Population;
use super::special::sums_from;
use crate::float::exp;
use crate::process::leaky::Parameters;
use crate::process::start::{Initial, Start};

/// Probabilities below this are dropped at the ends of a law.
pub const FLOOR: f64 = 1e-40;

/// Largest load in a start law read from a file: its law is a dense table.
const MAX_FILE_LOAD: u32 = 10_000_000;

/// Bins with one law.
#[derive(Clone, Debug)]
struct Group {
    /// Number of bins.
    bins: f64,
    /// Load of the first entry.
    first: u64,
    /// P(load = first), P(load = first + 1), ..
    probabilities: Vec<f64>,
    /// P(no ball before the deletions) in the last round.
    idle: f64,
}

/// The state of all bins, in law, after some rounds.
#[derive(Clone, Debug)]
pub struct Transient {
    lambda: f64,
    d: u32,
    /// One choice: the law of the balls that reach a bin.
    arrivals: Vec<f64>,
    groups: Vec<Group>,
    round: u64,
}

impl Transient {
    /// The state before the first round. A mean-field start has the law that a simulation draws from, which ends where
    /// exceedances are below 2^-64.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, TheoryError> {
        super::validate(parameters)?;
        let groups = groups(parameters)?;
        Ok(Self::with(parameters, groups))
    }

    /// All bins start with this law: `probabilities` of the loads 0, 1, ..; it replaces `parameters.start`.
    ///
    /// # Errors
    /// A parameter outside its range, or numbers that are not a law.
    pub fn from_law(parameters: &Parameters, probabilities: &[f64]) -> Result<Self, TheoryError> {
        super::validate(parameters)?;
        let sum: f64 = probabilities.iter().sum();
        if !probabilities.iter().all(|p| (0.0..=1.0).contains(p)) || (sum - 1.0).abs() > 1e-9 {
            return Err(TheoryError::Law { sum });
        }
        Ok(Self::with(parameters, vec![Group::new(parameters.n as f64, 0, probabilities.to_vec())]))
    }

    fn with(parameters: &Parameters, groups: Vec<Group>) -> Self {
        let Parameters { n, lambda, arrivals, .. } = *parameters;
        // A single bin takes every ball, whatever the choices.
        let d = if n == 1 { 1 } else { parameters.d as u32 };
        let mut arrivals = ArrivalLaw::one_bin(arrivals, n, lambda).probabilities();
        let visible = arrivals.iter().rposition(|&p| p >= FLOOR).map_or(0, |last| last + 1);
        arrivals.truncate(visible);
        Self { lambda, d, arrivals, groups, round: 0 }
    }

    /// Performs one round.
    pub fn step(&mut self) {
        let fractions = Fractions::of(&self.groups);
        for group in &mut self.groups {
            if self.d == 1 {
                group.step_alike(&self.arrivals);
            } else {
                let fractions = &fractions;
                let (lambda, d) = (self.lambda, self.d);
                group.step(|load| lambda * share(fractions.at_least(load), fractions.at_least(load + 1), d).0);
            }
        }
        self.round += 1;
    }

    /// Performs rounds until so many are done, as long as `budget` operations suffice; whether they do.
    pub(super) fn advance(&mut self, rounds: u64, budget: &mut f64) -> bool {
        while self.round < rounds {
            *budget -= self.work();
            if *budget < 0.0 {
                return false;
            }
            self.step();
        }
        true
    }

    /// Every non-empty bin deletes one ball, apart from any round.
    pub(super) fn delete(&mut self) {
        for group in &mut self.groups {
            let before = std::mem::take(&mut group.probabilities);
            let idle = if group.first == 0 { before[0] } else { 0.0 };
            group.delete(before, idle);
        }
    }

    /// About how many operations the next round takes.
    #[must_use]
    pub fn work(&self) -> f64 {
        /// Poisson probabilities above [`FLOOR`], about.
        const VISIBLE: usize = 40;
        let loads: usize = self.groups.iter().map(|group| group.probabilities.len()).sum();
        loads as f64 * if self.d == 1 { self.arrivals.len() } else { VISIBLE } as f64
    }

    /// Rounds performed.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The bins after the deletions of the last round, or at the start.
    #[must_use]
    pub fn after_deletions(&self) -> Population {
        let law = |g: &Group| (g.bins, Marginal::new(g.first, g.probabilities.clone(), None));
        Population::new(self.groups.iter().map(law).collect())
    }

    /// The bins before the deletions of the last round; `None` before the first round.
    #[must_use]
    pub fn before_deletions(&self) -> Option<Population> {
        let law = |g: &Group| {
            let after = Marginal::new(g.first, g.probabilities.clone(), None);
            (g.bins, after.before_deletions(g.idle, 1.0 - g.idle))
        };
        (self.round > 0).then(|| Population::new(self.groups.iter().map(law).collect()))
    }
}

impl Group {
    fn new(bins: f64, first: u64, probabilities: Vec<f64>) -> Self {
        Self { bins, first, probabilities, idle: 0.0 }
    }

    /// One round in which a bin of load `j` receives Poisson(`mean(j)`) balls.
    fn step(&mut self, mean: impl Fn(u64) -> f64) {
        let mut next = Vec::new();
        let mut idle = 0.0;
        for (i, &p) in self.probabilities.iter().enumerate() {
            let mu = mean(self.first + i as u64);
            let mut weight = p * exp(-mu);
            if self.first == 0 && i == 0 {
                idle = weight;
            }
            let mut balls = 0.0;
            let mut slot = i;
            while weight >= FLOOR || (weight > 0.0 && balls < mu) {
                if slot >= next.len() {
                    next.resize(slot + 1, 0.0);
                }
                next[slot] += weight;
                balls += 1.0;
                slot += 1;
                weight *= mu / balls;
            }
        }
        self.delete(next, idle);
    }

    /// One round in which every bin receives balls by the same law.
    fn step_alike(&mut self, arrivals: &[f64]) {
        let mut next = vec![0.0; self.probabilities.len() + arrivals.len() - 1];
        for (i, &p) in self.probabilities.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (slot, a) in next[i..].iter_mut().zip(arrivals) {
                *slot += p * a;
            }
        }
        let idle = if self.first == 0 { next[0] } else { 0.0 };
        self.delete(next, idle);
    }

    /// Every non-empty bin deletes a ball; `next` holds the probabilities of `first`, `first + 1`, .. before that.
    fn delete(&mut self, mut next: Vec<f64>, idle: f64) {
        if self.first > 0 {
            self.first -= 1;
        } else if next.len() > 1 {
            let none = next.remove(0);
            next[0] += none;
        }
        let visible = |p: &f64| *p >= FLOOR;
        next.truncate(next.iter().rposition(visible).map_or(0, |last| last + 1));
        let dropped = next.iter().position(visible).unwrap_or(0);
        next.drain(..dropped);
        // Rounding changes the sum by an ulp or so a round, always the same way: it must not add up.
        let sum: f64 = next.iter().sum();
        next.iter_mut().for_each(|p| *p /= sum);
        self.first += dropped as u64;
        self.probabilities = next;
        self.idle = idle;
    }
}

/// The fractions of all bins that hold at least so many balls.
struct Fractions(Vec<(f64, u64, Vec<f64>)>);

impl Fractions {
    fn of(groups: &[Group]) -> Self {
        let bins: f64 = groups.iter().map(|g| g.bins).sum();
        let tails = |group: &Group| {
            let mut tails = sums_from(&group.probabilities, 0.0);
            // All bins hold at least the first load, to the last digit: x^d magnifies an error of x = 1 by d.
            let all = tails[0];
            tails.iter_mut().for_each(|x| *x /= all);
            (group.bins / bins, group.first, tails)
        };
        Self(groups.iter().map(tails).collect())
    }

    fn at_least(&self, load: u64) -> f64 {
        let of = |(share, first, tails): &(f64, u64, Vec<f64>)| match load.checked_sub(*first) {
            None => *share,
            Some(i) => share * tails.get(i as usize).copied().unwrap_or(0.0),
        };
        self.0.iter().map(of).sum()
    }
}

/// The start as groups of bins of one law.
fn groups(parameters: &Parameters) -> Result<Vec<Group>, TheoryError> {
    let Parameters { n, ref start, .. } = *parameters;
    let bins = n as f64;
    let point = |bins: f64, load: u32| Group::new(bins, load.into(), vec![1.0]);
    let initial = match start {
        Start::File(_) => {
            let bins = u32::try_from(n).map_err(|_| TheoryError::FileBins { n })?;
            parameters.initial(bins.into())?
        }
        // The other forms mean the same for any number of bins.
        _ => parameters.initial(1)?,
    };
    Ok(match initial {
        Initial::Same(load) => vec![point(bins, load)],
        Initial::OneBin(load) if n == 1 => vec![point(bins, load)],
        Initial::OneBin(load) => vec![point(bins - 1.0, 0), point(1.0, load)],
        Initial::Random(balls) => {
            let (first, law) = thrown(balls, bins);
            vec![Group::new(bins, first, law)]
        }
        Initial::Independent(law) => vec![Group::new(bins, law.first().into(), law.probabilities().collect())],
        Initial::Loads(loads) => {
            let max = loads.iter().copied().max().unwrap_or(0);
            if max > MAX_FILE_LOAD {
                return Err(TheoryError::FileLoad { load: max, most: MAX_FILE_LOAD });
            }
            let mut law = vec![0.0; max as usize + 1];
            for load in loads {
                law[load as usize] += 1.0 / bins;
            }
            vec![Group::new(bins, 0, law)]
        }
    })
}

/// The law of one bin after `balls` are thrown into `bins` at random: its smallest load and the probabilities from
/// there on, outward from the most likely load.
fn thrown(balls: u32, bins: f64) -> (u64, Vec<f64>) {
    if bins == 1.0 {
        return (balls.into(), vec![1.0]);
    }
    let trials = f64::from(balls);
    let odds = 1.0 / (bins - 1.0);
    let mode = ((trials + 1.0) / bins).floor().min(trials);
    let down = (0..).map(|i| mode - f64::from(i as u32)).take_while(|k| *k > 0.0);
    let below = outward(down.map(|k| k / ((trials - k + 1.0) * odds)));
    let up = (0..).map(|i| mode + f64::from(i as u32)).take_while(|k| *k < trials);
    let above = outward(up.map(|k| (trials - k) / (k + 1.0) * odds));
    let sum = 1.0 + below.iter().rev().sum::<f64>() + above.iter().rev().sum::<f64>();
    let weights = below.iter().rev().chain(&[1.0]).chain(&above);
    (mode as u64 - below.len() as u64, weights.map(|w| w / sum).collect())
}

/// The products of the first one, two, .. of `ratios`, as long as they are visible.
fn outward(ratios: impl Iterator<Item = f64>) -> Vec<f64> {
    let products = ratios.scan(1.0, |weight, ratio| {
        *weight *= ratio;
        Some(*weight)
    });
    products.take_while(|w| *w >= FLOOR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thrown_balls_are_binomial() {
        let (first, law) = thrown(3, 2.0);
        assert_eq!((first, &law[..]), (0, &[0.125, 0.375, 0.375, 0.125][..]));
        assert_eq!(thrown(5, 1.0), (5, vec![1.0]));
        assert_eq!(thrown(0, 7.0), (0, vec![1.0]));
        for (balls, bins) in [(1000, 1e6), (1 << 31, 2.0), (1_000_000, 1024.0)] {
            let (first, law) = thrown(balls, bins);
            let law = Marginal::new(first, law, None);
            let mean = f64::from(balls) / bins;
            assert!((law.mean() / mean - 1.0).abs() < 1e-12, "{} for {mean}", law.mean());
            assert!((law.variance() / (mean * (1.0 - 1.0 / bins)) - 1.0).abs() < 1e-9, "{}", law.variance());
        }
    }
}
