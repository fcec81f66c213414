//! Samplers of laws with parameters that change from draw to draw, for counts up to 10^15: the one place where floating
//! point decides a draw.
//!
//! Their bits are the same on every host: additions, multiplications, divisions and square roots are correctly rounded
//! everywhere and never contracted, and logarithms and exponentials are those of `crate::float`.
//!
//! | law | method | error |
//! |---|---|---|
//! | [`binomial()`] | inversion, transformed rejection | see there |
//! | [`PoissonLadder`] | a bin's Poisson count as a chain of yes or no | relative 2^-50 |
//! | [`Rounded`] | one comparison | 2^-64 |
//! | [`scatter()`] | balls in few of many bins, collisions only | none: whole numbers |

#![warn(clippy::disallowed_methods)]

mod binomial;
mod deviance;
mod poisson;
mod rounded;
mod scatter;

pub use binomial::binomial;
pub use poisson::PoissonLadder;
pub use rounded::Rounded;
pub use scatter::scatter;

/// Reference values (`tests/kat/samplers.json`).
#[cfg(test)]
mod known {
    use serde_json::Value;

    /// The rows of a table, as numbers.
    pub(super) fn rows(table: &str) -> Vec<Vec<f64>> {
        let all: Value = serde_json::from_str(include_str!("../../../tests/kat/samplers.json")).expect("valid JSON");
        let number = |v: &Value| v.as_str().map_or_else(|| v.as_f64(), |text| text.parse().ok()).expect("a number");
        let row = |row: &Value| row.as_array().expect("a row").iter().map(number).collect();
        all[table].as_array().expect("a table").iter().map(row).collect()
    }
}
