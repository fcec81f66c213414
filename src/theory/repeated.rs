//! Predictions for [repeated balls-into-bins](crate::process::repeated) (Becchetti, Clementi, Natale, Pasquale, Posta,
//! SPAA 2015). Loads are those at the end of a round, after the throw.
//!
//! | question | answer | where |
//! |---|---|---|
//! | loads, stationary | limit of many bins at m/n balls a bin; exact for one bin | [`predict`] |
//! | few bins and balls | exact | [`small_chain`] |
//! | all balls in one bin: when it is empty | leading order in n | [`drain_rounds`] |
//!
//! # The limit of many bins
//! With a = m/n balls a bin and the fraction theta of the bins not empty, a bin receives Poisson(theta) balls a round: it
//! is the M/D/1 queue at rate theta, whose mean is `theta + theta^2 / (2 (1 - theta)) = a`. So
//! `theta = 1 + a - sqrt(1 + a^2)`, a fraction `sqrt(1 + a^2) - a` of the bins is empty, and the generating function of
//! the load is `(1 - theta) (1 - z) e^(theta (z-1)) / (e^(theta (z-1)) - z)`. It is the load of the leaky bins with one
//! choice and Poisson arrivals at rate theta before their deletions, and computed as such.
//!
//! # Numerics
//! theta and 1 - theta are sums and products of positive numbers, right to a few ulps for every a. The law of the load
//! has a relative error of some k ulps at load k until it meets its geometric tail, within a few dozen loads.

use super::arrivals::ArrivalLaw;
use super::chain::Chain;
use super::marginal::Marginal;
use super::population::Population;
use super::small_chain::{SmallChain, State, sorted, splits};
use super::{Basis, Prediction, TheoryError, check_bins, one_choice};
use crate::float::ln_1p;
use crate::process::leaky::Arrivals;

/// Most ways to throw the balls of a round, summed over the states: some seconds.
const MAX_WAYS: f64 = 5e6;

/// Limit of the fraction of empty bins for many bins with `a` balls a bin: `sqrt(1 + a^2) - a`.
#[must_use]
pub fn empty_fraction(a: f64) -> f64 {
    1.0 / (root(a) + a)
}

/// Limit of the fraction of non-empty bins: `1 + a - sqrt(1 + a^2)`.
fn busy_fraction(a: f64) -> f64 {
    // 1 - sqrt(1 + a^2) = -a^2 / (1 + sqrt(1 + a^2)), and 1 + sqrt(1 + a^2) - a has its own name.
    a * (1.0 + empty_fraction(a)) / (1.0 + root(a))
}

/// `sqrt(1 + a^2)`.
fn root(a: f64) -> f64 {
    // IEEE 754 rounds sqrt correctly; from 2^28 on 1 is lost in a^2, and the square might overflow.
    if a < (1u64 << 28) as f64 { (1.0 + a * a).sqrt() } else { a }
}

/// Predicts the stationary loads and max load of `m` balls in `n` bins.
///
/// # Errors
/// [`TheoryError`] says what is refused, why, and what to do.
pub fn predict(n: u64, m: u64) -> Result<Prediction, TheoryError> {
    check_bins(n)?;
    let (law, load_basis, max_basis) = if n == 1 {
        (Marginal::new(m, vec![1.0], None), Basis::Exact, Basis::Exact)
    } else {
        let a = m as f64 / n as f64;
        let (busy, empty) = (busy_fraction(a), empty_fraction(a));
        let arrivals = ArrivalLaw::one_bin(Arrivals::Poisson, n, busy);
        let after_the_throw = one_choice::stationary(&arrivals, empty).before_deletions(empty, busy);
        (after_the_throw, Basis::MeanField, Basis::IndependentBins)
    };
    Ok(Prediction {
        bins: Population::new(vec![(n as f64, law)]),
        load_basis,
        max_basis,
        bounds: None,
        further: Vec::new(),
    })
}

/// Rounds until a bin that holds all `m` balls is empty, to leading order in n at fixed a = m/n.
///
/// While u n balls are elsewhere the bin loses 1 a round and receives `1 + u - sqrt(1 + u^2)`, so that takes
/// `n * (integral of sqrt(1 + u^2) + u over u from 0 to a)` rounds: `1.647794 n` for m = n.
#[must_use]
pub fn drain_rounds(n: u64, m: u64) -> f64 {
    let a = m as f64 / n as f64;
    // a + sqrt(1 + a^2) = 1 + a + a^2 / (1 + sqrt(1 + a^2)).
    let arsinh = ln_1p(a + a * (a / (1.0 + root(a))));
    n as f64 * 0.5 * (a * root(a) + arsinh + a * a)
}

