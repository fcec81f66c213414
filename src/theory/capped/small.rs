//! Few bins of CAPPED(c, lambda): the exact law of loads and pool, by the whole Markov chain.

use super::check;
use crate::process::leaky::Arrivals;
use crate::theory::arrivals::ArrivalLaw;
use crate::theory::chain::{Chain, lost};
use crate::theory::small_chain::NEGLIGIBLE;
use crate::theory::{TheoryError, check_bins};
use std::collections::BTreeMap;

/// State of few bins: how many have each load, 0 to c - 1 at the end of a round and 0 to c before the deletions, and
/// last the pool.
type State = Box<[u32]>;

/// The exact chain of few bins: the loads and the size of the pool.
///
/// Ages do not matter for these: a bin accepts as many balls as it has room for, whoever they are.
///
/// # Error
/// States with more than so many balls in the pool are left out; the probability that flows into them is lost and
/// counted.
#[derive(Debug)]
pub struct SmallCapped {
    chain: Chain<State>,
    start: Vec<f64>,
    /// Largest pool.
    most: u32,
}

/// What a small chain says about one time, at the end of the round.
#[derive(Clone, Debug)]
pub struct CappedLaw {
    /// P(pool = k), k = 0, 1, .. up to the largest pool.
    pub pool: Vec<f64>,
    /// P(load of a bin = k), k = 0 .. c - 1.
    pub load: Vec<f64>,
    /// P(max load = k), k = 0 .. c - 1.
    pub max_load: Vec<f64>,
    /// Bound on the probability that is missing: no probability above is too small by more.
    pub lost: f64,
    /// Rounds from the start.
    pub rounds: u64,
}

impl SmallCapped {
    /// The chain of `n` bins of capacity `c` that start empty, with at most `most` balls in the pool.
    ///
    /// # Errors
    /// A parameter outside its range, or too many states.
    pub fn new(n: u64, c: u64, lambda: f64, arrivals: Arrivals, most: u32) -> Result<Self, TheoryError> {
        check_bins(n)?;
        check(Some(c), lambda)?;
        let too_large = || TheoryError::ChainSize { n, cap: u32::try_from(c).unwrap_or(u32::MAX) };
        // Loads before the deletions: C(n + c, c). Each start is thrown on ball by ball.
        let fills = (1..=c).try_fold(1.0, |count, i| {
            let count = count * (n as f64 + i as f64) / i as f64;
            (count <= MAX_FILLS).then_some(count)
        });
        let fills = fills.ok_or_else(too_large)?;
        let arrivals: Vec<(u32, f64)> = (0..)
            .zip(ArrivalLaw::system(arrivals, n, lambda).probabilities())
            .filter(|(_, p)| *p >= NEGLIGIBLE)
            .collect();
        let throws = u64::from(most) + u64::from(arrivals.last().map_or(0, |(balls, _)| *balls));
        if fills * fills * throws as f64 > MAX_THROWS {
            return Err(too_large());
        }
        let (n, c) = (n as u32, c as usize);
        let mut starts = Vec::new();
        compositions(&mut vec![0; c], 0, n, &mut starts);
        let states = starts
            .iter()
            .flat_map(|start| (0..=most).map(|pool| start.iter().copied().chain([pool]).collect::<State>()));
        let mut of_start = (State::default(), Vec::new());
        let chain = Chain::new(states.collect(), |state: &State, add| {
            let (start, pool) = (&state[..c], state[c]);
            if *of_start.0 != *start {
                of_start = (start.into(), throw(start, n, throws as usize));
            }
            let before: u32 = start.iter().zip(0..).map(|(bins, load)| bins * load).sum();
            for &(new, p) in &arrivals {
                let competing = pool + new;
                for (fill, q) in &of_start.1[competing as usize] {
                    let after: u32 = fill.iter().zip(0..).map(|(bins, load)| bins * load).sum();
                    let mut next: State = fill[1..].iter().copied().chain([competing - (after - before)]).collect();
                    next[0] += fill[0];
                    add(&next, p * q);
                }
            }
        })
        .ok_or_else(too_large)?;
        let mut empty: State = vec![0; c + 1].into();
        empty[0] = n;
        let start = chain.law([(empty, 1.0)]).expect("the empty state is one of the states");
        Ok(Self { chain, start, most })
    }

