//! Tallies of sampled rounds: integers only, so that merging is addition.

mod histogram;
mod moments;
mod tally;

pub use histogram::Histogram;
pub use moments::Moments;
pub use tally::{Flow, Tally};
