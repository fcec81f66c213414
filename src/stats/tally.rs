//! What a run has seen, as integers that add.

use super::{Histogram, Moments};

/// Balls that entered and left during some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Balls that arrived.
    pub arrived: u64,
    /// Balls that were deleted.
    pub departed: u64,
}

impl Flow {
    /// Adds `other`.
    pub fn add(&mut self, other: Flow) {
        self.arrived += other.arrived;
        self.departed += other.departed;
    }
}

/// The tally of some replicas: merging two tallies of disjoint replicas is exact, commutative and associative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Replicas tallied.
    pub replicas: u64,
    /// Balls in the system before the first round, over all replicas.
    pub initial_balls: u128,
    /// Balls in the system after the last round, over all replicas.
    pub final_balls: u128,
    /// Arrivals and departures of all rounds, burn-in included.
    pub flow: Flow,
    /// Max load of each sampled round.
    pub max_load: Histogram,
    /// Total load (balls in the system) of each sampled round.
    pub total_load: Moments,
    /// Bins of load 0 in each sampled round.
    pub empty_bins: Moments,
    /// Loads of all bins in the sampled rounds whose load histogram was asked for.
    pub load_per_bin: Histogram,
}

impl Tally {
    /// Sampled rounds, over all replicas.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.total_load.count
    }

    /// Records the observables of one sampled round.
    #[inline]
    pub fn sample(&mut self, max_load: u64, total_load: u64, empty_bins: u64) {
        self.max_load.add(max_load, 1);
        self.total_load.add(total_load);
        self.empty_bins.add(empty_bins);
    }

    /// Adds the tally of other replicas.
    pub fn merge(&mut self, other: &Tally) {
        self.replicas += other.replicas;
        self.initial_balls += other.initial_balls;
        self.final_balls += other.final_balls;
        self.flow.add(other.flow);
        self.max_load.merge(&other.max_load);
        self.total_load.merge(&other.total_load);
        self.empty_bins.merge(&other.empty_bins);
        self.load_per_bin.merge(&other.load_per_bin);
    }

    /// Whether every ball is accounted for: initial + arrived = final + departed.
    #[must_use]
    pub fn conserves_balls(&self) -> bool {
        self.initial_balls + u128::from(self.flow.arrived) == self.final_balls + u128::from(self.flow.departed)
    }
}
