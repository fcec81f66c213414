//! The number of balls that arrive in one round, in one bin that is chosen uniformly or in all bins.
//!
//! All three arrival laws are sums of independent Bernoulli trials, or their Poisson limit: with one choice and fixed
//! arrivals, floor(lambda n) balls hit a bin with probability 1/n each, and one more does with probability w/n, w the
//! fractional part of lambda n.

use super::special::{ln_1p_minus, sums_from};
use crate::float::{exp, ln_1p};
use crate::process::leaky::Arrivals;

/// A law of arrivals: independent trials, and a Poisson part.
#[derive(Clone, Debug)]
pub(super) struct ArrivalLaw {
    /// Groups of (number of trials, probability of each).
    trials: [(f64, f64); 2],
    /// Mean of the Poisson part.
    poisson: f64,
}

impl ArrivalLaw {
    /// Balls that reach one bin if every ball goes to a uniformly random one.
    pub(super) fn one_bin(arrivals: Arrivals, n: u64, lambda: f64) -> Self {
        let bins = n as f64;
        match arrivals {
            Arrivals::Binomial => Self { trials: [(bins, lambda / bins), (0.0, 0.0)], poisson: 0.0 },
            Arrivals::Poisson => Self { trials: [(0.0, 0.0); 2], poisson: lambda },
            Arrivals::Fixed => {
                let (whole, rest) = split(lambda, bins);
                Self { trials: [(whole, 1.0 / bins), (1.0, rest / bins)], poisson: 0.0 }
            }
        }
    }

    /// Balls that arrive in the whole system.
    pub(super) fn system(arrivals: Arrivals, n: u64, lambda: f64) -> Self {
        let bins = n as f64;
        match arrivals {
            Arrivals::Binomial => Self { trials: [(bins, lambda), (0.0, 0.0)], poisson: 0.0 },
            Arrivals::Poisson => Self { trials: [(0.0, 0.0); 2], poisson: lambda * bins },
            Arrivals::Fixed => {
                let (whole, rest) = split(lambda, bins);
                Self { trials: [(whole, 1.0), (1.0, rest)], poisson: 0.0 }
            }
        }
    }

    /// Probabilities of 0, 1, 2, .. down to the smallest normal `f64`.
    ///
    /// # Numerics
    /// All terms come from ratios and sums of positive numbers: the error is relative, a few ulps.
    pub(super) fn probabilities(&self) -> Vec<f64> {
        let [a, b] = self.trials.map(|(trials, p)| binomial(trials, p));
        convolve(&convolve(&a, &b), &poisson(self.poisson))
    }

    /// Mean number of pairs of arrivals: A''(1)/2 of the generating function A, a sum of positive terms.
    pub(super) fn pairs(&self) -> f64 {
        let [a, b] = self.trials.map(|(trials, p)| trials * p);
        let within = |(trials, p): (f64, f64)| trials * p * (trials - 1.0).max(0.0) * p / 2.0;
        let [within_a, within_b] = self.trials.map(within);
        within_a + within_b + self.poisson * self.poisson / 2.0 + a * b + (a + b) * self.poisson
    }

    /// `ln A(1 + y) - ln(1 + y)` and its derivative in `y`, A the generating function, for a mean of 1 - `gap`.
    ///
    /// # Numerics
    /// Both are differences of nearly equal numbers where `y` and `gap` are small; the leading terms are taken out by
    /// hand, so that what is left has its full precision.
    pub(super) fn excess_log_pgf(&self, gap: f64, y: f64) -> (f64, f64) {
        let bend = |(trials, p): (f64, f64)| trials * ln_1p_minus(p * y);
        let slope = |(trials, p): (f64, f64)| trials * p * p * y / (1.0 + p * y);
        let [a, b] = self.trials;
        (bend(a) + bend(b) - ln_1p_minus(y) - gap * y, y / (1.0 + y) - slope(a) - slope(b) - gap)
    }

    /// Sum of the squared probabilities of the trials: mean less variance.
    pub(super) fn sum_of_squares(&self) -> f64 {
        self.trials.iter().map(|(trials, p)| trials * p * p).sum()
    }
}

