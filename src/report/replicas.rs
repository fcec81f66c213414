//! What the replicas have in common, of each of which one number is known.

use crate::stats::interval::{Confidence, Interval};
use crate::stats::{Histogram, PowerSums};
use serde::Serialize;

/// Quantiles that are reported, in per cent.
const QUANTILES: [u32; 3] = [5, 50, 95];

/// Mean, interval and quantiles of one whole number a replica.
#[derive(Debug, Serialize)]
pub(crate) struct ReplicaSummary {
    /// Not known where a replica is censored.
    pub(crate) mean: Option<f64>,
    /// Limits of the t interval; not known either where all replicas are alike.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// [q, smallest value that at least a fraction q of the replicas do not exceed], but those that are censored.
    pub(crate) quantiles: Vec<(f64, u64)>,
}

impl ReplicaSummary {
    /// Of `values` and `censored` more that are larger than all of them.
    pub(crate) fn new(values: &Histogram, censored: u64, confidence: Confidence) -> Self {
        let mut sums = PowerSums::default();
        for (value, count) in values.iter() {
            sums.add_times(value.into(), count.try_into().expect("replicas are fewer than 2^64"));
        }
        let complete = censored == 0;
        let interval = Interval::student(sums, confidence).ok().filter(|_| complete);
        let total = sums.count + censored;
        let quantile = |percent: u32| {
            let rank = (u128::from(percent) * u128::from(total)).div_ceil(100);
            let mut below = 0;
            let reaches = |&(_, count): &(u64, u128)| {
                below += count;
                below >= rank
            };
            Some((f64::from(percent) / 100.0, values.iter().find(reaches)?.0))
        };
        Self {
            mean: values.mean().filter(|_| complete),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            quantiles: QUANTILES.into_iter().filter_map(quantile).collect(),
        }
    }
}
