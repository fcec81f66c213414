//! What the tally of a run says about the process, with stated errors.

use crate::run::Schedule;
use crate::stats::estimate::{self, Band, Estimate, Sampling};
use crate::stats::interval::Confidence;
use crate::stats::{LevelTally, PowerSums, Tally};

/// A replica should be this many autocorrelation times long.
pub(crate) const ENOUGH_TIMES: f64 = 20.0;

/// A mean over all samples.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    /// The mean, if there are samples.
    pub value: Option<f64>,
    /// The same with its error, if the replicas show one: they are several and differ.
    pub estimate: Option<Estimate>,
}

/// One level of the max load.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The level, in balls.
    pub k: u64,
    /// Samples whose max load is this level.
    pub samples: u64,
    /// Samples whose max load reaches it.
    pub reached: LevelTally,
    /// Probability of reaching it, if the replicas show its error.
    pub estimate: Option<Estimate>,
}

/// All estimates of a run.
#[derive(Clone, Debug)]
pub struct Estimates {
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Which intervals of the levels hold at once.
    pub band: Band,
    /// Mean max load, in balls.
    pub max_load: Mean,
    /// Mean total load, in balls.
    pub total_load: Mean,
    /// Mean number of empty bins.
    pub empty_bins: Mean,
    /// Means of the further numbers that the process observes, in its order.
    pub further: Vec<Mean>,
    /// The levels seen and the next one, ascending.
    pub levels: Vec<Level>,
    sampling: Sampling,
    every: u64,
}

impl Estimates {
    /// The estimates that `tally` allows.
    #[must_use]
    pub fn new(tally: &Tally, schedule: &Schedule, confidence: Confidence, band: Band) -> Self {
        let mean = |samples: PowerSums, replicas| Mean {
            value: (samples.count > 0).then(|| samples.sum as f64 / samples.count as f64),
            estimate: estimate::mean(samples, replicas, confidence).ok(),
        };
        let sampling = Sampling { replicas: tally.replicas, samples: schedule.samples_per_replica() };
        let mut reached = tally.max_load.reached();
        let next = reached.last().map_or(0, |&(k, _)| k.saturating_add(1));
        reached.push((next, LevelTally::default()));
        let estimates = estimate::exceedances(&reached, sampling, confidence, band).ok();
        let samples = tally.max_load.iter().map(|(_, count)| count).chain([0]);
        let levels = reached.iter().zip(samples).enumerate().map(|(i, (&(k, reached), samples))| Level {
            k,
            samples,
            reached,
            estimate: estimates.as_ref().map(|all| all[i]),
        });
        Self {
            confidence,
            band,
            max_load: mean(tally.max_load.samples(), tally.max_load.replicas),
            total_load: mean(tally.total_load.samples.power_sums(), tally.total_load.replicas),
            empty_bins: mean(tally.empty_bins.samples.power_sums(), tally.empty_bins.replicas),
            further: (tally.further.numbers.iter())
                .map(|series| mean(series.samples.power_sums(), series.replicas))
                .collect(),
            levels: levels.collect(),
            sampling,
            every: schedule.every,
        }
    }

    /// Autocorrelation time of a mean, in rounds; `None` for independent samples.
    #[must_use]
    pub fn autocorrelation_rounds(&self, mean: &Mean) -> Option<f64> {
        let precision = mean.estimate.as_ref().and_then(|estimate| estimate.precision)?;
        (self.sampling.samples > 1).then_some(precision.autocorrelation_time * self.every as f64)
    }

    /// Reasons to distrust the estimates.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        if self.sampling.replicas == 1 {
            return vec!["one replica does not show the error of its means; use --replicas 2 or more".to_owned()];
        }
        let message = |(name, rounds): (&str, f64)| {
            format!(
                "the sampled part of a replica, {:.0} rounds, is short of {ENOUGH_TIMES:.0} autocorrelation times of \
                 the {name} ({rounds:.0} rounds each): the start may still show; use more --rounds",
                self.sampled_rounds(),
            )
        };
        self.slowest().filter(|_| self.is_short()).map(message).into_iter().collect()
    }

    /// Whether the sampled part of a replica is shorter than 20 autocorrelation times of an observable.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.slowest().is_some_and(|(_, rounds)| self.sampled_rounds() < ENOUGH_TIMES * rounds)
    }

    fn sampled_rounds(&self) -> f64 {
        self.sampling.samples as f64 * self.every as f64
    }

    /// The observable of the longest autocorrelation time, and that in rounds.
    fn slowest(&self) -> Option<(&'static str, f64)> {
        let observables =
            [("max load", &self.max_load), ("total load", &self.total_load), ("empty bins", &self.empty_bins)];
        let times = observables.into_iter().filter_map(|(name, mean)| Some((name, self.autocorrelation_rounds(mean)?)));
        times.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