/// Floor and remainder of `lambda * n`, the product taken exactly.
fn split(lambda: f64, n: f64) -> (f64, f64) {
    let product = lambda * n;
    let error = lambda.mul_add(n, -product);
    let whole = if product.fract() == 0.0 && error < 0.0 { product - 1.0 } else { product.floor() };
    (whole, product - whole + error)
}

/// Binomial probabilities of 0, 1, ..
fn binomial(trials: f64, p: f64) -> Vec<f64> {
    if p >= 1.0 {
        let mut certain = vec![0.0; trials as usize];
        certain.push(1.0);
        return certain;
    }
    let odds = p / (1.0 - p);
    ratios(exp(trials * ln_1p(-p)), trials * p, |k| (trials - k) / (k + 1.0) * odds)
}

/// Poisson probabilities of 0, 1, ..
pub(super) fn poisson(mean: f64) -> Vec<f64> {
    ratios(exp(-mean), mean, |k| mean / (k + 1.0))
}

/// The probabilities that begin with `first` and go on by `ratio`, past `mean` and until they leave the normal range.
fn ratios(first: f64, mean: f64, ratio: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut p = first;
    let mut probabilities = Vec::new();
    let mut k = 0.0;
    while p >= f64::MIN_POSITIVE || (k <= mean && p > 0.0) {
        probabilities.push(p);
        p *= ratio(k);
        k += 1.0;
    }
    probabilities
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            sum[i + j] += x * y;
        }
    }
    while sum.len() > 1 && sum.last().is_some_and(|&p| p < f64::MIN_POSITIVE) {
        sum.pop();
    }
    sum
}

/// P(X > 0), P(X > 1), .. from the probabilities of X, each a sum of positive terms.
pub(super) fn beyond(probabilities: &[f64]) -> Vec<f64> {
    sums_from(&probabilities[1..], 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of the probabilities, mean, and mean number of pairs.
    fn moments(law: &ArrivalLaw) -> [f64; 3] {
        let p = law.probabilities();
        let sum = |f: &dyn Fn(f64) -> f64| p.iter().enumerate().map(|(k, p)| f(k as f64) * p).sum::<f64>();
        [sum(&|_| 1.0), sum(&|k| k), sum(&|k| k * (k - 1.0) / 2.0)]
    }

    #[test]
    fn laws_have_their_moments() {
        for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
            for (n, lambda) in [(1, 0.5), (2, 0.75), (3, 0.9), (1024, 0.95), (1_000_000_000_000, 0.999), (7, 0.0)] {
                let law = ArrivalLaw::one_bin(arrivals, n, lambda);
                let [one, mean, pairs] = moments(&law);
                for (seen, meant) in [(one, 1.0), (mean, lambda), (pairs, law.pairs())] {
                    assert!((seen - meant).abs() < 4e-15, "{arrivals:?}, n {n}, lambda {lambda}: {seen} for {meant}");
                }
                if n < 10 {
                    let law = ArrivalLaw::system(arrivals, n, lambda);
                    let [one, mean, _] = moments(&law);
                    assert!(
                        (one - 1.0).abs() < 1e-14 && (mean - lambda * n as f64).abs() < 1e-14,
                        "{arrivals:?}, n {n}"
                    );
                }
            }
        }
    }

    #[test]
    fn fixed_arrivals_split_exactly() {
        assert_eq!(split(0.75, 1024.0), (768.0, 0.0));
        let (whole, rest) = split(0.95, 1024.0);
        assert!(whole == 972.0 && (rest - 0.8).abs() < 1e-12);
        // 0.1 is above, 0.7 below the decimal: the exact products 1 + 5.6e-17 and 7 - 4.4e-16 straddle integers.
        assert_eq!(split(0.1, 10.0).0, 1.0);
        let (whole, rest) = split(0.7, 10.0);
        assert_eq!((whole, 1.0 - rest < 1e-15), (6.0, true));
    }
}
