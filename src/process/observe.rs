//! What is seen of a sampled round.

use crate::stats::{Further, Histogram};
use serde::{Deserialize, Serialize};

/// When in a round the loads are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Before the deletions, where the arrivals come first; else refused.
    Pre,
    /// At the end of the round.
    #[default]
    Post,
}

/// An observable that a process has beside the four of all processes: max load, total load, empty bins, load per bin.
///
/// What it is called and means is said here, once; tallies, journals and reports take it as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observable {
    /// Its name in results: lower case, words joined by `_`.
    pub name: &'static str,
    /// What its values are, for people.
    pub meaning: &'static str,
    /// Unit of its values: `balls`, `rounds`.
    pub unit: &'static str,
    /// What is kept of them.
    pub kind: ObservableKind,
}

/// What is kept of an observable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservableKind {
    /// One number each sampled round: its moments, as those of the total load.
    Number,
    /// Any number of values each sampled round: how often each was seen, as that of the load per bin.
    Histogram,
}

/// Collects what is seen of one sampled round.
#[derive(Debug)]
pub struct Observation<'a> {
    /// When to observe the loads.
    pub measure: Measure,
    /// Largest load so far.
    pub max_load: u64,
    /// Sum of the loads so far.
    pub total_load: u64,
    /// Empty bins so far.
    pub empty_bins: u64,
    /// Where each load is counted, if the load histogram of this round was asked for.
    pub loads: Option<&'a mut Histogram>,
    /// The observables that the process has beside these, by their places among those of their kind.
    pub further: &'a mut Further,
}

impl Observation<'_> {
    /// Records the load of one bin.
    #[inline]
    pub fn bin(&mut self, load: u32) {
        let load = u64::from(load);
        self.max_load = self.max_load.max(load);
        self.total_load += load;
        self.empty_bins += u64::from(load == 0);
        if let Some(loads) = &mut self.loads {
            loads.add(load, 1);
        }
    }
}
