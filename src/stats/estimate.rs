//! Estimates with stated errors, from integers that add.
//!
//! # Two situations
//! * **One sample a replica.** The samples are independent: an exceedance count is binomial, its interval that of
//!   Clopper and Pearson.
//! * **Time averages.** The samples of a replica are correlated; only replicas are independent. Errors come from the
//!   spread of the replicas alone, whatever the number of samples, and are never mixed with the first kind.
//!
//! # Effective samples
//! With V the variance of the mean, estimated from the spread of the replica means, and s^2 the variance of one sample,
//! the mean is worth s^2 / V independent samples. Samples over effective samples is the autocorrelation time
//! tau, 1 plus twice the sum of the autocorrelations at all lags, in samples (rounds only if every round is sampled).
//!
//! # Rare levels
//! The replicas' counts of a level that few of them saw are far from normal, and a t interval over them then covers too
//! little: at 95 % it covers with 63 to 90 % where 1 to 50 replicas saw the level (two bins, lambda = 0.9 and 0.99).
//! Exceedances therefore use the interval of Korn & Graubard ("Confidence intervals for proportions with small expected
//! number of positive counts estimated from survey data", Survey Methodology 24, 1998): that of Clopper and Pearson for
//! the effective numbers of samples and hits, the former reduced by the squared ratio of the normal to the t quantile.
//! It becomes the t interval where hits abound. The t quantile here has as many degrees of freedom as replicas that
//! carry the estimate (Kish's effective number, (sum h)^2 / sum h^2 over the replicas' counts h, or that of the misses
//! if smaller) instead of all of them: it is those that show the spread. `tests/intervals.rs` has the coverage.

use super::interval::{self, Confidence, Interval, IntervalError};
use super::special::{normal, student};
use super::{LevelTally, PowerSums};
use serde::{Deserialize, Serialize};

/// How much was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Replicas.
    pub replicas: u64,
    /// Samples of each replica.
    pub samples: u64,
}

/// What an interval rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Nothing is estimated: every sample reaches level 0.
    Certain,
    /// Clopper-Pearson: the samples are independent.
    ClopperPearson,
    /// Student's t over the replica means.
    Student,
    /// Korn-Graubard: Clopper-Pearson with effective numbers of samples and hits, from the spread of the replicas.
    KornGraubard,
    /// No sample reached the level, or all did. The probability that a replica ever does (or ever does not) bounds that
    /// of a sample: Clopper-Pearson on the replicas. No assumption on the correlation, and so a wide bound.
    Unseen,
}

/// An estimate with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its confidence interval.
    pub interval: Interval,
    /// What the interval rests on.
    pub method: Method,
    /// `None` where the replicas do not differ.
    pub precision: Option<Precision>,
}

/// How far an estimate is off, and how much its correlated samples are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Estimated standard error of the estimate.
    pub standard_error: f64,
    /// Independent samples that would have this standard error.
    pub effective_samples: f64,
    /// Samples over effective samples, in samples.
    pub autocorrelation_time: f64,
}

impl Precision {
    /// From the replicas' totals (their sum is that of all samples) and the mean squared deviation of all samples from
    /// their mean; `None` where the totals do not differ.
    fn new(totals: PowerSums, samples: f64, deviation: f64) -> Option<Self> {
        let replicas = totals.count as f64;
        let variance = totals.centred_squares() / (replicas * (replicas - 1.0)) / (samples * samples);
        // The overall mean is itself off by `variance`: with it the variance of one sample is unbiased, whatever the
        // correlation within a replica.
        let of_one = deviation + variance;
        (variance > 0.0).then(|| Self {
            standard_error: variance.sqrt(),
            effective_samples: of_one / variance,
            autocorrelation_time: replicas * samples * variance / of_one,
        })
    }
}

/// The mean of an observable over all samples, with a t interval over the replicas.
///
/// `samples` has one value a sample, `totals` one value a replica: the sum of the values of its samples.
///
/// # Errors
/// [`IntervalError`] where the replicas cannot show the error: fewer than two, or all alike.
///
/// # Panics
/// If the two do not belong to the same samples, the same number in each replica.
pub fn mean(samples: PowerSums, totals: PowerSums, confidence: Confidence) -> Result<Estimate, IntervalError> {
    let Interval { low, high, .. } = Interval::student(totals, confidence)?;
    assert_eq!(samples.sum, totals.sum, "both sums are over all samples");
    assert_eq!(samples.count % totals.count, 0, "every replica has the same number of samples");
    let each = (samples.count / totals.count) as f64;
    let precision = Precision::new(totals, each, samples.centred_squares() / samples.count as f64);
    Ok(Estimate {
        value: samples.sum as f64 / samples.count as f64,
        interval: Interval { low: low / each, high: high / each, confidence },
        method: Method::Student,
        precision,
    })
}

