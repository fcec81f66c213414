//! Tallies of sampled rounds, integers only, so that merging is addition; the estimates made of them, with intervals; and
//! lines through estimates.

#![warn(clippy::disallowed_methods)]

pub mod estimate;
pub mod fit;
mod further;
mod histogram;
pub mod interval;
mod levels;
mod moments;
pub mod special;
mod tally;

pub use further::{Further, FurtherTally};
pub use histogram::Histogram;
pub use levels::{LevelTally, Levels};
pub use moments::{Moments, PowerSums};
pub use tally::{Flow, Record, Series, Tally};
