//! Parts of the logarithm of a binomial probability that keep their precision at any size (Loader, "Fast and accurate
//! computation of binomial probabilities", 2000):
//!
//! `ln P(x) = ln(n / (2 pi x (n - x))) / 2 - D(x; np) - D(n - x; nq) + e(n) - e(x) - e(n - x)`
//!
//! with D the deviance and e the error of Stirling's formula. Near the mean D is a square of a small quotient and not a
//! difference of large numbers.

use crate::float::ln;

/// `ln x! - ln(sqrt(2 pi x) (x / e)^x)` for whole `x`; 0 at 0, where [`or_half_turn`] stands in for the square root.
///
/// # Numerics
/// Absolute error below 2^-52.
pub(super) fn stirling_error(x: f64) -> f64 {
    const SMALL: [f64; 16] = [
        0.0,
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
        0.007573675487951841,
        0.00694284010720953,
        0.006408994188004207,
        0.0059513701127588475,
        0.005554733551962801,
    ];
    if x < 16.0 {
        return SMALL[x as usize];
    }
    let y = 1.0 / (x * x);
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - y / 1188.0) * y) * y) * y) / x
}

/// `x`, and 1 / (2 pi) at 0: what makes Stirling's formula right there with no error term.
pub(super) fn or_half_turn(x: f64) -> f64 {
    if x == 0.0 { std::f64::consts::FRAC_1_PI / 2.0 } else { x }
}

/// `x ln(x / mean) + mean - x`, given `difference = x - mean`.
///
/// # Numerics
/// Near the mean, the series in v = (x - mean) / (x + mean): relative error a few ulps of what `difference` has.
pub(super) fn deviance(x: f64, mean: f64, difference: f64) -> f64 {
    if difference.abs() >= 0.1 * (x + mean) {
        let surprise = if x == 0.0 { 0.0 } else { x * ln(x / mean) };
        return surprise - difference;
    }
    let v = difference / (x + mean);
    let square = v * v;
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    let mut divisor = 1.0;
    loop {
        power *= square;
        divisor += 2.0;
        let next = sum + power / divisor;
        if next == sum {
            return sum;
        }
        sum = next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::rows;
    use super::*;

    #[test]
    fn parts_agree_with_high_precision() {
        for row in rows("deviance") {
            // x - mean is exact in each.
            let [x, mean, value] = row[..] else { panic!("three numbers: {row:?}") };
            let seen = deviance(x, mean, x - mean);
            assert!((seen / value - 1.0).abs() < 4e-15, "D({x}; {mean}) = {seen} for {value}");
        }
        for row in rows("stirling_error") {
            let [x, value] = row[..] else { panic!("two numbers: {row:?}") };
            assert!((stirling_error(x) - value).abs() < f64::EPSILON, "e({x}) = {} for {value}", stirling_error(x));
        }
        assert_eq!((deviance(0.0, 3.5, -3.5), deviance(7.0, 7.0, 0.0)), (3.5, 0.0));
    }
}
