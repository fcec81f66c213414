//! Few bins: the exact law of the max load, by the whole Markov chain.
//!
//! Bins are exchangeable, so a state is the loads in descending order. Given the state, a ball joins a bin of load j
//! with probability `(x_j^d - x_{j+1}^d) / (n p_j)`, `x_j` the fraction of bins of load at least j, `p_j` that of load
//! j.
//! Loads are those after the deletions.
//!
//! # Error
//! States with a load above the cap are left out; the probability that flows into them is lost and counted. True
//! probabilities exceed the computed ones, by at most the lost mass in all.

use super::TheoryError;
use super::arrivals::ArrivalLaw;
use super::chain::{Chain, MAX_SIZE, lost};
use crate::float::powi;
use crate::process::leaky::Parameters;
use crate::process::start::Initial;

/// Arrival numbers less likely than this are left out, and counted as lost.
pub(super) const NEGLIGIBLE: f64 = 1e-22;

/// Loads of few bins, in descending order.
pub(super) type State = Box<[u32]>;

/// The chain of the sorted loads of a few bins.
#[derive(Debug)]
pub struct SmallChain {
    cap: u32,
    chain: Chain<State>,
    start: Vec<f64>,
}

/// What a small chain says about one time.
#[derive(Clone, Debug)]
pub struct ChainLaw {
    /// P(max load = k) at the end of the round, k = 0, 1, .. up to the cap.
    pub max_load: Vec<f64>,
    /// P(load of a bin = k) at the end of the round, for a bin chosen at random.
    pub load: Vec<f64>,
    /// Mean load of a bin, in balls.
    pub mean_load: f64,
    /// Bound on the probability that is missing: no probability above is too small by more.
    pub lost: f64,
    /// Rounds from the start.
    pub rounds: u64,
}

impl SmallChain {
    /// The chain of the leaky bins with these parameters, with loads up to `cap`.
    ///
    /// # Errors
    /// A parameter outside its range, an initial load above the cap, or too many states.
    pub fn new(parameters: &Parameters, cap: u32) -> Result<Self, TheoryError> {
        super::validate(parameters)?;
        let Parameters { n, lambda, d, arrivals, .. } = *parameters;
        let too_large = || TheoryError::ChainSize { n, cap };
        // Sorted loads of n bins up to the cap: C(cap + n, n).
        let count = (1..=n).try_fold(1.0, |c, i| {
            let c = c * (f64::from(cap) + i as f64) / i as f64;
            (c <= MAX_SIZE as f64).then_some(c)
        });
        let (Some(_), Ok(bins)) = (count, usize::try_from(n)) else { return Err(too_large()) };
        let arrivals = ArrivalLaw::system(arrivals, n, lambda).probabilities();
        let chain = Chain::new(sorted_states(bins, cap), |state: &State, add| {
            let joins = join_probabilities(state, d as u32);
            for (balls, &p) in arrivals.iter().enumerate().filter(|(_, p)| **p >= NEGLIGIBLE) {
                splits(balls as u32, &joins, p, &mut |split, p| {
                    add(&sorted(state.iter().zip(split).map(|(x, a)| (x + a).saturating_sub(1))), p);
                });
            }
        })
        .ok_or_else(too_large)?;
        let starts: Vec<(State, f64)> = match parameters.initial(n)? {
            Initial::Same(h) => vec![(vec![h; bins].into(), 1.0)],
            Initial::OneBin(h) => vec![(sorted((0..bins).map(|i| if i == 0 { h } else { 0 })), 1.0)],
            Initial::Loads(loads) => vec![(sorted(loads.into_iter()), 1.0)],
            Initial::Independent(law) => {
                let p: Vec<f64> = std::iter::repeat_n(0.0, law.first() as usize).chain(law.probabilities()).collect();
                chain.states().iter().map(|state| (state.clone(), independent(state, &p))).collect()
            }
            Initial::Random(h) if h > cap => return Err(TheoryError::ChainStart { load: h, cap }),
            Initial::Random(h) => {
                let mut all = Vec::new();
                let alike = vec![1.0 / n as f64; bins];
                splits(h, &alike, 1.0, &mut |split, p| all.push((sorted(split.iter().copied()), p)));
                all
            }
        };
        Self::with_start(chain, cap, starts)
    }

    /// The chain with loads up to `cap` that begins with these loads and their probabilities.
    pub(super) fn with_start(
        chain: Chain<State>,
        cap: u32,
        starts: impl IntoIterator<Item = (State, f64)>,
    ) -> Result<Self, TheoryError> {
        let start = chain.law(starts).map_err(|loads| TheoryError::ChainStart { load: loads[0], cap })?;
        Ok(Self { cap, chain, start })
    }

    /// The laws after each of `rounds` rounds, which ascend.
    ///
    /// # Panics
    /// If `rounds` descend.
    #[must_use]
    pub fn at_rounds(&self, rounds: &[u64]) -> Vec<ChainLaw> {
        let laws = self.chain.at_rounds(&self.start, rounds);
        laws.iter().zip(rounds).map(|(law, &round)| self.describe(law, lost(law.iter().sum()), round)).collect()
    }