/// The exact chain of repeated balls-into-bins from these loads, sorted: nothing is lost, for no load exceeds the number
/// of balls.
///
/// # Errors
/// No bin, or too many states and ways to throw the balls of a round.
pub fn small_chain(loads: &[u32]) -> Result<SmallChain, TheoryError> {
    let n = loads.len() as u64;
    check_bins(n)?;
    let balls = loads.iter().try_fold(0u32, |sum, &load| sum.checked_add(load));
    let too_large = || TheoryError::ChainSize { n, cap: balls.unwrap_or(u32::MAX) };
    let m = balls.ok_or_else(too_large)?;
    // Ways to throw K balls into n bins: C(K + n - 1, K).
    let moved = u64::from(m).min(n);
    let ways = (1..=moved).try_fold(1.0, |c, i| {
        let c = c * (n - 1 + i) as f64 / i as f64;
        (c <= MAX_WAYS).then_some(c)
    });
    let most = (MAX_WAYS / ways.ok_or_else(too_large)?) as usize;
    let mut states = Vec::new();
    partitions(&mut vec![0; loads.len()], 0, m, m, most, &mut states).ok_or_else(too_large)?;
    let alike = vec![1.0 / n as f64; loads.len()];
    let chain = Chain::new(states, |state: &State, add| {
        let moved = state.iter().filter(|&&load| load > 0).count() as u32;
        splits(moved, &alike, 1.0, &mut |split, p| {
            add(&sorted(state.iter().zip(split).map(|(x, a)| x.saturating_sub(1) + a)), p);
        });
    })
    .ok_or_else(too_large)?;
    SmallChain::with_start(chain, m, [(sorted(loads.iter().copied()), 1.0)])
}

