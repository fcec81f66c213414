//! From a specification to a result: what to run, in which blocks, and the loop that runs them.

mod driver;
mod spec;

pub use driver::{Event, Outcome, RunError, run};
pub use spec::{MAX_REPLICAS, Schedule, Spec, SpecError};
