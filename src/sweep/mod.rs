//! Sweeps: a process at every point of a grid of parameters, and the laws that its max load follows over the grid.
//!
//! # Run length
//! A point wants to be sampled for 30 autocorrelation times of its total load after one of burn-in, as
//! [`Model::autocorrelation_rounds`](crate::process::Model::autocorrelation_rounds) estimates them. It gets as many replicas as the budget of balls allows at that
//! length, but no fewer than 32, which show the error well, and no more than asked for. 32 replicas may be as short as 20
//! times. Where even these exceed the budget the runs are cut: all replicas, since independent starts then tell most, as
//! long as the budget allows. Such a point leans on its start and is marked as short.
//!
//! # Seeds
//! Point i of the grid has the seed of the sweep plus i. The same seed everywhere would make neighbouring points err to the
//! same side, and fits, which take them as independent, look better or worse than they are.
//!
//! # Start
//! Where there is one, a sweep starts from the mean field (`Start::MeanField`): the law of one bin is then right from the
//! first round, exactly so for one choice, and only the dependence between the bins has to settle. Repeated
//! balls-into-bins start with as many balls in each bin.

mod laws;
pub mod report;

pub use laws::{Exponent, Fit, Shape};
pub use report::Sweep;

use crate::backend::{Choice, Control, Pool};
use crate::process::{Form, Measure, ParameterError, ProcessSpec};
use crate::report::{ENOUGH_TIMES, Estimates, parameters};
use crate::run::{self, Event, Outcome, RunError, Schedule, Spec};
use crate::stats::estimate::Band;
use crate::stats::interval::Confidence;
use crate::theory;
use crate::theory::Prediction;

/// Autocorrelation times that a point is to be sampled for: 20 are enough, but the time is an estimate.
const SAMPLED_TIMES: f64 = 30.0;
/// Samples in an autocorrelation time, or in the whole run if that is shorter: more add little.
const SAMPLES_PER_TIME: f64 = 16.0;
/// Fewest replicas of a run that is long enough.
const FEWEST_REPLICAS: u64 = 32;
/// Least sampled rounds of a point, if the budget allows them.
const LEAST_ROUNDS: f64 = 2000.0;

/// What the points have in common.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of the first point; each next point has the next seed.
    pub seed: u64,
    /// Most replicas of a point.
    pub replicas: u64,
    /// Most expected balls of a point, over all replicas and rounds; two replicas of one round are run whatever they cost.
    /// A round on profiles counts as [`round_work`](crate::profile::ProfileChain::round_work) balls.
    pub balls: f64,
    /// When in a round the loads are observed.
    pub measure: Measure,
    /// Where the points are run: each where the choice [resolves](Choice::resolve) to.
    pub backend: Choice,
}

impl Plan {
    /// The runs of all points.
    ///
    /// # Errors
    /// A parameter outside its range.
    pub fn points(&self, grid: &[ProcessSpec]) -> Result<Vec<Spec>, ParameterError> {
        (0..).zip(grid).map(|(i, process)| self.point(process.clone(), self.seed.wrapping_add(i))).collect()
    }

