//! Estimates of levels from islands, and what to think of them.

use super::FEWEST_ISLANDS;
use super::scheme::Findings;
use super::share::{Seen, Share};
use crate::float::powi;
use crate::stats::interval::Confidence;
use crate::stats::special::student;
use serde::{Deserialize, Serialize};

/// Fewest ancestors, over all islands, that an interval is trusted with.
const FEW_ANCESTORS: u64 = 100;
/// Share of the sum that no single excursion may have.
const DOMINATING: f64 = 0.05;
/// Skewness of the islands over the root of their number up to which a t interval covers about as it should.
const SKEWED: f64 = 0.4;

/// How a level was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Counted along the plain chains.
    Plain,
    /// Counted along the excursions of a stage.
    Stage,
    /// Counted along the excursions of one bin alone, and made the number of bins; where several bins are there at once,
    /// corrected along the plain chains.
    OneBin,
}

/// A reason to distrust an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// All excursions to a level below probability 1/2 come from fewer than 100 states of the plain chains.
    FewAncestors,
    /// One excursion makes more than 5 % of the estimate.
    DominatingWeight,
    /// The islands are so skewed that a t interval of so many does not cover as it should.
    SkewedIslands,
    /// The level was not reached in any island.
    NeverReached,
    /// There are fewer islands than any run has: part of a journal.
    FewIslands,
}

impl Doubt {
    /// In words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Doubt::FewAncestors => "it rests on fewer than 100 states of the plain chains",
            Doubt::DominatingWeight => "one excursion makes more than 5 % of it",
            Doubt::SkewedIslands => "the islands are too skewed for a t interval of so few",
            Doubt::NeverReached => "no island reached it",
            Doubt::FewIslands => "there are fewer than 32 islands so far",
        }
    }
}

/// P(max load >= k) and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The level, in balls.
    pub k: u64,
    /// How it was estimated.
    pub method: Method,
    /// The estimate: the mean of the islands.
    pub probability: f64,
    /// Limits of the t interval of the islands; `None` where all are alike.
    pub interval: Option<(f64, f64)>,
    /// Half the width of the interval over the estimate.
    pub rel_err: Option<f64>,
    /// Squared sum over sum of squares of what the excursions contribute: as many equal ones would do the same.
    pub effective_excursions: f64,
    /// Different states of the plain chains that the excursions come from.
    pub ancestors: u64,
    /// Share of the largest contribution of an excursion.
    pub largest_share: f64,
    /// Skewness of the islands.
    pub skewness: f64,
    /// Rounds of a plain run, if they were independent, that would give this error, over the rounds computed here.
    pub gain: Option<f64>,
    /// Reasons to distrust the interval.
    pub doubts: Vec<Doubt>,
}

impl Estimate {
    /// Whether the relative error is at most `wanted`, and nothing in doubt. A level that every look reached has no spread,
    /// and needs none.
    pub(super) fn is_within(&self, wanted: f64) -> bool {
        let is_certain = self.probability == 1.0 && self.rel_err.is_none();
        is_certain || (self.doubts.is_empty() && self.rel_err.is_some_and(|error| error <= wanted))
    }
}

/// The islands so far.
pub(super) struct Sums {
    /// The levels, how each was estimated, and whether rounds with several bins there count as often.
    levels: Vec<(u64, Method, bool)>,
    islands: Vec<Share>,
}

impl Sums {
    pub(super) fn new(levels: &[u64], findings: &Findings) -> Self {
        let ways = findings.methods.iter().zip(&findings.neglects_pairs);
        let levels = levels.iter().zip(ways).map(|(&k, (&method, &neglects_pairs))| (k, method, neglects_pairs));
        Self { levels: levels.collect(), islands: Vec::new() }
    }

    pub(super) fn add(&mut self, island: Share) {
        self.islands.push(island);
    }

    pub(super) fn islands(&self) -> u64 {
        self.islands.len() as u64
    }

    pub(super) fn rounds(&self) -> u64 {
        self.islands.iter().map(|island| island.rounds).sum()
    }

    pub(super) fn estimates(&self, confidence: Confidence) -> Vec<Estimate> {
        (0..self.levels.len()).map(|level| self.estimate(level, confidence)).collect()
    }

    fn estimate(&self, level: usize, confidence: Confidence) -> Estimate {
        let (k, method, neglects_pairs) = self.levels[level];
        let number = self.islands.len() as f64;
        let seen = || self.islands.iter().map(|island| &island.levels[level]);
        let sum: f64 = seen().map(|s: &Seen| s.probability).sum();
        let mean = sum / number;
        if sum <= 0.0 {
            return Estimate {
                k,
                method,
                probability: 0.0,
                interval: None,
                rel_err: None,
                effective_excursions: 0.0,
                ancestors: 0,
                largest_share: 0.0,
                skewness: 0.0,
                gain: None,
                doubts: vec![Doubt::NeverReached],
            };
        }
        // Relative to the mean, for squares of probabilities may be too small for an f64.
        let moment = |power: u32| seen().map(|s| powi(s.probability / mean - 1.0, power)).sum::<f64>() / number;
        let (second, third) = (moment(2), moment(3));
        let skewness = if second > 0.0 { third / (second * second.sqrt()) } else { 0.0 };
        let error = (second / (number - 1.0)).sqrt();
        let rel_err = (second > 0.0)
            .then(|| student::upper_quantile(0.5 * confidence.miss(), self.islands.len() as u64 - 1) * error);
        // Balls of different bins are negatively associated: two bins are at the level with at most the square.
        let pairs = if neglects_pairs { mean / 2.0 } else { 0.0 };
        let largest_share = seen().map(|s| s.largest).fold(0.0, f64::max) / sum;
        let ancestors = seen().map(|s| s.ancestors).sum();
        let squares: f64 = seen().map(|s| s.concentration * (s.probability / mean) * (s.probability / mean)).sum();
        let mut doubts = Vec::new();
        // A level that most rounds reach is left rarely: its visits are few because they are long.
        if ancestors < FEW_ANCESTORS && mean < 0.5 {
            doubts.push(Doubt::FewAncestors);
        }
        if largest_share > DOMINATING {
            doubts.push(Doubt::DominatingWeight);
        }
        if skewness.abs() > SKEWED * number.sqrt() {
            doubts.push(Doubt::SkewedIslands);
        }
        if self.islands() < FEWEST_ISLANDS {
            doubts.push(Doubt::FewIslands);
        }
        Estimate {
            k,
            method,
            probability: mean.min(1.0),
            interval: rel_err.map(|e| ((mean * (1.0 - e) * (1.0 - pairs)).max(0.0), (mean * (1.0 + e)).min(1.0))),
            rel_err,
            effective_excursions: number * number / squares,
            ancestors,
            largest_share,
            skewness,
            gain: (error > 0.0).then(|| (1.0 - mean) / mean / (error * error * self.rounds() as f64)),
            doubts,
        }
    }
}