/// Which intervals of a table are meant to hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Band {
    /// Each interval for itself.
    #[default]
    Pointwise,
    /// Those of all levels together, seen or not: level k >= 1 is given the share 1 / (k (k + 1)) of the miss probability.
    /// The shares sum to 1 and do not depend on the data, whichever levels these show.
    Simultaneous,
}

impl Band {
    /// The confidence of the interval of level `k`.
    fn confidence(self, whole: Confidence, k: u64) -> Result<Confidence, IntervalError> {
        match self {
            Band::Pointwise => Ok(whole),
            Band::Simultaneous => whole.bonferroni(k.saturating_mul(k.saturating_add(1))),
        }
    }
}

/// The probability that a sample reaches a level.
///
/// # Errors
/// [`IntervalError`] for impossible counts, and for several samples of a single replica.
pub fn exceedance(level: &LevelTally, sampling: Sampling, confidence: Confidence) -> Result<Estimate, IntervalError> {
    let Sampling { replicas, samples } = sampling;
    let trials = replicas.checked_mul(samples).ok_or(IntervalError::Trials(u64::MAX))?;
    let hits = u64::try_from(level.hits).unwrap_or(u64::MAX);
    interval::check(hits, trials)?;
    if samples > 1 && replicas < 2 {
        return Err(IntervalError::TooFewValues(replicas));
    }
    let value = hits as f64 / trials as f64;
    let totals = PowerSums { count: replicas, sum: level.hits, sum_squares: level.hits_squared };
    let precision = match replicas {
        1 => None,
        _ => Precision::new(totals, samples as f64, value * (1.0 - value)),
    };
    if samples == 1 {
        let interval = Interval::clopper_pearson(hits, trials, confidence)?;
        return Ok(Estimate { value, interval, method: Method::ClopperPearson, precision });
    }
    if hits == 0 || hits == trials {
        let interval = Interval::clopper_pearson(if hits == 0 { 0 } else { replicas }, replicas, confidence)?;
        return Ok(Estimate { value, interval, method: Method::Unseen, precision });
    }
    // Counts that happen to be equal show no correlation; then a replica counts as a single sample.
    let effective = precision.as_ref().map_or(replicas as f64, |p| p.effective_samples).min(trials as f64);
    let informative = totals.effective_count().min(misses(totals, samples).effective_count());
    let df = (informative as u64).clamp(1, replicas - 1);
    let tail = 0.5 * confidence.miss();
    let ratio = normal::upper_quantile(tail) / student::upper_quantile(tail, df);
    let reduced = effective * ratio * ratio;
    let interval = Interval::of_effective(value * reduced, reduced, confidence);
    Ok(Estimate { value, interval, method: Method::KornGraubard, precision })
}

/// The probabilities of reaching each of some levels, in ascending order of the levels.
///
/// They fall from level to level, so the bound of a level that no sample reached is at most the smallest upper limit of
/// the levels below it, and that of a level that all samples reached at least the largest lower limit of those above it;
/// in a simultaneous band this holds for every level. Level 0 is always reached.
///
/// # Errors
/// Those of [`exceedance`].
pub fn exceedances(
    levels: &[(u64, LevelTally)],
    sampling: Sampling,
    confidence: Confidence,
    band: Band,
) -> Result<Vec<Estimate>, IntervalError> {
    let of = |&(k, ref level): &(u64, LevelTally)| match k {
        0 => Ok(Estimate {
            value: 1.0,
            interval: Interval { low: 1.0, high: 1.0, confidence },
            method: Method::Certain,
            precision: None,
        }),
        _ => exceedance(level, sampling, band.confidence(confidence, k)?),
    };
    let mut table = levels.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let unseen = |estimate: &Estimate, value| estimate.method == Method::Unseen && estimate.value == value;
    // Limits that all hold at once hold for every level that is less, or more, often reached. Those that hold each for
    // itself may be tightened where the level itself says next to nothing.
    let all = band == Band::Simultaneous;
    let mut least = f64::INFINITY;
    for estimate in &mut table {
        if all || unseen(estimate, 0.0) {
            estimate.interval.high = estimate.interval.high.min(least);
        }
        least = least.min(estimate.interval.high);
    }
    let mut most = 0.0f64;
    for estimate in table.iter_mut().rev() {
        if all || unseen(estimate, 1.0) {
            estimate.interval.low = estimate.interval.low.max(most);
        }
        most = most.max(estimate.interval.low);
    }
    Ok(table)
}

/// The replicas' numbers of misses, from those of hits.
fn misses(hits: PowerSums, samples: u64) -> PowerSums {
    let (count, samples) = (u128::from(hits.count), u128::from(samples));
    let sum = count * samples - hits.sum;
    // Sum of (samples - h)^2 = samples (misses - hits) + sum of h^2, modulo 2^128 in between.
    let sum_squares = samples.wrapping_mul(sum.wrapping_sub(hits.sum)).wrapping_add(hits.sum_squares);
    PowerSums { count: hits.count, sum, sum_squares }
}
