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
use crate::float::powi;
use crate::process::leaky::Parameters;
use crate::process::start::Initial;
use std::collections::HashMap;

/// Most states and transitions of a chain: about a gigabyte.
const MAX_SIZE: usize = 50_000_000;
/// Arrival numbers less likely than this are left out, and counted as lost.
const NEGLIGIBLE: f64 = 1e-22;
/// Relative change of each probability that ends the way to stationarity.
const SETTLED: f64 = 1e-13;
/// Most state transitions computed on the way to stationarity: some minutes.
const MAX_WORK: u64 = 200_000_000_000;

/// Loads of few bins, in descending order.
type State = Box<[u32]>;

/// The chain of the sorted loads of a few bins.
#[derive(Debug)]
pub struct SmallChain {
    n: usize,
    cap: u32,
    states: Vec<State>,
    index: HashMap<State, u32>,
    /// Transitions of state i: `transitions[ends[i - 1]..ends[i]]`, each (state, probability).
    transitions: Vec<(u32, f64)>,
    ends: Vec<usize>,
    start: Vec<f64>,
}

/// What a small chain says about one time.
#[derive(Clone, Debug)]
pub struct ChainLaw {
    /// P(max load = k) after the deletions, k = 0, 1, .. up to the cap.
    pub max_load: Vec<f64>,
    /// Mean load of a bin, in balls.
    pub mean_load: f64,
    /// Bound on the probability that is missing: no probability above is too small by more.
    pub lost: f64,
    /// Rounds from the start.
    pub rounds: u64,
}

impl SmallChain {
    /// The chain of these parameters with loads up to `cap`.
    ///
    /// # Errors
    /// A parameter outside its range, an initial load above the cap, or too many states.
    pub fn new(parameters: &Parameters, cap: u32) -> Result<Self, TheoryError> {
        super::validate(parameters)?;
        let Parameters { n, lambda, d, arrivals, .. } = *parameters;
        let too_large = TheoryError::ChainSize { n, cap };
        // Sorted loads of n bins up to the cap: C(cap + n, n).
        let count = (1..=n).try_fold(1.0, |c, i| {
            let c = c * (f64::from(cap) + i as f64) / i as f64;
            (c <= MAX_SIZE as f64).then_some(c)
        });
        let (Some(_), Ok(bins)) = (count, usize::try_from(n)) else { return Err(too_large) };
        let states = sorted_states(bins, cap);
        let index: HashMap<State, u32> = states.iter().cloned().zip(0..).collect();
        let arrivals = ArrivalLaw::system(arrivals, n, lambda).probabilities();
        let mut transitions = Vec::new();
        let mut ends = Vec::with_capacity(states.len());
        for state in &states {
            let mut row: HashMap<u32, f64> = HashMap::new();
            let joins = join_probabilities(state, d as u32);
            for (balls, &p) in arrivals.iter().enumerate().filter(|(_, p)| **p >= NEGLIGIBLE) {
                splits(balls as u32, &joins, p, &mut vec![0; bins], 0, &mut |split, p| {
                    let mut next: State = state.iter().zip(split).map(|(x, a)| (x + a).saturating_sub(1)).collect();
                    next.sort_unstable_by(|a, b| b.cmp(a));
                    if let Some(&to) = index.get(&next) {
                        *row.entry(to).or_insert(0.0) += p;
                    }
                });
            }
            // In the order of the states, so that sums have the same bits in every run.
            let mut row: Vec<(u32, f64)> = row.into_iter().collect();
            row.sort_unstable_by_key(|(to, _)| *to);
            transitions.extend(row);
            ends.push(transitions.len());
            if transitions.len() > MAX_SIZE {
                return Err(too_large);
            }
        }
        let mut chain = Self { n: bins, cap, states, index, transitions, ends, start: Vec::new() };
        let fixed = |loads: Vec<u32>| vec![(loads, 1.0)];
        let starts = match parameters.initial(n)? {
            Initial::Same(h) => fixed(vec![h; bins]),
            Initial::OneBin(h) => fixed((0..bins).map(|i| if i == 0 { h } else { 0 }).collect()),
            Initial::Loads(loads) => fixed(loads),
            Initial::Independent(law) => {
                let p: Vec<f64> = std::iter::repeat_n(0.0, law.first() as usize).chain(law.probabilities()).collect();
                chain.states.iter().map(|state| (state.to_vec(), independent(state, &p))).collect()
            }
            Initial::Random(h) if h > cap => return Err(TheoryError::ChainStart { load: h, cap }),
            Initial::Random(h) => {
                let mut all = Vec::new();
                let alike = vec![1.0 / n as f64; bins];
                splits(h, &alike, 1.0, &mut vec![0; bins], 0, &mut |split, p| all.push((split.to_vec(), p)));
                all
            }
        };
        chain.start = vec![0.0; chain.states.len()];
        for (mut loads, p) in starts {
            loads.sort_unstable_by(|a, b| b.cmp(a));
            let Some(&i) = chain.index.get(&*loads) else {
                return Err(TheoryError::ChainStart { load: loads[0], cap });
            };
            chain.start[i as usize] += p;
        }
        Ok(chain)
    }

