//! What the engine and the commands ask of a process before it is built.

use super::{Measure, Observable, ParameterError, Process, ProcessSpec, Start};
use crate::profile::ProfileChain;
use crate::theory::{Expected, Prediction, TheoryError, When};
use std::fmt;

/// A process with its parameters, not yet validated: its entry in the registry.
///
/// Commands know processes by this trait alone. What theory has no answer to is an error that says so, never a guess.
pub trait Model: fmt::Debug {
    /// The process's name, as on the command line and in results.
    fn name(&self) -> &'static str;

    /// Number of bins, n, unchecked.
    fn bins(&self) -> u64;

    /// The initial loads.
    fn start(&self) -> &Start;

    /// The same process with other initial loads.
    fn with_start(&self, start: Start) -> ProcessSpec;

    /// Initial loads from which the stationary state is near: of what this process has, the best.
    fn stationary_start(&self) -> Start {
        Start::MeanField
    }

    /// Balls that are expected to be thrown in one round of one replica.
    fn expected_balls(&self) -> f64;

    /// Whether the balls are always the same: none arrives, none leaves.
    fn is_closed(&self) -> bool {
        false
    }

    /// Validates the parameters and builds the process, to be simulated bin by bin.
    ///
    /// # Errors
    /// [`ParameterError`] says which parameter is refused, why, and what to do.
    fn build(&self) -> Result<Box<dyn Process>, ParameterError>;

    /// Validates the parameters and builds the process as a chain on profiles.
    ///
    /// # Errors
    /// As for [`build`](Self::build); a form says which n it has room for.
    fn build_profile(&self) -> Result<Box<dyn ProfileChain>, ParameterError>;

    /// Whether many bins should be simulated on profiles where nobody says how.
    ///
    /// The answer follows from the parameters alone: it decides which sample a seed gives, so it is a part of the
    /// reproducibility contract, as the stream is.
    fn prefers_profile(&self) -> bool;

    /// Remarks on valid but questionable parameters.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The observables beside the four of all processes, in the order of results.
    fn observables(&self) -> &'static [Observable] {
        &[]
    }

    /// The further number that counts the balls outside of the bins, by its name; `None` where all balls are in bins.
    fn elsewhere(&self) -> Option<&'static str> {
        None
    }

    /// At which point of a round `measure` observes the loads, for people; `None` where it is refused.
    fn measured(&self, measure: Measure) -> Option<&'static str>;

    /// What sets a point of a sweep apart from the others, as columns of a table: name and value.
    fn labels(&self) -> Vec<(&'static str, String)>;

    /// About the autocorrelation time of what relaxes most slowly in the stationary state, in rounds; infinite where
    /// there is no stationary state. Sweeps size their runs by it.
    fn autocorrelation_rounds(&self) -> f64;

    /// Rounds after which the start is surely forgotten.
    ///
    /// # Errors
    /// [`TheoryError`] where that is not known.
    fn recovery_rounds(&self) -> Result<u64, TheoryError>;

    /// The loads and the max load; the start matters for [`When::Round`] only.
    ///
    /// # Errors
    /// [`TheoryError`] says what is refused or unknown, why, and what to do.
    fn predict(&self, when: When, measure: Measure) -> Result<Prediction, TheoryError>;

    /// The means at the end of each of `rounds`, which ascend; `None` from the first one on that is more than `budget`
    /// operations away.
    ///
    /// # Errors
    /// [`TheoryError`] where they are not known.
    fn trajectory(&self, rounds: &[u64], budget: f64) -> Result<Vec<Option<Expected>>, TheoryError>;
}