    /// The stationary law: that after so many rounds from the start that no probability of the max load above 1e-30 is
    /// expected to change by a relative 1e-13 any more, made to sum to 1. `lost` is what was lost on the way.
    ///
    /// # Errors
    /// If that takes too long: near lambda = 1 the chain forgets its start slowly.
    pub fn stationary(&self) -> Result<ChainLaw, TheoryError> {
        let settled = self.chain.stationary(&self.start, |law| self.describe(law, 0.0, 0).max_load)?;
        Ok(self.describe(&settled.law, settled.lost, settled.rounds))
    }

    fn describe(&self, law: &[f64], lost: f64, rounds: u64) -> ChainLaw {
        let mut max_load = vec![0.0; self.cap as usize + 1];
        let mut load = max_load.clone();
        let mut mean_load = 0.0;
        for (state, &p) in self.chain.states().iter().zip(law) {
            let n = state.len() as f64;
            max_load[state[0] as usize] += p;
            state.iter().for_each(|&l| load[l as usize] += p / n);
            mean_load += p * state.iter().map(|&l| f64::from(l)).sum::<f64>() / n;
        }
        ChainLaw { max_load, load, mean_load, lost, rounds }
    }
}

/// The state of these loads.
pub(super) fn sorted(loads: impl Iterator<Item = u32>) -> State {
    let mut state: State = loads.collect();
    state.sort_unstable_by(|a, b| b.cmp(a));
    state
}

/// All loads of `n` bins up to `cap` in descending order.
fn sorted_states(n: usize, cap: u32) -> Vec<State> {
    fn fill(state: &mut [u32], bin: usize, most: u32, states: &mut Vec<State>) {
        if bin == state.len() {
            states.push(state.into());
            return;
        }
        for load in 0..=most {
            state[bin] = load;
            fill(state, bin + 1, load, states);
        }
    }
    let mut states = Vec::new();
    fill(&mut vec![0; n], 0, cap, &mut states);
    states
}

/// The probability that bins with independent loads of the law `p` hold these ones, in any order.
fn independent(state: &[u32], p: &[f64]) -> f64 {
    let (mut arrangements, mut alike, mut probability) = (1.0, 0.0, 1.0);
    for (i, load) in state.iter().enumerate() {
        alike = if i > 0 && state[i - 1] == *load { alike + 1.0 } else { 1.0 };
        arrangements *= (i + 1) as f64 / alike;
        probability *= p.get(*load as usize).copied().unwrap_or(0.0);
    }
    arrangements * probability
}

/// For each bin, the probability that a ball joins it.
fn join_probabilities(state: &[u32], d: u32) -> Vec<f64> {
    let fraction = |reaches: &dyn Fn(u32) -> bool| state.iter().filter(|&&l| reaches(l)).count() as f64;
    let n = state.len() as f64;
    let of = |&load: &u32| {
        let (at_least, above) = (fraction(&|l| l >= load), fraction(&|l| l > load));
        (powi(at_least / n, d) - powi(above / n, d)) / (at_least - above)
    };
    state.iter().map(of).collect()
}

/// Calls `use_split` with each way to split `balls` over the bins, and `weight` times its multinomial probability.
pub(super) fn splits(balls: u32, joins: &[f64], weight: f64, use_split: &mut dyn FnMut(&[u32], f64)) {
    splits_from(balls, joins, weight, &mut vec![0; joins.len()], 0, use_split);
}

/// The same for the bins from `bin` on; `split` holds the balls of those before.
fn splits_from(
    balls: u32,
    joins: &[f64],
    weight: f64,
    split: &mut [u32],
    bin: usize,
    use_split: &mut dyn FnMut(&[u32], f64),
) {
    if bin + 1 == joins.len() {
        split[bin] = balls;
        use_split(split, weight * powi(joins[bin], balls));
        return;
    }
    // Times C(balls, here) joins^here.
    let mut factor = 1.0;
    for here in 0..=balls {
        split[bin] = here;
        splits_from(balls - here, joins, weight * factor, split, bin + 1, use_split);
        factor *= joins[bin] * f64::from(balls - here) / f64::from(here + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_counted_and_joins_sum_to_one() {
        assert_eq!(sorted_states(3, 4).len(), 35);
        for state in sorted_states(4, 3) {
            for d in [1, 2, 5] {
                let joins = join_probabilities(&state, d);
                assert!((joins.iter().sum::<f64>() - 1.0).abs() < 1e-15);
                assert!(d > 1 || joins.iter().all(|p| (p - 0.25).abs() < 1e-15));
            }
        }
    }

    #[test]
    fn splits_are_multinomial() {
        let (mut count, mut sum) = (0, 0.0);
        splits(5, &[0.2, 0.3, 0.5], 1.0, &mut |split, p| {
            assert_eq!(split.iter().sum::<u32>(), 5);
            count += 1;
            sum += p;
            if split == [1, 2, 2] {
                assert!((p - 30.0 * 0.2 * 0.09 * 0.25).abs() < 1e-15);
            }
        });
        assert_eq!((count, (sum - 1.0f64).abs() < 1e-14), (21, true));
    }
}