    /// The laws after each of `rounds` rounds, which ascend.
    ///
    /// # Panics
    /// If `rounds` descend.
    #[must_use]
    pub fn at_rounds(&self, rounds: &[u64]) -> Vec<CappedLaw> {
        let laws = self.chain.at_rounds(&self.start, rounds);
        laws.iter().zip(rounds).map(|(law, &round)| self.describe(law, lost(law.iter().sum()), round)).collect()
    }

    /// The stationary law: that after so many rounds from the start that no probability of pool and loads above 1e-30 is
    /// expected to change by a relative 1e-13 any more, made to sum to 1. `lost` is what was lost on the way.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn stationary(&self) -> Result<CappedLaw, TheoryError> {
        let settled = self.chain.stationary(&self.start, |law| {
            let CappedLaw { pool, load, max_load, .. } = self.describe(law, 0.0, 0);
            [pool, load, max_load].concat()
        })?;
        Ok(self.describe(&settled.law, settled.lost, settled.rounds))
    }

    fn describe(&self, law: &[f64], lost: f64, rounds: u64) -> CappedLaw {
        let c = self.chain.states()[0].len() - 1;
        let mut pool = vec![0.0; self.most as usize + 1];
        let (mut load, mut max_load) = (vec![0.0; c], vec![0.0; c]);
        for (state, &p) in self.chain.states().iter().zip(law) {
            let bins = &state[..c];
            let n: u32 = bins.iter().sum();
            pool[state[c] as usize] += p;
            load.iter_mut().zip(bins).for_each(|(sum, &bins)| *sum += p * f64::from(bins) / f64::from(n));
            max_load[bins.iter().rposition(|&bins| bins > 0).expect("there is a bin")] += p;
        }
        CappedLaw { pool, load, max_load, lost, rounds }
    }
}

/// Most ways to load the bins of a small chain.
const MAX_FILLS: f64 = 1e4;
/// Most steps of throwing ball by ball: some seconds.
const MAX_THROWS: f64 = 2e7;

/// All ways for `bins` bins to have loads from `load` on, up to the last.
fn compositions(counts: &mut [u32], load: usize, bins: u32, all: &mut Vec<State>) {
    if load + 1 == counts.len() {
        counts[load] = bins;
        all.push((&*counts).into());
        return;
    }
    for here in 0..=bins {
        counts[load] = here;
        compositions(counts, load + 1, bins - here, all);
    }
}

