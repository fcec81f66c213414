//! Confidence intervals.

use super::PowerSums;
use super::special::beta::{self, Tail};
use super::special::student;
use crate::float::{exp, exp_m1, ln};
use serde::{Deserialize, Serialize};

/// Largest number of trials: counts up to here are exact as `f64`.
const MAX_TRIALS: u64 = 1 << 53;

/// Why there is no interval.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IntervalError {
    /// Not a probability strictly between 0 and 1.
    #[error("confidence = {0} is not allowed (it is the probability of covering the true value); use e.g. 0.95")]
    Confidence(f64),
    /// A family of no intervals.
    #[error("a simultaneous band over no level has no meaning; name at least one level")]
    NoLevels,
    /// No trial, or more than `f64` counts exactly.
    #[error("{0} trials are not allowed (counts must be exact in floating point); use 1 to 2^53")]
    Trials(u64),
    /// More hits than trials.
    #[error("{hits} hits in {trials} trials are impossible; the tally is damaged or mixes two runs")]
    Hits {
        /// Hits.
        hits: u64,
        /// Trials.
        trials: u64,
    },
    /// One value, or none, has no spread.
    #[error("{0} independent value(s) do not show their own error; use at least 2 replicas")]
    TooFewValues(u64),
    /// Equal values have no spread.
    #[error(
        "all {0} independent values are equal, which does not show how far the mean is off; use more or longer replicas"
    )]
    NoSpread(u64),
}

/// The probability with which an interval is to cover the true value.
///
/// The probability of a miss is kept beside it, so that a confidence near 1 loses no digits. In JSON it is its level, as
/// given to [`Confidence::new`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct Confidence {
    level: f64,
    miss: f64,
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.level
    }
}

impl TryFrom<f64> for Confidence {
    type Error = IntervalError;

    fn try_from(level: f64) -> Result<Self, IntervalError> {
        Self::new(level)
    }
}

impl Confidence {
    /// The confidence `level`, for example 0.95.
    ///
    /// # Errors
    /// [`IntervalError::Confidence`] unless it lies strictly between 0 and 1.
    pub fn new(level: f64) -> Result<Self, IntervalError> {
        if 0.0 < level && level < 1.0 {
            Ok(Self { level, miss: 1.0 - level })
        } else {
            Err(IntervalError::Confidence(level))
        }
    }

    /// The confidence that each of `levels` intervals needs so that all of them together have this one, whatever
    /// their dependence: the miss probability is divided by their number (Bonferroni). Such intervals form a
    /// simultaneous band.
    ///
    /// The number must not depend on the data: count the levels asked for, not those seen.
    ///
    /// # Errors
    /// [`IntervalError::NoLevels`] if there are none.
    pub fn bonferroni(self, levels: u64) -> Result<Self, IntervalError> {
        if levels == 0 {
            return Err(IntervalError::NoLevels);
        }
        let miss = self.miss / levels as f64;
        Ok(Self { level: 1.0 - miss, miss })
    }

    /// The probability of covering.
    #[must_use]
    pub fn level(self) -> f64 {
        self.level
    }

    /// The probability of missing.
    #[must_use]
    pub fn miss(self) -> f64 {
        self.miss
    }
}

/// A confidence interval, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// What it covers with.
    pub confidence: Confidence,
}

impl Interval {
    /// Whether `value` lies in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The Clopper-Pearson interval of a probability, from `hits` in `trials` independent trials (Clopper & Pearson
    /// 1934): each limit alone is missed with at most half the miss probability, so the interval covers with at
    /// least the confidence asked for, at every true probability.
    ///
    /// Without a hit it is the one-sided bound `[0, 1 - (miss / 2)^(1 / trials)]`, at 95 % about `3.7 / trials`. The
    /// shorter "rule of three" (all of the miss on one side) is not valid for someone who would have quoted two
    /// limits had there been hits: the mixture covers with 93.8 % only where 3 hits are expected. Whoever has decided
    /// on an upper bound beforehand uses [`Interval::at_most`].
    ///
    /// # Errors
    /// [`IntervalError`] for impossible counts.
    ///
    /// # Numerics
    /// Limits to 1e-13 relative, for up to 10^15 trials and any confidence, in less than a millisecond
    /// (`tests/kat/clopper_pearson.txt`).
    pub fn clopper_pearson(hits: u64, trials: u64, confidence: Confidence) -> Result<Self, IntervalError> {
        check(hits, trials)?;
        Ok(Self::of_effective(hits as f64, trials as f64, confidence))
    }

    /// The one-sided Clopper-Pearson interval `[0, high]`, the whole miss probability above. For those who have
    /// decided on an upper bound before looking at the hits.
    ///
    /// # Errors
    /// [`IntervalError`] for impossible counts.
    pub fn at_most(hits: u64, trials: u64, confidence: Confidence) -> Result<Self, IntervalError> {
        check(hits, trials)?;
        Ok(Self { low: 0.0, high: upper_limit(hits as f64, trials as f64, confidence.miss), confidence })
    }

    /// The Clopper-Pearson interval of `hits` in `trials` that need not be whole: effective numbers, of samples that are
    /// not independent (Korn & Graubard, Survey Methodology 24, 1998). `0 <= hits <= trials`, `trials > 0`.
    pub(super) fn of_effective(hits: f64, trials: f64, confidence: Confidence) -> Self {
        let miss = 0.5 * confidence.miss;
        Self { low: lower_limit(hits, trials, miss), high: upper_limit(hits, trials, miss), confidence }
    }

    /// The t interval of a mean, from independent, about normal values.
    ///
    /// # Errors
    /// [`IntervalError::TooFewValues`] below two values, [`IntervalError::NoSpread`] if all are equal.
    pub fn student(values: PowerSums, confidence: Confidence) -> Result<Self, IntervalError> {
        if values.count < 2 {
            return Err(IntervalError::TooFewValues(values.count));
        }
        let error = (values.centred_squares() / (values.count as f64 * (values.count - 1) as f64)).sqrt();
        if error == 0.0 {
            return Err(IntervalError::NoSpread(values.count));
        }
        let mean = values.sum as f64 / values.count as f64;
        let half_width = student::upper_quantile(0.5 * confidence.miss, values.count - 1) * error;
        Ok(Self { low: mean - half_width, high: mean + half_width, confidence })
    }
}

/// Refuses impossible counts.
pub(super) fn check(hits: u64, trials: u64) -> Result<(), IntervalError> {
    if !(1..=MAX_TRIALS).contains(&trials) {
        return Err(IntervalError::Trials(trials));
    }
    if hits > trials {
        return Err(IntervalError::Hits { hits, trials });
    }
    Ok(())
}

/// The probability at which at least `hits` hits have the probability `miss`.
fn lower_limit(hits: f64, trials: f64, miss: f64) -> f64 {
    if hits == 0.0 {
        0.0
    } else if hits == trials {
        exp(ln(miss) / trials)
    } else {
        beta::quantile(hits, trials - hits + 1.0, miss, Tail::Lower)
    }
}

/// The probability at which at most `hits` hits have the probability `miss`.
fn upper_limit(hits: f64, trials: f64, miss: f64) -> f64 {
    if hits == trials {
        1.0
    } else if hits == 0.0 {
        -exp_m1(ln(miss) / trials)
    } else {
        beta::quantile(hits + 1.0, trials - hits, miss, Tail::Upper)
    }
}