/// All ways to put `balls` balls into the bins from `bin` on in descending order, `largest` at most in each; `None`
/// where there are more than `most`.
fn partitions(
    state: &mut [u32],
    bin: usize,
    balls: u32,
    largest: u32,
    most: usize,
    states: &mut Vec<State>,
) -> Option<()> {
    if bin == state.len() {
        states.push((&*state).into());
        return (states.len() <= most).then_some(());
    }
    // What does not fit the bins that are left at the same load or less is no way at all.
    let least = balls.div_ceil((state.len() - bin) as u32);
    for load in least..=balls.min(largest) {
        state[bin] = load;
        partitions(state, bin + 1, balls - load, load, most, states)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{exp, powi};

    fn assert_close(what: &str, value: f64, reference: f64, bound: f64) {
        assert!((value - reference).abs() <= bound, "{what}: {value} for {reference}, bound {bound:e}");
    }

    #[test]
    fn empty_bins_and_mean_load_in_the_limit() {
        for (a, empty) in [(1u64, 0.414214), (2, 0.236068), (10, 0.049876), (50, 0.0099990)] {
            let n = 1_000_000;
            let prediction = predict(n, a * n).expect("a prediction");
            assert_eq!((prediction.load_basis, prediction.max_basis), (Basis::MeanField, Basis::IndependentBins));
            assert_close("empty", prediction.bins.empty_fraction(), empty, 5e-7);
            assert_close("mean", prediction.bins.mean_load() / a as f64, 1.0, 1e-12);
        }
        // Far ends: nearly no ball, and hardly an empty bin.
        for (n, m) in [(1 << 50, 1), (1 << 20, 1 << 50), (2, u64::MAX)] {
            let a = m as f64 / n as f64;
            let bins = predict(n, m).expect("a prediction").bins;
            assert_close("mean", bins.mean_load() / a, 1.0, 1e-12);
            assert_close("empty", bins.empty_fraction() * ((1.0 + a * a).sqrt() + a), 1.0, 1e-12);
        }
        assert_eq!(predict(5, 0).expect("a prediction").bins.mean_load(), 0.0);
        let one = predict(1, 9).expect("a prediction");
        assert_eq!((one.bins.mean_max(), one.max_basis), (9.0, Basis::Exact));
    }

    /// The generating function from the law, against its closed form.
    #[test]
    fn the_law_has_its_generating_function() {
        for a in [0.25f64, 1.0, 4.0] {
            let n = 1 << 20;
            let bins = predict(n, (a * n as f64) as u64).expect("a prediction").bins;
            let theta = 1.0 + a - (1.0 + a * a).sqrt();
            for z in [0.0f64, 0.3, 0.9] {
                let seen: f64 = (0..2000).rev().map(|k| bins.groups()[0].1.probability(k) * powi(z, k as u32)).sum();
                let poisson = exp(theta * (z - 1.0));
                assert_close("pgf", seen, (1.0 - theta) * (1.0 - z) * poisson / (poisson - z), 1e-14);
            }
        }
    }

    #[test]
    fn a_tower_drains_in_1_647794_n_rounds() {
        assert_close("m = n", drain_rounds(1000, 1000) / 1000.0, 1.647794, 5e-7);
        // Few balls leave one by one; many keep the other bins busy, and the tower loses 1/(2u) a round.
        assert_close("m << n", drain_rounds(1 << 40, 1 << 10) / 1024.0, 1.0, 1e-8);
        assert_close("m >> n", drain_rounds(1 << 10, 1 << 30) / (1u64 << 50) as f64, 1.0, 1e-8);
    }

    #[test]
    fn two_bins_have_a_uniform_law_with_halved_ends() {
        for m in 1..12 {
            let law = small_chain(&[m, 0]).expect("a small chain").stationary().expect("a law");
            let inner = 1.0 / f64::from(m);
            for (k, &p) in law.load.iter().enumerate() {
                let meant = if k == 0 || k == m as usize { 0.5 * inner } else { inner };
                assert_close(&format!("m {m}, load {k}"), p, meant, 1e-12);
            }
        }
    }

    #[test]
    fn few_bins_have_their_exact_values() {
        for (n, m, max, empty) in [
            (2, 2, 1.5, 0.25),
            (2, 3, 2.33333333, 0.16666667),
            (3, 3, 1.95238095, 20.0 / 63.0),
            (4, 4, 2.23387097, 0.34475806),
            (5, 5, 2.44231944, 0.36008252),
            (6, 6, 2.60940642, 0.36985043),
            (7, 7, 2.75337506, 0.37662947),
            (3, 6, 3.69513750, 0.16471398),
            (4, 8, 4.19295582, 0.18357541),
        ] {
            let mut loads = vec![0; n];
            loads[n - 1] = m;
            let chain = small_chain(&loads).expect("a small chain");
            let law = chain.stationary().expect("a law");
            let mean_max: f64 = law.max_load.iter().zip(0..).map(|(p, k)| p * f64::from(k)).sum();
            assert_close(&format!("n {n}, m {m}: max"), mean_max, max, 5.1e-9);
            assert_close(&format!("n {n}, m {m}: empty"), law.load[0], empty, 5.1e-9);
            assert_close("mean", law.mean_load, f64::from(m) / n as f64, 1e-12);
            assert!(law.lost < 1e-12, "nothing is lost: {}", law.lost);
        }
    }

    #[test]
    fn the_first_rounds_of_a_tower() {
        // One ball moves: back with probability 1/3. Then from {2, 1, 0} two balls move.
        let laws = small_chain(&[0, 3, 0]).expect("a small chain").at_rounds(&[0, 1, 2]);
        assert_eq!(laws[0].max_load, [0.0, 0.0, 0.0, 1.0]);
        assert_close("max 3 after 1", laws[1].max_load[3], 1.0 / 3.0, 1e-15);
        assert_close("max 3 after 2", laws[2].max_load[3], 1.0 / 9.0 + 2.0 / 3.0 / 9.0, 1e-15);
        assert_close("max 1 after 2", laws[2].max_load[1], 2.0 / 3.0 * 2.0 / 9.0, 1e-15);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(matches!(predict(0, 1), Err(TheoryError::Parameter(_))));
        assert!(matches!(predict(1 << 54, 1), Err(TheoryError::Parameter(_))));
        assert!(matches!(small_chain(&[]), Err(TheoryError::Parameter(_))));
        assert!(matches!(small_chain(&[1; 40]), Err(TheoryError::ChainSize { n: 40, cap: 40 })));
        assert!(matches!(small_chain(&[u32::MAX, 1]), Err(TheoryError::ChainSize { .. })));
        assert!(matches!(small_chain(&[1 << 30, 0]), Err(TheoryError::ChainSize { .. })));
    }
}
