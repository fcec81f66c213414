//! Student's t law: tails and quantiles, for any number of degrees of freedom from 1 on.
//!
//! T^2 / (df + T^2) has the law Beta(1/2, df/2), whose odds are T^2 / df.

use super::beta::{self, Tail};
use crate::float::powi;

/// P(T > t).
///
/// NaN if `df` is 0 or `t` is NaN.
///
/// # Numerics
/// Relative error below 1e-13, tested for df from 1 to 10^9 (`tests/kat/quantiles.txt`).
#[must_use]
pub fn upper_tail(t: f64, df: u64) -> f64 {
    if df == 0 || t.is_nan() {
        return f64::NAN;
    }
    if t == 0.0 {
        return 0.5;
    }
    let df = df as f64;
    // Beyond these odds the square of t leaves the range of f64.
    let odds = powi(t / df.sqrt(), 2).clamp(1e-300, 1e300);
    let beyond = 0.5 * beta::tail_at_odds(0.5, 0.5 * df, odds, Tail::Upper);
    if t > 0.0 { beyond } else { 1.0 - beyond }
}

/// The t with P(T > t) = `probability`.
///
/// NaN unless `df` is at least 1 and 0 < probability < 1.
///
/// # Numerics
/// Relative error below 1e-13, tested for df from 1 to 10^9 (`tests/kat/quantiles.txt`).
#[must_use]
pub fn upper_quantile(probability: f64, df: u64) -> f64 {
    if df == 0 || !(0.0 < probability && probability < 1.0) {
        return f64::NAN;
    }
    if probability == 0.5 {
        return 0.0;
    }
    let df = df as f64;
    let two_sided = 2.0 * probability.min(1.0 - probability);
    let odds = beta::quantile_odds(0.5, 0.5 * df, two_sided, Tail::Upper);
    (df * odds).sqrt().copysign(0.5 - probability)
}
