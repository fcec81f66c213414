//! The few numerical tools that the theory needs.

use crate::float::ln_1p;

/// The sum of each term, all after it and `rest`, taken from the last term on: of probabilities that is P(X >= k), each
/// a sum of positive terms with the small ones first.
pub(super) fn sums_from(terms: &[f64], rest: f64) -> Vec<f64> {
    let mut sum = rest;
    let mut sums: Vec<f64> = terms
        .iter()
        .rev()
        .map(|term| {
            sum += term;
            sum
        })
        .collect();
    sums.reverse();
    sums
}

/// `ln(1 + x) - x` for `x >= 0`, without the cancellation at small `x`.
///
/// With r = x / (2 + x), ln(1 + x) = 2 artanh r, so the difference is -r x + 2 r^3 (1/3 + r^2/5 + ..).
pub(super) fn ln_1p_minus(x: f64) -> f64 {
    if x > 0.4 {
        return ln_1p(x) - x;
    }
    let r = x / (2.0 + x);
    // r <= 1/6: eleven terms reach 2^-53.
    let series = (0..11).rev().fold(0.0, |sum, i| sum * r * r + 1.0 / f64::from(2 * i + 3));
    2.0 * r * r * r * series - r * x
}

/// Root of an increasing function between `low` and `high`: Newton's method, halving the bracket where it would leave
/// it. `f` gives value and slope.
pub(super) fn increasing_root(mut low: f64, mut high: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut x = 0.5 * (low + high);
    // Each step halves the bracket or is Newton's; 200 of either exhaust the precision of an f64.
    for _ in 0..200 {
        let (value, slope) = f(x);
        if value > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let newton = x - value / slope;
        if value == 0.0 {
            return x;
        }
        // Rounding of `f` keeps the last steps at an ulp or two.
        if (newton - x).abs() <= 4.0 * f64::EPSILON * x.abs() {
            return newton;
        }
        x = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
    }
    x
}

/// Positive nodes and weights of the 16-point Gauss-Legendre rule on [-1, 1].
const GAUSS: [(f64, f64); 8] = [
    (0.09501250983763744, 0.1894506104550685),
    (0.2816035507792589, 0.18260341504492358),
    (0.45801677765722737, 0.16915651939500254),
    (0.6178762444026438, 0.14959598881657674),
    (0.755404408355003, 0.12462897125553388),
    (0.8656312023878318, 0.09515851168249279),
    (0.9445750230732326, 0.062253523938647894),
    (0.9894009349916499, 0.027152459411754096),
];

/// Integral of `f` over [0, end], by 16-point Gauss-Legendre on panels of length at most 1.
pub(super) fn integrate(end: f64, f: impl Fn(f64) -> f64) -> f64 {
    let panels = end.ceil().max(1.0);
    let half = 0.5 * end / panels;
    let panel = |i: u32| {
        let middle = (2.0 * f64::from(i) + 1.0) * half;
        GAUSS.iter().map(|(x, w)| w * (f(middle - x * half) + f(middle + x * half))).sum::<f64>() * half
    };
    (0..panels as u32).map(panel).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::exp;

    #[test]
    fn ln_1p_minus_keeps_its_relative_precision() {
        // 40-digit values of ln(1 + x) - x, rounded.
        for (x, value) in [
            (1e-12, -4.999999999996667e-25),
            (1e-05, -4.9999666669166655e-11),
            (0.01, -4.966914683191715e-05),
            (0.1, -0.00468982019567514),
            (0.39999, -0.06352490626144025),
            (0.4, -0.06352776337878707),
            (0.5, -0.09453489189183562),
            (3.0, -1.6137056388801094),
            (1000000.0, -999986.184488442),
        ] {
            assert!((ln_1p_minus(x) / value - 1.0).abs() < 1e-15, "{x}: {} for {value}", ln_1p_minus(x));
        }
        assert_eq!(ln_1p_minus(0.0), 0.0);
    }

    #[test]
    fn roots_are_found_to_the_last_digits() {
        let root = increasing_root(0.0, 1e6, |x| (x * x - 2.0, 2.0 * x));
        assert!((root - 2f64.sqrt()).abs() < 1e-15);
        // A slope of no use leaves halving.
        let root = increasing_root(0.0, 4.0, |x| (x - 3.0, 0.0));
        assert!((root - 3.0).abs() < 1e-15);
        assert_eq!(increasing_root(0.0, 2.0, |x| (x - 1.0, 1.0)), 1.0);
    }

    #[test]
    fn integrals_of_smooth_functions_are_exact() {
        assert!((integrate(30.0, |x| exp(-x)) - (1.0 - exp(-30.0))).abs() < 1e-15);
        assert!((integrate(0.3, libm::cos) - libm::sin(0.3)).abs() < 1e-16);
    }
}
