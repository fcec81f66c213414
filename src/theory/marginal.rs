//! The law of the load of one bin.

use super::special::sums_from;
use crate::float::{exp, exp_m1};

/// A geometric tail: `P(load >= k) = exp(log_scale - rate k)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometric {
    /// Logarithm of the factor in front.
    pub log_scale: f64,
    /// Decay per ball: ln z0, z0 > 1 the ratio of successive exceedances.
    pub rate: f64,
}

impl Geometric {
    pub(super) fn at_least(&self, k: f64) -> f64 {
        exp(self.log_scale - self.rate * k)
    }
}

/// The law of the load of one bin: a table, and perhaps a geometric tail beyond it.
///
/// # Numerics
/// Exceedances are sums of positive terms from the far end, so that small ones keep their relative precision.
#[derive(Clone, Debug)]
pub struct Marginal {
    /// Load of the first entry of the tables; smaller loads do not occur.
    first: u64,
    /// P(load = first), P(load = first + 1), ..
    probabilities: Vec<f64>,
    /// P(load >= first), P(load >= first + 1), ..
    exceedances: Vec<f64>,
    tail: Option<Geometric>,
    mean: f64,
    variance: f64,
}

impl Marginal {
    /// The law with these probabilities of `first`, `first + 1`, .., and beyond the table those of `tail`.
    pub(super) fn new(first: u64, probabilities: Vec<f64>, tail: Option<Geometric>) -> Self {
        let len = probabilities.len();
        let rest = tail.map_or(0.0, |tail| tail.at_least(len as f64));
        let exceedances = sums_from(&probabilities, rest);
        // Beyond the table the load is `len` plus a geometric number of mean 1 / (z0 - 1).
        let over = tail.map_or(0.0, |tail| 1.0 / exp_m1(tail.rate));
        let levels = || (0..).map(f64::from as fn(u32) -> f64).zip(&probabilities);
        let mean =
            levels().map(|(k, p)| k * p).sum::<f64>() + if rest > 0.0 { rest * (len as f64 + over) } else { 0.0 };
        let spread = |k: f64| (k - mean) * (k - mean);
        let beyond = if rest > 0.0 { rest * (over * (1.0 + over) + spread(len as f64 + over)) } else { 0.0 };
        let variance = levels().map(|(k, p)| spread(k) * p).sum::<f64>() + beyond;
        Self { first, probabilities, exceedances, tail, mean: first as f64 + mean, variance }
    }

    /// The law before the deletions of a round that ends with this law, if a bin has no ball before the deletions with
    /// probability `idle` and some with probability `busy`.
    ///
    /// A bin that holds k >= 1 balls at the end held k + 1 before, and the number before exceeds that after by 1 where
    /// there is one.
    pub(super) fn before_deletions(&self, idle: f64, busy: f64) -> Self {
        let mean = self.mean + busy;
        let variance = self.variance + busy * idle + 2.0 * self.mean * idle;
        if self.first > 0 {
            return Self { first: self.first + 1, mean, variance, ..self.clone() };
        }
        let above = self.exceedance(1);
        // Both differences are P(before = 1); the one of the smaller numbers loses less.
        let one = if idle < busy { self.probability(0) - idle } else { busy - above };
        let probabilities =
            [idle, one.max(0.0)].into_iter().chain(self.probabilities.iter().skip(1).copied()).collect();
        let exceedances = [1.0, busy].into_iter().chain(self.exceedances.iter().skip(1).copied()).collect();
        let tail = self.tail.map(|tail| Geometric { log_scale: tail.log_scale + tail.rate, ..tail });
        Self { first: 0, probabilities, exceedances, tail, mean, variance }
    }

    /// P(load >= k).
    #[must_use]
    pub fn exceedance(&self, k: u64) -> f64 {
        if k <= self.first {
            return 1.0;
        }
        let tail = || self.tail.map_or(0.0, |tail| tail.at_least((k - self.first) as f64));
        let table = usize::try_from(k - self.first).ok().and_then(|i| self.exceedances.get(i));
        table.copied().unwrap_or_else(tail)
    }

    /// Loads k >= 1 with P(load >= k) >= `floor`, which is below 1.
    pub(super) fn levels(&self, floor: f64) -> u64 {
        let (mut low, mut high) = (0, 1);
        while self.exceedance(high) >= floor {
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.exceedance(middle) >= floor {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// P(load = k).
    #[must_use]
    pub fn probability(&self, k: u64) -> f64 {
        let Some(i) = k.checked_sub(self.first) else { return 0.0 };
        let tail = || self.tail.map_or(0.0, |tail| tail.at_least(i as f64) * -exp_m1(-tail.rate));
        usize::try_from(i).ok().and_then(|i| self.probabilities.get(i)).copied().unwrap_or_else(tail)
    }

    /// Mean load, in balls.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the load.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// P(load = 0).
    #[must_use]
    pub fn empty(&self) -> f64 {
        self.probability(0)
    }

    /// The geometric tail, where the law has one: exact beyond the table, and asymptotic in it.
    #[must_use]
    pub fn tail(&self) -> Option<Geometric> {
        self.tail
    }

    /// Largest load that surely is reached.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// First load beyond the table.
    pub(super) fn end(&self) -> u64 {
        self.first + self.probabilities.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{ln, powi};

    #[test]
    fn a_geometric_law_is_the_same_from_table_and_tail() {
        // P(load = k) = 2^-(k+1).
        let tail = Geometric { log_scale: 0.0, rate: ln(2.0) };
        let tables = [0, 1, 7].map(|len| Marginal::new(0, (1..=len).map(|k| powi(0.5, k)).collect(), Some(tail)));
        for law in tables {
            assert!((law.mean() - 1.0).abs() < 1e-15 && (law.variance() - 2.0).abs() < 1e-14);
            for k in [0, 1, 6, 7, 8, 100] {
                let meant = powi(0.5, k);
                assert!((law.exceedance(k.into()) / meant - 1.0).abs() < 1e-13);
                assert!((law.probability(k.into()) / meant * 2.0 - 1.0).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn before_the_deletions_busy_bins_hold_one_more() {
        // Before: 0, 1, 2, 3 with probabilities 0.1, 0.2, 0.3, 0.4; after: 0, 1, 2 with 0.3, 0.3, 0.4.
        let before = Marginal::new(0, vec![0.1, 0.2, 0.3, 0.4], None);
        let after = Marginal::new(0, vec![0.3, 0.3, 0.4], None);
        let derived = after.before_deletions(0.1, 0.9);
        for k in 0..6 {
            assert!((derived.probability(k) - before.probability(k)).abs() < 1e-15);
            assert!((derived.exceedance(k) - before.exceedance(k)).abs() < 1e-15);
        }
        assert!((derived.mean() - 2.0).abs() < 1e-15 && (derived.variance() - before.variance()).abs() < 1e-15);
        let far = Marginal::new(100, vec![0.5, 0.5], None).before_deletions(0.0, 1.0);
        assert_eq!((far.mean(), far.exceedance(101), far.exceedance(102)), (101.5, 1.0, 0.5));
    }
}
