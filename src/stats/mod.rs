//! Tallies of sampled rounds, integers only, so that merging is addition; and the estimates made of them, with intervals.

pub mod estimate;
mod histogram;
pub mod interval;
mod levels;
mod moments;
pub mod special;
mod tally;

pub use histogram::Histogram;
pub use levels::{LevelTally, Levels};
pub use moments::{Moments, PowerSums};
pub use tally::{Flow, Record, Series, Tally};