/// The laws of the numbers of bins by load, 0 to c, after 0, 1, .. `throws` balls have asked for a place.
fn throw(start: &[u32], n: u32, throws: usize) -> Vec<Vec<(State, f64)>> {
    let mut law: BTreeMap<State, f64> = BTreeMap::new();
    law.insert(start.iter().copied().chain([0]).collect(), 1.0);
    let mut laws = vec![law.clone().into_iter().collect()];
    for _ in 0..throws {
        let mut next = BTreeMap::new();
        for (state, p) in &law {
            for (load, &bins) in state.iter().enumerate().filter(|(_, bins)| **bins > 0) {
                let mut to = state.clone();
                if load + 1 < state.len() {
                    to[load] -= 1;
                    to[load + 1] += 1;
                }
                *next.entry(to).or_insert(0.0) += p * f64::from(bins) / f64::from(n);
            }
        }
        law = next;
        laws.push(law.clone().into_iter().collect());
    }
    laws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::powi;
    use crate::theory::capped::MeanField;

    fn assert_close(what: &str, value: f64, reference: f64, bound: f64) {
        assert!((value - reference).abs() <= bound, "{what}: {value:e} for {reference:e}, bound {bound:e}");
    }

    #[test]
    fn few_bins_of_one_place_have_their_exact_values() {
        for (n, lambda, competing) in [
            (4, 0.5, 0.61347587),
            (4, 0.75, 1.23472549),
            (8, 0.5, 0.65499087),
            (8, 0.75, 1.31241032),
            (16, 0.75, 1.34977828),
            (64, 0.75, 1.37724065),
        ] {
            let chain = SmallCapped::new(n, 1, lambda, Arrivals::Fixed, 12 * n as u32).expect("a small chain");
            let law = chain.stationary().expect("a law");
            assert!(law.lost < 1e-10, "lost {}", law.lost);
            let pool: f64 = law.pool.iter().zip(0..).map(|(p, k)| p * f64::from(k)).sum();
            assert_close(&format!("n {n}, lambda {lambda}"), pool / n as f64 + lambda, competing, 5.1e-9);
            assert_close("load", law.load[0], 1.0, 1e-14);
            assert_eq!(law.max_load.len(), 1);
        }
        let law = SmallCapped::new(4, 1, 0.5, Arrivals::Fixed, 40).expect("a small chain").stationary().expect("a law");
        for (k, p) in [0.58341421, 0.37995721, 0.03594238, 0.00068325].into_iter().enumerate() {
            assert_close("pool of 4 bins", law.pool[k], p, 5.1e-9);
        }
        let law = SmallCapped::new(2, 1, 0.5, Arrivals::Fixed, 9).expect("a small chain").stationary().expect("a law");
        assert_close("pool of 2 bins", law.pool[0], 1.0, 1e-14);
    }

    /// Enough places are infinitely many: the leaky bins with one choice, whose law is exact for few bins as well.
    #[test]
    fn few_bins_of_many_places_are_leaky_bins() {
        let chain = SmallCapped::new(2, 24, 0.5, Arrivals::Binomial, 3).expect("a small chain");
        let law = chain.stationary().expect("a law");
        let r = powi(0.5 / 1.5, 2);
        for k in 0..10 {
            assert_close("load", law.load[k as usize], (1.0 - r) * powi(r, k), 1e-12);
        }
        assert_close("pool", law.pool[0], 1.0, 1e-12);
        let max: f64 = law.max_load.iter().zip(0..).map(|(p, k)| p * f64::from(k)).sum();
        assert_close("max", max, 0.24817155, 5.1e-9);
    }

    #[test]
    fn few_bins_approach_the_limit_like_1_over_n() {
        let limit = MeanField::new(Some(2), 0.75).expect("a law");
        let off: Vec<f64> = [4u64, 8, 16]
            .iter()
            .map(|&n| {
                let chain = SmallCapped::new(n, 2, 0.75, Arrivals::Fixed, 4 * n as u32).expect("a small chain");
                let law = chain.stationary().expect("a law");
                let pool: f64 = law.pool.iter().zip(0..).map(|(p, k)| p * f64::from(k)).sum();
                n as f64 * (limit.pool() - pool / n as f64)
            })
            .collect();
        assert!(off.windows(2).all(|pair| (pair[0] / pair[1] - 1.0).abs() < 0.15), "n times the error: {off:?}");
    }

    #[test]
    fn the_first_rounds_from_empty_bins() {
        // Two balls into two bins: they collide with probability 1/2.
        let chain = SmallCapped::new(2, 1, 1.0, Arrivals::Fixed, 5).expect("a small chain");
        let laws = chain.at_rounds(&[0, 1, 2]);
        assert_eq!(laws[1].pool[..2], [0.5, 0.5]);
        // Then three balls leave one bin without a ball with probability 1/4.
        assert_eq!(laws[2].pool[..3], [0.25, 0.25 + 0.5 * 0.75, 0.125]);
        assert!(matches!(
            SmallCapped::new(1000, 10, 0.5, Arrivals::Fixed, 9),
            Err(TheoryError::ChainSize { n: 1000, cap: 10 })
        ));
    }
}
