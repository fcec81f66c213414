//! What one island says. As JSON it is what a [journal](crate::journal) holds of an island: numbers with a point are the
//! shortest decimals that read back as the same bits.

use serde::{Deserialize, Serialize};

/// What one island says of the levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Rounds computed, burn-in included.
    pub rounds: u64,
    /// Of each level asked for.
    pub levels: Vec<Seen>,
}

/// What one island says of a level: sums over its excursions above it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Probability: the sum of what the excursions contribute.
    pub probability: f64,
    /// Sum of their squares over the square of their sum.
    pub concentration: f64,
    /// The largest that an excursion contributes.
    pub largest: f64,
    /// Different states of the plain chain that they come from.
    pub ancestors: u64,
}

impl Seen {
    /// Of visits of so many of the `looks` each, all of different ancestors, where a look stands for so many `bins`. Counts
    /// are exact: what every look found has probability 1.
    pub(super) fn of_visits(visits: &[u64], looks: u64, bins: f64) -> Self {
        let all: u64 = visits.iter().sum();
        let share = |of: u64| bins * (of as f64 / looks as f64);
        let square = |&of: &u64| (of as f64 / all as f64) * (of as f64 / all as f64);
        Self {
            probability: share(all),
            concentration: visits.iter().map(square).sum(),
            largest: share(visits.iter().copied().max().unwrap_or(0)),
            ancestors: visits.len() as u64,
        }
    }

    /// Of contributions with their ancestors.
    pub(super) fn of(contributions: impl Iterator<Item = (f64, u32)>) -> Self {
        let mut seen = Self::default();
        let mut ancestors = Vec::new();
        let positive: Vec<_> = contributions.filter(|(contribution, _)| *contribution > 0.0).collect();
        seen.probability = positive.iter().map(|of| of.0).sum();
        for (contribution, ancestor) in positive {
            let share = contribution / seen.probability;
            seen.concentration += share * share;
            seen.largest = seen.largest.max(contribution);
            ancestors.push(ancestor);
        }
        ancestors.sort_unstable();
        ancestors.dedup();
        seen.ancestors = ancestors.len() as u64;
        seen
    }
}