    /// The laws after each of `rounds` rounds, which ascend.
    ///
    /// # Panics
    /// If `rounds` descend.
    #[must_use]
    pub fn at_rounds(&self, rounds: &[u64]) -> Vec<ChainLaw> {
        let mut law = self.start.clone();
        let mut round = 0;
        let mut laws = Vec::with_capacity(rounds.len());
        for &target in rounds {
            assert!(target >= round, "rounds ascend");
            while round < target {
                law = self.step(&law);
                round += 1;
            }
            laws.push(self.describe(&law, round));
        }
        laws
    }

    /// The stationary law: that after so many rounds from the start that no probability of the max load above 1e-30 is
    /// expected to change by a relative 1e-13 any more, made to sum to 1. `lost` is what was lost on the way.
    ///
    /// # Errors
    /// If that takes too long: near lambda = 1 the chain forgets its start slowly.
    pub fn stationary(&self) -> Result<ChainLaw, TheoryError> {
        let most = MAX_WORK / self.transitions.len().max(1) as u64;
        let mut law = self.start.clone();
        let mut before = self.describe(&law, 0);
        let mut changes = [0.0; 2];
        for round in 1..=most {
            law = self.step(&law);
            // One look every eight rounds: looking costs as much as a round.
            if round % 8 > 0 {
                continue;
            }
            let now = self.describe(&law, round);
            let pairs = before.max_load.iter().zip(&now.max_load).filter(|(_, p)| **p > 1e-30);
            let change = pairs.map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            // Changes shrink like a geometric series; what is left of it is change * ratio / (1 - ratio).
            let ratio = changes.iter().map(|&c| change / c).fold(0.0, f64::max);
            if change <= 4.0 * f64::EPSILON || (ratio < 1.0 && change * ratio / (1.0 - ratio) <= SETTLED) {
                let sum: f64 = law.iter().sum();
                law.iter_mut().for_each(|p| *p /= sum);
                return Ok(ChainLaw { lost: now.lost, ..self.describe(&law, round) });
            }
            changes = [changes[1], change];
            before = now;
        }
        Err(TheoryError::ChainSlow { rounds: most })
    }

    fn step(&self, law: &[f64]) -> Vec<f64> {
        let mut next = vec![0.0; law.len()];
        let mut begin = 0;
        for (&p, &end) in law.iter().zip(&self.ends) {
            if p > 0.0 {
                for &(to, q) in &self.transitions[begin..end] {
                    next[to as usize] += p * q;
                }
            }
            begin = end;
        }
        next
    }

    fn describe(&self, law: &[f64], rounds: u64) -> ChainLaw {
        let mut max_load = vec![0.0; self.cap as usize + 1];
        let (mut mean_load, mut sum) = (0.0, 0.0);
        for (state, &p) in self.states.iter().zip(law) {
            max_load[state[0] as usize] += p;
            mean_load += p * state.iter().map(|&l| f64::from(l)).sum::<f64>() / self.n as f64;
            sum += p;
        }
        ChainLaw { max_load, mean_load, lost: (1.0 - sum).max(0.0), rounds }
    }
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

/// Calls `use_split` with each way to split `balls` over the bins from `bin` on, and `weight` times its multinomial
/// probability.
fn splits(
    balls: u32,
    joins: &[f64],
    weight: f64,
    split: &mut Vec<u32>,
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
        splits(balls - here, joins, weight * factor, split, bin + 1, use_split);
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
        splits(5, &[0.2, 0.3, 0.5], 1.0, &mut vec![0; 3], 0, &mut |split, p| {
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
