//! The leaky bins in the registry.

use super::{Leaky, LeakyProfile, Parameters};
use crate::process::start::Start;
use crate::process::{LEAST_DRIFT, Measure, Model, ParameterError, Process, ProcessSpec, prefers_profile};
use crate::profile::ProfileChain;
use crate::theory::{self, Expected, Prediction, TheoryError, When};

impl Model for Parameters {
    fn name(&self) -> &'static str {
        "leaky"
    }

    fn bins(&self) -> u64 {
        self.n
    }

    fn start(&self) -> &Start {
        &self.start
    }

    fn with_start(&self, start: Start) -> ProcessSpec {
        ProcessSpec::Leaky(Self { start, ..self.clone() })
    }

    fn expected_balls(&self) -> f64 {
        self.lambda * self.n as f64
    }

    fn build(&self) -> Result<Box<dyn Process>, ParameterError> {
        Ok(Box::new(Leaky::new(self)?))
    }

    fn build_profile(&self) -> Result<Box<dyn ProfileChain>, ParameterError> {
        Ok(Box::new(LeakyProfile::new(self)?))
    }

    fn prefers_profile(&self) -> bool {
        let few_levels = self.d >= 2 || (1.0 - self.lambda) * self.n as f64 >= LEAST_DRIFT;
        prefers_profile(self.n, few_levels, &self.start)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.lambda == 1.0 {
            warnings.push(
                "lambda = 1 has no stationary law: the loads grow for ever, and a result depends on the number of \
                 rounds; use lambda < 1 for stationary questions"
                    .to_owned(),
            );
        }
        warnings
    }

    fn measured(&self, measure: Measure) -> Option<&'static str> {
        Some(match measure {
            Measure::Pre => "before the deletions",
            Measure::Post => "after the deletions",
        })
    }

    fn labels(&self) -> Vec<(&'static str, String)> {
        let gap = format!("{:.2e}", 1.0 - self.lambda);
        vec![("n", self.n.to_string()), ("d", self.d.to_string()), ("1-lambda", gap)]
    }

    fn autocorrelation_rounds(&self) -> f64 {
        theory::leaky::autocorrelation_rounds(self)
    }

    fn recovery_rounds(&self) -> Result<u64, TheoryError> {
        theory::leaky::recovery_rounds(self)
    }

    fn predict(&self, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
        theory::leaky::predict(self, when, measure)
    }

    fn trajectory(&self, rounds: &[u64], budget: f64) -> Result<Vec<Option<Expected>>, TheoryError> {
        theory::leaky::trajectory(self, rounds, budget)
    }
}
