//! One choice (d = 1): the exact stationary law of a bin, for every number of bins.
//!
//! One bin is a Markov chain by itself: `L' = (L + A - 1)^+`, A the balls that reach it, independent from round to
//! round. Its stationary generating function is `P(z) = (1 - lambda)(1 - z) / (A(z) - z)`.
//!
//! # Numerics
//! With `t_i = P(A > i)`, `A(z) - z = (1 - z)(1 - sum_i t_i z^i)`: the law is compound geometric and obeys
//! `a_0 p_0 = 1 - lambda` and `a_0 p_k = sum_{i=1..k} t_i p_{k-i}`, `a_0 = 1 - t_0` the chance of no arrival. Each term
//! is positive: the relative error of `p_k` grows like k ulps and does not depend on 1 - lambda. The recursion is left
//! for the asymptote `C z0^-k` when both have agreed to that error for eight levels in a row, by the last of which the
//! true difference has shrunk far below it. That is after a few dozen levels for every lambda: all other poles are far
//! away, or the probabilities are below the smallest f64. The root z0 of A(z) = z is found to the last digits from
//! logarithms with their leading terms removed, so that the series of length 1/(1 - lambda) is summed in closed form.

use super::arrivals::{ArrivalLaw, beyond};
use super::marginal::{Geometric, Marginal};
use super::special::increasing_root;
use crate::float::{exp_m1, ln, ln_1p};

/// Levels in a row that must agree with the asymptote.
const AGREEING: usize = 8;
/// The law meets its asymptote long before.
const MOST_LEVELS: usize = 10_000;

/// Stationary law of one bin after the deletions; `gap` is 1 - lambda > 0.
pub(super) fn stationary(arrivals: &ArrivalLaw, gap: f64) -> Marginal {
    let a = arrivals.probabilities();
    let t = beyond(&a);
    let asymptote = asymptote(arrivals, gap);
    let mut p = vec![gap / a[0]];
    let mut agreeing = 0;
    while agreeing < AGREEING {
        let k = p.len();
        let reach = (1..=k).filter_map(|i| Some(t.get(i)? * p[k - i]));
        let next = reach.sum::<f64>() / a[0];
        if next < f64::MIN_POSITIVE {
            // The table reaches the smallest f64: no tail is left.
            return Marginal::new(0, p, None);
        }
        p.push(next);
        assert!(k < MOST_LEVELS, "the law meets its asymptote within {MOST_LEVELS} levels");
        let agrees = asymptote.is_some_and(|tail| {
            let meant = tail.at_least(k as f64) * -exp_m1(-tail.rate);
            // Rounding of the recursion, and of the exponent rate * k.
            let rounding = 4.0 * (k + AGREEING) as f64 * (1.0 + tail.rate) * f64::EPSILON;
            (next / meant - 1.0).abs() <= rounding
        });
        agreeing = if agrees { agreeing + 1 } else { 0 };
    }
    Marginal::new(0, p, asymptote)
}

/// The tail C z0^-k of P(load >= k); `None` where a bin is never reached by two balls in a round, so that it ends every
/// round empty.
fn asymptote(arrivals: &ArrivalLaw, gap: f64) -> Option<Geometric> {
    if arrivals.pairs() < f64::MIN_POSITIVE {
        return None;
    }
    let excess = |y: f64| arrivals.excess_log_pgf(gap, y);
    // ln A(z) - ln z is negative between z = 1 and z0 and positive beyond; z = 1 + y. For small gaps y is near this:
    let mut high = 2.0 * gap / (1.0 - arrivals.sum_of_squares());
    while excess(high).0 <= 0.0 {
        high *= 2.0;
    }
    let y = increasing_root(0.0, high, excess);
    // The residue at z0 gives C = (1 - lambda) / (A'(z0) - 1), and A(z0) = z0 makes A'(z0) - 1 = z0 (ln A - ln z)'.
    let slope = (1.0 + y) * excess(y).1;
    Some(Geometric { log_scale: ln(gap / slope), rate: ln_1p(y) })
}
