//! From a specification to a result: what to run, in which blocks, and the loop that runs them.

pub mod burn_in;
mod driver;
mod queue;
mod shard;
mod spec;
pub mod stopping;

pub use burn_in::BurnIn;
pub use driver::{Event, Outcome, RunError, replay, run, run_journaled};
pub use shard::{EnvironmentError, Shard};
pub use spec::{MAX_REPLICAS, Schedule, Spec, SpecError};
pub use stopping::{Reason, Stopping};
