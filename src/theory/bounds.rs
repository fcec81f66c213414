//! The bounds of Berenbrink, Friedetzky, Kling, Mallmann-Trenn, Nagel, Wastell (PODC 2016) on the max load after any
//! number of rounds, as shapes: the paper's O(.) without its constant.

use crate::float::ln;
use serde::Serialize;

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

/// Both shapes for some bins and rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// [`one_choice`].
    pub one_choice: f64,
    /// [`two_choices`].
    pub two_choices: f64,
}

impl Bounds {
    /// The shapes at `n` bins; `None` at `gap` 0, where nothing is bounded. `gap` is 1 - lambda.
    #[must_use]
    pub fn new(n: f64, gap: f64) -> Option<Self> {
        (gap > 0.0).then(|| Self { one_choice: one_choice(n, gap), two_choices: two_choices(n, gap) })
    }
}