    fn point(&self, process: ProcessSpec, seed: u64) -> Result<Spec, ParameterError> {
        let stream = self.backend.resolve(&process, false).stream();
        // Parameters that are refused have no time.
        let cost = match process.build_for(stream)? {
            // Rounds without balls cost something too.
            Form::Bins(process) => process.expected_balls().max(1.0),
            profile @ Form::Profile(_) => profile.round_work(),
        };
        let time = process.autocorrelation_rounds().max(1.0);
        if time.is_infinite() {
            let (name, value) = ("point", parameters(&process).join(", "));
            let reason = "a sweep is about stationary states, and there is no stationary law";
            return Err(ParameterError::OutOfRange { name, value, reason, remedy: "use lambda < 1" });
        }
        let (burn_in, sampled) = (time.ceil(), (SAMPLED_TIMES * time).max(LEAST_ROUNDS).ceil());
        let (most, fewest) = (self.replicas as f64, FEWEST_REPLICAS.min(self.replicas) as f64);
        // Replicas times rounds.
        let affordable = (self.balls / cost).floor();
        let enough = burn_in + (ENOUGH_TIMES * time).ceil();
        let (replicas, rounds) = if affordable >= fewest * enough {
            let replicas = (affordable / (burn_in + sampled)).floor().clamp(fewest, most);
            (replicas, (affordable / replicas).floor().min(burn_in + sampled))
        } else {
            // Two replicas of a round are run whatever they cost.
            let replicas = most.min(affordable.max(2.0));
            (replicas, (affordable / replicas).floor().max(1.0))
        };
        let replicas = replicas as u64;
        // A run that is cut keeps its proportions.
        let burn_in = (rounds * burn_in / (burn_in + sampled)).floor();
        let every = (time.min(rounds - burn_in) / SAMPLES_PER_TIME).floor().max(1.0);
        let (rounds, burn_in, every) = (rounds as u64, burn_in as u64, every as u64);
        let schedule = Schedule { rounds, burn_in, every, loads_every: 0, measure: self.measure };
        Ok(Spec { process, seed, replicas, schedule, stopping: None })
    }
}

/// Balls that a point is expected to throw.
#[must_use]
pub fn expected_balls(point: &Spec) -> f64 {
    point.process.expected_balls() * point.replicas as f64 * point.schedule.rounds as f64
}

/// A point that has been run.
#[derive(Debug)]
pub struct Point {
    /// What was run.
    pub spec: Spec,
    /// What it gave.
    pub outcome: Outcome,
    /// What that says.
    pub estimates: Estimates,
    /// What is known of the stationary state.
    pub theory: Option<Prediction>,
}

impl Point {
    /// Runs the point that `spec` describes; see [`run::run`] for the other arguments.
    ///
    /// # Errors
    /// Those of the run.
    pub fn run(
        spec: Spec,
        confidence: Confidence,
        pool: &mut Pool,
        control: &Control,
        notify: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Self, RunError> {
        let outcome = run::run(&spec, pool, control, None, notify)?;
        let estimates = Estimates::new(&outcome.tally, &spec.schedule, confidence, Band::Pointwise);
        let theory = theory::stationary(&spec.process, spec.schedule.measure);
        Ok(Self { spec, outcome, estimates, theory })
    }

    /// Whether the run was shorter than 20 autocorrelation times, measured or expected, so that its start may show.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let Schedule { rounds, burn_in, .. } = self.spec.schedule;
        let wanted = ENOUGH_TIMES * self.spec.process.autocorrelation_rounds();
        self.estimates.is_short() || ((rounds - burn_in) as f64) < wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::leaky::Parameters;

    fn point(lambda: f64, d: u64, balls: f64) -> Spec {
        let process = ProcessSpec::Leaky(Parameters { n: 1000, lambda, d, ..Parameters::default() });
        Plan { seed: 1, replicas: 256, balls, measure: Measure::Post, backend: Choice::Auto }
            .point(process, 1)
            .expect("valid")
    }

    #[test]
    fn points_are_long_enough_or_within_the_budget() {
        for (lambda, d, balls) in
            [(0.5, 1, 1e9), (0.99, 1, 1e9), (0.999, 1, 1e9), (0.9, 2, 1e9), (0.999, 2, 1e8), (0.5, 2, 1.0)]
        {
            let spec = point(lambda, d, balls);
            spec.validate().expect("a run");
            let wanted = SAMPLED_TIMES * spec.process.autocorrelation_rounds();
            let sampled = (spec.schedule.rounds - spec.schedule.burn_in) as f64;
            let expected = expected_balls(&spec);
            assert!(expected <= balls || spec.schedule.rounds == 1, "{spec:?}");
            assert!(
                sampled >= ENOUGH_TIMES / SAMPLED_TIMES * wanted || spec.replicas == 256 || balls == 1.0,
                "{spec:?}"
            );
            assert!(spec.replicas >= FEWEST_REPLICAS || balls == 1.0);
        }
        assert_eq!(point(0.5, 2, 1e12).replicas, 256);
        // No ball ever arrives: rounds have a cost all the same.
        point(0.0, 2, 1e9).validate().expect("a run");
    }
}
