//! The bounds of Berenbrink, Friedetzky, Kling, Mallmann-Trenn, Nagel, Wastell (PODC 2016) on the max load after any
//! number of rounds, as shapes: the paper's O(.) without its constant.

use crate::float::ln;

/// `ln(n / (1 - lambda)) / (1 - lambda)`: one choice. `gap` is 1 - lambda.
#[must_use]
pub fn one_choice(n: f64, gap: f64) -> f64 {
    two_choices(n, gap) / gap
}

/// `ln(n / (1 - lambda))`: two choices. `gap` is 1 - lambda.
#[must_use]
pub fn two_choices(n: f64, gap: f64) -> f64 {
    ln(n / gap)
}
