//! When a run may end before all its replicas are done.
//!
//! A rule is looked at after [fixed numbers of replicas](looks) only, which grow by a factor of about sqrt 2: whether the
//! run goes on depends on the tally of the first replicas and on nothing else, so it ends at the same replica on any
//! hardware, with any number of threads. A time limit is the exception: it depends on the machine by nature. It is looked
//! at after every [block](super::Spec::blocks), and the result is that of the same run with so many replicas.
//!
//! # What stopping does to the error
//! Whoever stops as soon as the error looks small stops a little too often where it is underestimated, and whoever
//! stops at a number of hits overestimates their rate by about one hit. Few looks keep both small: 95 % intervals of
//! stopped runs cover with 95 % and more in the cases of `tests/stopping.rs`. An estimate that must be free of such
//! effects takes the number of replicas from one run and another seed for the next.

use super::Schedule;
use crate::stats::Tally;
use crate::stats::estimate::{self, Estimate, Sampling};
use crate::stats::interval::{Confidence, IntervalError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Replicas at the first look.
const FIRST_LOOK: u64 = 32;

/// The rules of a run. The first that is met ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// Level k of P(max load >= k), which the rules are about; without it `rel_err` is about the mean max load.
    pub at: Option<u64>,
    /// Half the width of the interval, relative to the estimate.
    pub rel_err: Option<f64>,
    /// Samples that reach the level.
    pub max_hits: Option<u64>,
    /// Seconds of simulation.
    pub max_time: Option<f64>,
    /// Confidence of the interval that `rel_err` is about.
    pub confidence: f64,
}

/// A rule that cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoppingError {
    /// Not a relative error.
    #[error("rel-err = {0} is not allowed (it is half the width of an interval over the estimate); use e.g. 0.05")]
    RelErr(f64),
    /// No hit is no evidence.
    #[error("max-hits = 0 would stop before anything is seen; use at least 1")]
    NoHits,
    /// Hits of what?
    #[error("max-hits needs the level that is to be hit; add --at K for samples with max load >= K")]
    HitsOfNothing,
    /// Every sample reaches level 0.
    #[error("at = 0 is reached by every sample; use a level of at least 1")]
    LevelZero,
    /// A level that no rule is about.
    #[error("at = {0} names a level, but no rule is about it; add --rel-err or --max-hits")]
    IdleLevel(u64),
    /// Not a time.
    #[error("max-time = {0} s is not allowed; use a positive number of seconds, or 10m, 2h")]
    MaxTime(f64),
    /// Not a confidence.
    #[error(transparent)]
    Confidence(#[from] IntervalError),
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// All replicas are done.
    Replicas,
    /// The interval is as narrow as wanted.
    RelErr,
    /// The level was hit as often as wanted.
    MaxHits,
    /// The time is used up, or would be before the next block is done.
    MaxTime,
    /// It has not ended: other blocks are still to be computed, or in other journals.
    Incomplete,
}

impl Reason {
    /// Its name, as in the flags and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Replicas => "replicas",
            Reason::RelErr => "rel-err",
            Reason::MaxHits => "max-hits",
            Reason::MaxTime => "max-time",
            Reason::Incomplete => "incomplete",
        }
    }
}

/// Numbers of replicas, ascending, after which rules are looked at: 32, 45, 64, 90, 128, 181, ..
pub fn looks() -> impl Iterator<Item = u64> {
    // 181/128 is sqrt 2 to five digits.
    (0..)
        .map_while(|i| FIRST_LOOK.checked_shl(i).filter(|even| even >> i == FIRST_LOOK))
        .flat_map(|even| [even, even / 128 * 181 + even % 128 * 181 / 128])
}

impl Stopping {
    /// Checks the rules.
    ///
    /// # Errors
    /// [`StoppingError`] says what is refused, why, and what to do.
    pub fn validate(&self) -> Result<(), StoppingError> {
        Confidence::new(self.confidence)?;
        if let Some(rel_err) = self.rel_err.filter(|e| !(e.is_finite() && *e > 0.0)) {
            return Err(StoppingError::RelErr(rel_err));
        }
        if let Some(seconds) = self.max_time.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(StoppingError::MaxTime(seconds));
        }
        match (self.at, self.max_hits) {
            (_, Some(0)) => Err(StoppingError::NoHits),
            (None, Some(_)) => Err(StoppingError::HitsOfNothing),
            (Some(0), _) => Err(StoppingError::LevelZero),
            (Some(at), None) if self.rel_err.is_none() => Err(StoppingError::IdleLevel(at)),
            _ => Ok(()),
        }
    }

    /// The relative error of the first replicas, of which `tally` is; `None` where it is not known, or the level was
    /// never reached.
    #[must_use]
    pub fn reached(&self, tally: &Tally, schedule: &Schedule) -> Option<f64> {
        let confidence = Confidence::new(self.confidence).ok()?;
        let Estimate { value, interval, .. } = match self.at {
            None => estimate::mean(tally.max_load.samples(), tally.max_load.replicas, confidence).ok()?,
            Some(k) => {
                let sampling = Sampling { replicas: tally.replicas, samples: schedule.samples_per_replica() };
                estimate::exceedance(&tally.max_load.at(k), sampling, confidence).ok()?
            }
        };
        (value > 0.0).then(|| (interval.high - interval.low) / (2.0 * value))
    }

    /// Whether a rule about what was seen is met, and which.
    pub(super) fn met(&self, tally: &Tally, schedule: &Schedule) -> Option<Reason> {
        if self.rel_err.is_some_and(|wanted| self.reached(tally, schedule).is_some_and(|error| error <= wanted)) {
            return Some(Reason::RelErr);
        }
        if self.at.zip(self.max_hits).is_some_and(|(k, wanted)| tally.max_load.at(k).hits >= u128::from(wanted)) {
            return Some(Reason::MaxHits);
        }
        None
    }

    /// Whether the time would be used up before `next` replicas are done, if `tally` took `elapsed`.
    pub(super) fn out_of_time(&self, tally: &Tally, elapsed: Duration, next: u64) -> bool {
        let expected = elapsed.as_secs_f64() * next as f64 / tally.replicas as f64;
        self.max_time.is_some_and(|limit| expected > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_by_the_root_of_two() {
        let looks: Vec<u64> = looks().collect();
        assert_eq!(looks[..8], [32, 45, 64, 90, 128, 181, 256, 362]);
        assert!(looks.windows(2).all(|w| (1.40..1.43).contains(&(w[1] as f64 / w[0] as f64))));
        assert!(looks.len() > 100 && *looks.last().expect("a look") > u64::MAX / 2);
    }
}
