//! Markov chains of few states: the law after any round, and the stationary law.

use super::TheoryError;
use std::collections::HashMap;
use std::hash::Hash;

/// Most states and transitions of a chain: about a gigabyte.
pub(super) const MAX_SIZE: usize = 50_000_000;
/// Relative change of each probability that ends the way to stationarity.
const SETTLED: f64 = 1e-13;
/// Most state transitions computed on the way to stationarity: some minutes.
const MAX_WORK: u64 = 200_000_000_000;

/// A chain on states `S`.
#[derive(Debug)]
pub(super) struct Chain<S> {
    states: Vec<S>,
    index: HashMap<S, u32>,
    /// Transitions of state i: `transitions[ends[i - 1]..ends[i]]`, each (state, probability).
    transitions: Vec<(u32, f64)>,
    ends: Vec<usize>,
}

/// A stationary law, and how it was reached.
#[derive(Debug)]
pub(super) struct Settled {
    /// Probability of each state; they sum to 1.
    pub(super) law: Vec<f64>,
    /// Probability that left the states on the way.
    pub(super) lost: f64,
    /// Rounds from the start.
    pub(super) rounds: u64,
}

impl<S: Clone + Eq + Hash> Chain<S> {
    /// The chain on `states` in which `row(state, add)` calls `add(next, p)` for each `next` that follows `state`, any
    /// number of times; what goes to other states is lost. `None` where there are too many transitions.
    pub(super) fn new(states: Vec<S>, mut row: impl FnMut(&S, &mut dyn FnMut(&S, f64))) -> Option<Self> {
        let index: HashMap<S, u32> = states.iter().cloned().zip(0..).collect();
        let mut transitions = Vec::new();
        let mut ends = Vec::with_capacity(states.len());
        for state in &states {
            let mut sums: HashMap<u32, f64> = HashMap::new();
            row(state, &mut |next, p| {
                if let Some(&to) = index.get(next) {
                    *sums.entry(to).or_insert(0.0) += p;
                }
            });
            // In the order of the states, so that sums have the same bits in every run.
            let mut sums: Vec<(u32, f64)> = sums.into_iter().collect();
            sums.sort_unstable_by_key(|(to, _)| *to);
            transitions.extend(sums);
            ends.push(transitions.len());
            if transitions.len() > MAX_SIZE {
                return None;
            }
        }
        Some(Self { states, index, transitions, ends })
    }

    /// The states, in the order of the laws.
    pub(super) fn states(&self) -> &[S] {
        &self.states
    }

    /// The law that gives each of these states its probability; the first state that the chain has not is the error.
    pub(super) fn law(&self, start: impl IntoIterator<Item = (S, f64)>) -> Result<Vec<f64>, S> {
        let mut law = vec![0.0; self.states.len()];
        for (state, p) in start {
            match self.index.get(&state) {
                Some(&i) => law[i as usize] += p,
                None => return Err(state),
            }
        }
        Ok(law)
    }

    /// The laws after each of `rounds`, which ascend.
    ///
    /// # Panics
    /// If `rounds` descend.
    pub(super) fn at_rounds(&self, start: &[f64], rounds: &[u64]) -> Vec<Vec<f64>> {
        let mut law = start.to_vec();
        let mut round = 0;
        let after = |&target: &u64| {
            assert!(target >= round, "rounds ascend");
            while round < target {
                law = self.step(&law);
                round += 1;
            }
            law.clone()
        };
        rounds.iter().map(after).collect()
    }

    /// The stationary law: that after so many rounds from `start` that none of the probabilities that `view` makes of
    /// it and that are above 1e-30 is expected to change by a relative 1e-13 any more, made to sum to 1.
    pub(super) fn stationary(&self, start: &[f64], view: impl Fn(&[f64]) -> Vec<f64>) -> Result<Settled, TheoryError> {
        let most = MAX_WORK / self.transitions.len().max(1) as u64;
        let mut law = start.to_vec();
        let mut before = view(&law);
        let mut changes = [0.0; 2];
        for round in 1..=most {
            law = self.step(&law);
            // One look every eight rounds: looking costs as much as a round.
            if round % 8 > 0 {
                continue;
            }
            let now = view(&law);
            let pairs = before.iter().zip(&now).filter(|(_, p)| **p > 1e-30);
            let change = pairs.map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            // Changes shrink like a geometric series; what is left of it is change * ratio / (1 - ratio).
            let ratio = changes.iter().map(|&c| change / c).fold(0.0, f64::max);
            if change <= 4.0 * f64::EPSILON || (ratio < 1.0 && change * ratio / (1.0 - ratio) <= SETTLED) {
                let sum: f64 = law.iter().sum();
                law.iter_mut().for_each(|p| *p /= sum);
                return Ok(Settled { law, lost: lost(sum), rounds: round });
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
}

/// What is missing from a law that sums to `sum`.
pub(super) fn lost(sum: f64) -> f64 {
    (1.0 - sum).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_two_states_has_its_laws() {
        // From a to b with probability 0.2, back with 0.3: P(a) = 0.6 in the long run, reached like 0.5^t.
        let chain = Chain::new(vec!['a', 'b'], |state, add| match state {
            'a' => [('a', 0.5), ('b', 0.2), ('a', 0.3)].iter().for_each(|(to, p)| add(to, *p)),
            _ => [('a', 0.3), ('b', 0.7)].iter().for_each(|(to, p)| add(to, *p)),
        })
        .expect("a small chain");
        let start = chain.law([('b', 0.25), ('b', 0.75)]).expect("known states");
        for (law, a) in chain.at_rounds(&start, &[0, 1, 3]).iter().zip([0.0, 0.3, 0.525]) {
            assert!((law[0] - a).abs() < 1e-15 && (law[1] - (1.0 - a)).abs() < 1e-15, "{law:?}");
        }
        let settled = chain.stationary(&start, <[f64]>::to_vec).expect("a law");
        assert!((settled.law[0] - 0.6).abs() < 1e-12 && settled.lost < 1e-14, "{settled:?}");
        assert_eq!(chain.law([('c', 1.0)]), Err('c'));
    }

    #[test]
    fn what_leaves_the_states_is_lost() {
        let chain = Chain::new(vec![0, 1], |&state, add| {
            add(&(1 - state), 0.75);
            add(&7, 0.25);
        })
        .expect("a small chain");
        let laws = chain.at_rounds(&[1.0, 0.0], &[2]);
        assert_eq!(laws, [[0.5625, 0.0]]);
        assert_eq!(lost(laws[0].iter().sum()), 0.4375);
    }
}
