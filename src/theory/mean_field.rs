//! Two and more choices: the fixed point in the limit of many bins.
//!
//! Let `x_k` be the fraction of bins of load at least k after a round, `p_k = x_k - x_{k+1}`. A ball joins some bin of
//! load j with probability `x_j^d - x_{j+1}^d`, so a bin of load j receives Poisson(`mu_j`) balls,
//! `mu_j = lambda q(x_j, x_{j+1})`, `q(x, y) = (x^d - y^d)/(x - y)`; then `L' = (L + A - 1)^+`.
//!
//! # Method
//! Iterating that map takes about 1/(1 - lambda) rounds. The fixed point needs no iteration: a bin crosses each level
//! downwards as often as upwards, and downwards only by losing a single ball, so
//!
//! ```text
//! p_0 exp(-mu_0) = 1 - lambda,
//! p_{k+1} exp(-mu_{k+1}) = sum_{j<=k} p_j P(Poisson(mu_j) >= k + 2 - j).
//! ```
//!
//! With `x_{k+1} = 1 - p_0 - .. - p_k` known, the left side depends on `p_{k+1}` alone, and grows with it: one
//! bracketed scalar root a level, from the bottom to the far tail.
//!
//! # Numerics
//! Every sum is of positive terms. Nothing forces the `p_k` to sum to 1, so their sum checks the whole: a mismatch
//! delta of the flows leaves x at infinity with `x - lambda x^d = -delta`, well conditioned for d >= 2 (for d = 1 it
//! would be `x = -delta/(1 - lambda)`, see the exact law instead). The subtraction in `x_{k+1}` leaves an absolute
//! error near 1e-16 where x is tiny, but there mu is tiny as well and `p_{k+1}` is fed from far below, so small `p_k`
//! are good to a relative 1e-12 or better (tests compare with high-precision values down to 1e-300).

use super::arrivals::{beyond, poisson};
use super::marginal::Marginal;
use super::special::increasing_root;
use crate::float::exp;

/// `q(x, y) = (x^d - y^d)/(x - y)` and its derivative in y.
pub(super) fn share(x: f64, y: f64, d: u32) -> (f64, f64) {
    let (mut q, mut slope, mut power) = (1.0, 0.0, 1.0);
    for _ in 1..d {
        power *= x;
        slope = slope * y + q;
        q = q * y + power;
    }
    (q, slope)
}

/// Stationary law of one bin after the deletions, for d >= 2; `gap` is 1 - lambda > 0.
pub(super) fn fixed_point(lambda: f64, gap: f64, d: u32) -> Marginal {
    let mut p: Vec<f64> = Vec::new();
    // arrivals[j][i] = P(Poisson(mu_j) > i).
    let mut arrivals: Vec<Vec<f64>> = Vec::new();
    let mut below = 0.0;
    loop {
        let k = p.len();
        let flow = match k {
            0 => gap,
            _ => (0..k).filter_map(|j| Some(p[j] * arrivals[j].get(k - j)?)).sum(),
        };
        if flow < f64::MIN_POSITIVE {
            return Marginal::new(0, p, None);
        }
        let x = f64::max(1.0 - below, 0.0);
        let next = level(x, flow, lambda, d);
        let mu = lambda * share(x, f64::max(x - next, 0.0), d).0;
        arrivals.push(beyond(&poisson(mu)));
        below += next;
        p.push(next);
    }
}

/// The probability p of a level that `x` of the bins reach: p exp(-lambda q(x, x - p)) = `flow`.
fn level(x: f64, flow: f64, lambda: f64, d: u32) -> f64 {
    // In v = ln(p / flow) = lambda q, which is at most lambda q(x, x), the slope is at least 1.
    let v = increasing_root(0.0, lambda * share(x, x, d).0, |v| {
        let p = flow * exp(v);
        let (q, slope) = share(x, f64::max(x - p, 0.0), d);
        (v - lambda * q, if p < x { 1.0 + lambda * p * slope } else { 1.0 })
    });
    flow * exp(v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::powi;

    #[test]
    fn share_is_the_difference_quotient() {
        for (x, y, d) in [(0.9, 0.2, 2), (0.75, 0.5, 3), (1.0, 0.25, 7), (0.5, 0.0, 4)] {
            let (q, slope) = share(x, y, d);
            assert!((q - (powi(x, d) - powi(y, d)) / (x - y)).abs() < 1e-14);
            let h = 1e-6;
            assert!((slope - (share(x, y + h, d).0 - q) / h).abs() < 1e-4);
        }
        assert_eq!(share(0.3, 0.1, 1), (1.0, 0.0));
        assert!((share(0.5, 0.5, 256).0 - 256.0 * powi(0.5, 255)).abs() < 1e-80);
    }
}
