//! How often each level was reached, replica by replica, as integers that add.

use super::moments::TOO_LARGE;
use super::{Histogram, PowerSums};
use std::collections::BTreeMap;

/// How often one level was reached, over some replicas: the counts of disjoint sets of replicas add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTally {
    /// Samples that reached the level.
    pub hits: u128,
    /// Sum over the replicas of the square of their number of hits.
    pub hits_squared: u128,
    /// Replicas with a hit.
    pub replicas_hit: u64,
}

impl LevelTally {
    /// Adds a replica that reached the level in `hits` of its samples.
    #[inline]
    pub fn add(&mut self, hits: u64) {
        self.hits += u128::from(hits);
        self.hits_squared += u128::from(hits) * u128::from(hits);
        self.replicas_hit += u64::from(hits > 0);
    }

    /// Adds the counts of other replicas.
    ///
    /// # Panics
    /// If a sum passes its integer.
    pub fn merge(&mut self, other: &LevelTally) {
        *self = self.checked_merge(other).expect(TOO_LARGE);
    }

    /// The counts of both; `None` where a sum passes its integer.
    #[must_use]
    pub fn checked_merge(&self, other: &LevelTally) -> Option<Self> {
        Some(Self {
            hits: self.hits.checked_add(other.hits)?,
            hits_squared: self.hits_squared.checked_add(other.hits_squared)?,
            replicas_hit: self.replicas_hit.checked_add(other.replicas_hit)?,
        })
    }
}

/// The samples of an observable that is asked for its levels: every level's [`LevelTally`], whatever the values.
///
/// The counts of a level are sums over all values from the level on, so only their steps are kept, at the values seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    steps: BTreeMap<u64, LevelTally>,
    /// The replicas' sums of their values.
    pub replicas: PowerSums,
}

impl Levels {
    /// Adds the samples of one replica.
    ///
    /// # Panics
    /// If a sum of squares passes 2^128.
    pub fn add(&mut self, samples: &Histogram) {
        let values: Vec<_> = samples.iter().collect();
        let (mut sum, mut above) = (0u128, 0u128);
        for (i, &(value, count)) in values.iter().enumerate().rev() {
            let reached = above + count;
            self.steps.entry(value).or_default().merge(&LevelTally {
                hits: count,
                hits_squared: reached * reached - above * above,
                replicas_hit: u64::from(i + 1 == values.len()),
            });
            sum += u128::from(value) * count;
            above = reached;
        }
        self.replicas.add(sum);
    }

    /// Adds the samples of other replicas.
    ///
    /// # Panics
    /// If a sum of squares passes 2^128.
    pub fn merge(&mut self, other: &Levels) {
        for (&value, step) in &other.steps {
            self.steps.entry(value).or_default().merge(step);
        }
        self.replicas.merge(other.replicas);
    }

    /// What [`Levels::steps`] gave.
    #[must_use]
    pub fn from_steps(steps: impl IntoIterator<Item = (u64, LevelTally)>, replicas: PowerSums) -> Self {
        Self { steps: steps.into_iter().collect(), replicas }
    }

    /// The values seen, ascending, with what each adds to the counts of all levels up to it.
    pub fn steps(&self) -> impl Iterator<Item = (u64, LevelTally)> + '_ {
        self.steps.iter().map(|(&value, &step)| (value, step))
    }

    /// Whether every count stays within its integer when `other` is merged.
    pub(super) fn can_merge(&self, other: &Levels) -> bool {
        let step = |value| self.steps.get(value).copied().unwrap_or_default();
        self.replicas.checked_merge(other.replicas).is_some()
            && other.steps.iter().all(|(value, more)| step(value).checked_merge(more).is_some())
    }

    /// The values seen, ascending, with the number of samples of each.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.steps.iter().map(|(&value, step)| (value, u64::try_from(step.hits).expect("a count stays below 2^64")))
    }

    /// Each value seen, ascending, as a level that was reached.
    #[must_use]
    pub fn reached(&self) -> Vec<(u64, LevelTally)> {
        let mut sum = LevelTally::default();
        let mut levels: Vec<_> = (self.steps.iter().rev())
            .map(|(&value, step)| {
                sum.merge(step);
                (value, sum)
            })
            .collect();
        levels.reverse();
        levels
    }

    /// The counts of level `k`.
    #[must_use]
    pub fn at(&self, k: u64) -> LevelTally {
        let mut sum = LevelTally::default();
        self.steps.range(k..).for_each(|(_, step)| sum.merge(step));
        sum
    }

    /// Power sums of the samples.
    ///
    /// # Panics
    /// If the sum of squares passes 2^128.
    #[must_use]
    pub fn samples(&self) -> PowerSums {
        let mut sums = PowerSums::default();
        self.iter().for_each(|(value, count)| sums.add_times(value.into(), count));
        sums
    }

    /// Smallest value that a fraction `q` of the samples at least does not exceed; `None` without samples.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total: u128 = self.steps.values().map(|step| step.hits).sum();
        let mut below = 0;
        let reached = |(_, count): &(u64, u64)| {
            below += u128::from(*count);
            below as f64 >= q * total as f64
        };
        self.iter().find(reached).map(|(value, _)| value)
    }

    /// Largest value seen.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.steps.last_key_value().map(|(&value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_counts_of_every_level() {
        let replicas: [&[u64]; 4] = [&[3, 3, 5, 9000], &[5, 5, 5, 5], &[], &[1, 2, 3, 4]];
        let mut halves = [Levels::default(), Levels::default()];
        for (i, values) in replicas.iter().enumerate() {
            let mut samples = Histogram::default();
            values.iter().for_each(|&v| samples.add(v, 1));
            halves[i / 2].add(&samples);
        }
        let [mut levels, other] = halves;
        levels.merge(&other);
        let by_hand = |k: u64| {
            let mut tally = LevelTally::default();
            replicas.iter().for_each(|values| tally.add(values.iter().filter(|&&v| v >= k).count() as u64));
            tally
        };
        for k in 0..10 {
            assert_eq!(levels.at(k), by_hand(k), "level {k}");
        }
        let reached = levels.reached();
        assert_eq!(reached.iter().map(|(k, _)| *k).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 9000]);
        assert!(reached.iter().all(|(k, tally)| *tally == by_hand(*k)));
        assert_eq!(levels.iter().map(|(_, count)| count).collect::<Vec<_>>(), [1, 1, 3, 1, 5, 1]);
        assert_eq!(levels.replicas, PowerSums { count: 4, sum: 9041, sum_squares: 9011 * 9011 + 400 + 100 });
        assert_eq!(levels.samples(), PowerSums { count: 12, sum: 9041, sum_squares: 81_000_173 });
        // 1, 2, 3, 3, 3, 4, 5 (five times), 9000.
        assert_eq!([0.0, 0.5, 0.51, 0.92, 1.0].map(|q| levels.quantile(q)), [1, 4, 5, 9000, 9000].map(Some));
        assert_eq!(levels.max(), Some(9000));
    }
}
