//! What one island says.

/// What one island says of the levels.
pub(super) struct Share {
    pub(super) rounds: u64,
    pub(super) levels: Vec<Seen>,
}

/// What one island says of a level: sums over its excursions above it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Probability: the sum of what the excursions contribute.
    pub(super) probability: f64,
    /// Sum of their squares over the square of their sum.
    pub(super) concentration: f64,
    pub(super) largest: f64,
    /// Different states of the plain chain that they come from.
    pub(super) ancestors: u64,
}

impl Seen {
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
