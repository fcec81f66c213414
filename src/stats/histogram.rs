//! Counts by value.

use std::collections::BTreeMap;

/// Values below this are counted in a dense array, the rest in a map: loads may start anywhere up to 2^31.
const DENSE: u64 = 4096;

/// How often each value was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Never ends in a zero, so that equal histograms are equal values.
    dense: Vec<u128>,
    sparse: BTreeMap<u64, u128>,
}

impl Histogram {
    /// Counts `value` another `count` times.
    ///
    /// # Panics
    /// If a count passes 2^128.
    #[inline]
    pub fn add(&mut self, value: u64, count: u128) {
        if count == 0 {
            return;
        }
        let slot = if value < DENSE {
            let index = value as usize;
            if index >= self.dense.len() {
                self.dense.resize(index + 1, 0);
            }
            &mut self.dense[index]
        } else {
            self.sparse.entry(value).or_insert(0)
        };
        *slot = slot.checked_add(count).expect("a count stays below 2^128");
    }

    /// Adds all counts of `other`.
    ///
    /// # Panics
    /// If a count passes 2^128.
    pub fn merge(&mut self, other: &Histogram) {
        for (value, count) in other.iter() {
            self.add(value, count);
        }
    }

    /// Whether every count stays within its integer when `other` is merged.
    pub(super) fn can_merge(&self, other: &Histogram) -> bool {
        other.iter().all(|(value, more)| self.count(value).checked_add(more).is_some())
    }

    /// How often `value` was seen.
    #[must_use]
    pub fn count(&self, value: u64) -> u128 {
        let dense = usize::try_from(value).ok().and_then(|index| self.dense.get(index));
        dense.or_else(|| self.sparse.get(&value)).copied().unwrap_or(0)
    }

    /// The values seen, ascending, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u128)> + '_ {
        let dense = self.dense.iter().enumerate().filter(|(_, c)| **c > 0).map(|(v, c)| (v as u64, *c));
        dense.chain(self.sparse.iter().map(|(v, c)| (*v, *c)))
    }

    /// The values seen, ascending, with their counts and those of all values that reach them.
    pub fn levels(&self) -> impl Iterator<Item = (u64, u128, u128)> + '_ {
        let mut left = self.total();
        self.iter().map(move |(value, count)| {
            let at_least = left;
            left -= count;
            (value, count, at_least)
        })
    }

    /// Number of values counted.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.iter().map(|(_, c)| c).sum()
    }

    /// Sum of the values counted.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.iter().map(|(v, c)| u128::from(v) * c).sum()
    }

    /// Mean value, or `None` of an empty histogram.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum() as f64 / total as f64)
    }

    /// Largest value seen.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.iter().last().map(|(v, _)| v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_across_the_dense_border_and_ignores_zero_counts() {
        let mut h = Histogram::default();
        h.add(9000, 0);
        assert_eq!(h, Histogram::default());
        h.add(DENSE, 2);
        h.add(DENSE - 1, 1);
        h.add(3, 5);
        assert_eq!(h.iter().collect::<Vec<_>>(), [(3, 5), (DENSE - 1, 1), (DENSE, 2)]);
        assert_eq!(h.levels().collect::<Vec<_>>(), [(3, 5, 8), (DENSE - 1, 1, 3), (DENSE, 2, 2)]);
        assert_eq!((h.total(), h.max()), (8, Some(DENSE)));
        assert_eq!([0, 3, DENSE - 1, DENSE, u64::MAX].map(|value| h.count(value)), [0, 5, 1, 2, 0]);
        assert_eq!(h.sum(), 15 + u128::from(DENSE - 1 + 2 * DENSE));
    }
}
