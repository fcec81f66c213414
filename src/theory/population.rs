//! All bins together: the law of a bin chosen at random, and the max load if the bins were independent.
//!
//! P(max >= k) = 1 - prod (1 - P(load of bin i >= k)). With one choice and Poisson arrivals the bins are independent
//! and this is exact; otherwise it is the prediction for finite n, good while n is large.

use super::marginal::Marginal;
use super::special::integrate;
use crate::float::{exp, exp_m1, ln, ln_1p, powf};

/// Groups of independent bins, each with its law.
#[derive(Clone, Debug)]
pub struct Population {
    /// Number of bins and the law of each.
    groups: Vec<(f64, Marginal)>,
    bins: f64,
}

/// Rates of a geometric tail below this are summed by an integral, the others term by term.
const SLOW: f64 = 1e-3;

impl Population {
    pub(super) fn new(groups: Vec<(f64, Marginal)>) -> Self {
        let bins = groups.iter().map(|(bins, _)| bins).sum();
        Self { groups, bins }
    }

    /// The groups: the number of bins in each and the law of one of them.
    #[must_use]
    pub fn groups(&self) -> &[(f64, Marginal)] {
        &self.groups
    }

    fn average(&self, of: impl Fn(&Marginal) -> f64) -> f64 {
        self.groups.iter().map(|(bins, law)| bins / self.bins * of(law)).sum()
    }

    /// P(load >= k) of a bin chosen at random.
    #[must_use]
    pub fn load_exceedance(&self, k: u64) -> f64 {
        self.average(|law| law.exceedance(k))
    }

    /// Mean load of a bin, in balls.
    #[must_use]
    pub fn mean_load(&self) -> f64 {
        self.average(Marginal::mean)
    }

    /// Variance of the load of a bin chosen at random.
    #[must_use]
    pub fn load_variance(&self) -> f64 {
        let mean = self.mean_load();
        self.average(|law| law.variance() + (law.mean() - mean) * (law.mean() - mean))
    }

    /// Mean fraction of empty bins.
    #[must_use]
    pub fn empty_fraction(&self) -> f64 {
        self.average(Marginal::empty)
    }

    /// P(max load >= k).
    #[must_use]
    pub fn max_exceedance(&self, k: u64) -> f64 {
        let none: f64 = self.groups.iter().map(|(bins, law)| bins * ln_1p(-law.exceedance(k).min(1.0))).sum();
        -exp_m1(none)
    }

    /// Smallest load that the max load stays at or below with probability `q` at least, 0 < q < 1.
    #[must_use]
    pub fn max_quantile(&self, q: f64) -> u64 {
        let exceeds = |k: u64| self.max_exceedance(k + 1) > 1.0 - q;
        let mut high = 1;
        while exceeds(high) {
            high *= 2;
        }
        let mut low = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            if exceeds(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Mean max load, in balls.
    ///
    /// # Numerics
    /// The sum of P(max >= k) over k >= 1. Where a geometric tail is slow the sum beyond the table goes over 1/rate
    /// levels: it is taken as an integral with the first two Euler-Maclaurin corrections, whose remainder is of
    /// relative order rate^4.
    #[must_use]
    pub fn mean_max(&self) -> f64 {
        let reached = self.groups.iter().map(|(_, law)| law.first()).max().unwrap_or(0);
        // The sum begins above what is surely reached; from `end` on there are tails only.
        let end = self.groups.iter().map(|(_, law)| law.end()).max().unwrap_or(0).max(reached + 1);
        let slow = match &self.groups[..] {
            [(bins, law)] => law.tail().filter(|tail| tail.rate < SLOW).map(|tail| (*bins, tail)),
            _ => None,
        };
        let table = |last: u64| (reached + 1..last).map(|k| self.max_exceedance(k)).sum::<f64>();
        let Some((bins, tail)) = slow else {
            let beyond = (end..).map(|k| self.max_exceedance(k));
            return reached as f64 + table(end) + beyond.take_while(|p| *p > 1e-20).sum::<f64>();
        };
        let u = tail.at_least(end as f64).min(1.0);
        let f = |s: f64| -exp_m1(bins * ln_1p(-u * exp(-s)));
        let slope = -tail.rate * bins * u * powf(1.0 - u, bins - 1.0);
        // Beyond 45 + ln n the max reaches that level with probability below 1e-19.
        table(end) + integrate(45.0 + ln(bins), f) / tail.rate + 0.5 * f(0.0) - slope / 12.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::marginal::Geometric;

    fn geometric(rate: f64, n: f64) -> Population {
        Population::new(vec![(n, Marginal::new(0, Vec::new(), Some(Geometric { log_scale: 0.0, rate })))])
    }

    #[test]
    fn the_slow_sum_equals_the_plain_one() {
        for n in [1.0, 2.0, 1000.0, 1e12] {
            let slow = geometric(0.9 * SLOW, n);
            let plain: f64 = (1..200_000).map(|k| slow.max_exceedance(k)).sum();
            assert!((slow.mean_max() / plain - 1.0).abs() < 1e-12, "n {n}: {} for {plain}", slow.mean_max());
        }
        // One bin: 1 / (e^rate - 1).
        for rate in [1e-9, 1e-4, 0.5] {
            assert!((geometric(rate, 1.0).mean_max() * exp_m1(rate) - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn quantiles_invert_the_law() {
        let law = geometric(0.3, 100.0);
        for q in [0.05, 0.5, 0.999] {
            let m = law.max_quantile(q);
            assert!(1.0 - law.max_exceedance(m + 1) >= q && (m == 0 || 1.0 - law.max_exceedance(m) < q));
        }
    }
}
