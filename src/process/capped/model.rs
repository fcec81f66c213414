//! CAPPED(c, lambda) in the registry.

use super::{Capacity, Capped, CappedProfile, OBSERVABLES, Parameters};
use crate::process::start::Start;
use crate::process::{LEAST_DRIFT, Measure, Model, Observable, ParameterError, Process, ProcessSpec, prefers_profile};
use crate::profile::ProfileChain;
use crate::theory::{self, Expected, Prediction, TheoryError, When};

/// Rates above this are taken as this where the number of competing balls is estimated: at 1 it grows for ever, if slowly.
const NEARLY_ONE: f64 = 1.0 - 1.0 / (1u64 << 32) as f64;

impl Parameters {
    /// Balls that compete in a round of the stationary state, about.
    pub(super) fn competing(&self) -> f64 {
        let c = self.c.finite().filter(|&c| c <= theory::capped::MAX_CAPACITY);
        let of_a_bin = theory::capped::competing(c, self.lambda.clamp(0.0, NEARLY_ONE));
        of_a_bin.unwrap_or(self.lambda) * self.n as f64
    }
}

impl Model for Parameters {
    fn name(&self) -> &'static str {
        "capped"
    }

    fn bins(&self) -> u64 {
        self.n
    }

    fn start(&self) -> &Start {
        &self.start
    }

    fn with_start(&self, start: Start) -> ProcessSpec {
        ProcessSpec::Capped(Self { start, ..self.clone() })
    }

    fn expected_balls(&self) -> f64 {
        self.competing()
    }

    fn build(&self) -> Result<Box<dyn Process>, ParameterError> {
        Ok(Box::new(Capped::new(self)?))
    }

    fn build_profile(&self) -> Result<Box<dyn ProfileChain>, ParameterError> {
        Ok(Box::new(CappedProfile::new(self)?))
    }

    fn prefers_profile(&self) -> bool {
        // Up to so many places there are few levels, whatever the drift.
        const FEW_PLACES: u64 = 64;
        let few_levels =
            self.c.finite().is_some_and(|c| c <= FEW_PLACES) || (1.0 - self.lambda) * self.n as f64 >= LEAST_DRIFT;
        prefers_profile(self.n, few_levels, &self.start)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.lambda == 1.0 {
            warnings.push(
                "lambda = 1 has no stationary law: the pool grows for ever, and a result depends on the number of \
                 rounds; use lambda < 1 for stationary questions"
                    .to_owned(),
            );
        }
        warnings
    }

    fn observables(&self) -> &'static [Observable] {
        OBSERVABLES
    }

    fn elsewhere(&self) -> Option<&'static str> {
        Some("pool")
    }

    fn measured(&self, measure: Measure) -> Option<&'static str> {
        Some(match measure {
            Measure::Pre => "before the deletions",
            Measure::Post => "after the deletions",
        })
    }

    fn labels(&self) -> Vec<(&'static str, String)> {
        let gap = format!("{:.2e}", 1.0 - self.lambda);
        vec![("n", self.n.to_string()), ("c", self.c.to_string()), ("1-lambda", gap)]
    }

    fn autocorrelation_rounds(&self) -> f64 {
        match self.c {
            Capacity::Infinite => self.as_leaky().autocorrelation_rounds(),
            Capacity::Finite(c) => theory::capped::autocorrelation_rounds(c, self.lambda),
        }
    }

    fn recovery_rounds(&self) -> Result<u64, TheoryError> {
        theory::capped::recovery_rounds(self)
    }

    fn predict(&self, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
        theory::capped::predict(self, when, measure)
    }

    fn trajectory(&self, rounds: &[u64], budget: f64) -> Result<Vec<Option<Expected>>, TheoryError> {
        theory::capped::trajectory(self, rounds, budget)
    }
}
