//! What a run has seen, as integers that add.

use super::{Further, FurtherTally, Histogram, Levels, Moments, PowerSums};

/// Balls that entered and left during some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Balls that arrived.
    pub arrived: u128,
    /// Balls that were deleted.
    pub departed: u128,
}

impl Flow {
    /// Adds `other`.
    pub fn add(&mut self, other: Flow) {
        self.arrived += other.arrived;
        self.departed += other.departed;
    }

    /// The balls of both; `None` where a number passes 2^128.
    #[must_use]
    pub fn checked_add(self, other: Flow) -> Option<Self> {
        let arrived = self.arrived.checked_add(other.arrived)?;
        Some(Self { arrived, departed: self.departed.checked_add(other.departed)? })
    }
}

/// What was seen in some rounds of ONE replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
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
    /// What a process has beside these.
    pub further: Further,
}

impl Record {
    /// Records the observables of one sampled round.
    #[inline]
    pub fn sample(&mut self, max_load: u64, total_load: u64, empty_bins: u64) {
        self.max_load.add(max_load, 1);
        self.total_load.add(total_load);
        self.empty_bins.add(empty_bins);
    }

    /// Adds what was seen in other rounds of the same replica.
    pub fn merge(&mut self, other: &Record) {
        self.flow.add(other.flow);
        self.max_load.merge(&other.max_load);
        self.total_load.merge(&other.total_load);
        self.empty_bins.merge(&other.empty_bins);
        self.load_per_bin.merge(&other.load_per_bin);
        self.further.merge(&other.further);
    }
}

/// The samples of an observable of which the mean is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// All samples.
    pub samples: Moments,
    /// The replicas' sums of their samples.
    pub replicas: PowerSums,
}

impl Series {
    /// Adds the samples of one replica.
    ///
    /// # Panics
    /// If a sum of squares passes 2^128: 16,384 replicas whose samples sum to 2^57.
    pub fn add(&mut self, replica: &Moments) {
        self.samples.merge(replica);
        self.replicas.add(replica.sum);
    }

    /// Adds the samples of other replicas.
    ///
    /// # Panics
    /// If a sum of squares passes 2^128.
    pub fn merge(&mut self, other: &Series) {
        self.samples.merge(&other.samples);
        self.replicas.merge(other.replicas);
    }

    pub(super) fn can_merge(&self, other: &Series) -> bool {
        self.samples.checked_merge(&other.samples).is_some() && self.replicas.checked_merge(other.replicas).is_some()
    }
}

/// The tally of some replicas: merging two tallies of disjoint replicas is exact, commutative and associative.
///
/// It keeps what the replicas have in common and how much they differ: the former gives estimates, the latter their
/// errors.
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
    pub max_load: Levels,
    /// Total load (balls in the system) of each sampled round.
    pub total_load: Series,
    /// Bins of load 0 in each sampled round.
    pub empty_bins: Series,
    /// Loads of all bins in the sampled rounds whose load histogram was asked for.
    pub load_per_bin: Histogram,
    /// What a process has beside these.
    pub further: FurtherTally,
}

impl Tally {
    /// Sampled rounds, over all replicas.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.total_load.samples.count
    }

    /// Adds one replica, of which all rounds are recorded. Its balls before and after are for the caller to add.
    pub fn add(&mut self, replica: &Record) {
        self.replicas += 1;
        self.flow.add(replica.flow);
        self.max_load.add(&replica.max_load);
        self.total_load.add(&replica.total_load);
        self.empty_bins.add(&replica.empty_bins);
        self.load_per_bin.merge(&replica.load_per_bin);
        self.further.add(&replica.further);
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
        self.further.merge(&other.further);
    }

    /// Whether every sum stays within its integer when `other` is merged: always, unless one of the two was made up.
    #[must_use]
    pub fn can_merge(&self, other: &Tally) -> bool {
        self.replicas.checked_add(other.replicas).is_some()
            && self.initial_balls.checked_add(other.initial_balls).is_some()
            && self.final_balls.checked_add(other.final_balls).is_some()
            && self.flow.checked_add(other.flow).is_some()
            && self.max_load.can_merge(&other.max_load)
            && self.total_load.can_merge(&other.total_load)
            && self.empty_bins.can_merge(&other.empty_bins)
            && self.load_per_bin.can_merge(&other.load_per_bin)
            && self.further.can_merge(&other.further)
    }

    /// Whether every ball is accounted for: initial + arrived = final + departed.
    #[must_use]
    pub fn conserves_balls(&self) -> bool {
        let before = self.initial_balls.checked_add(self.flow.arrived);
        before.is_some() && before == self.final_balls.checked_add(self.flow.departed)
    }
}
