//! Tetris: the process that dominates repeated balls-into-bins in its analysis (Becchetti, Clementi, Natale, Pasquale,
//! Posta, SPAA 2015).
//!
//! One round: every non-empty bin discards one ball; then lambda n new balls (the paper's lambda is 3/4), each into a
//! bin drawn independently and uniformly. Loads are observed after that. Where lambda n is no whole number it is its
//! floor or its ceiling, drawn in each round afresh such that the mean is lambda n.
//!
//! Ball i of a round draws as ball i of a round of the leaky bins with d = 1 does. The loads after a throw are those of
//! the leaky bins with d = 1 and fixed arrivals before the deletions, if these start with one ball less in every
//! non-empty bin: what is known of the one is known of the other.

use super::fast::{Batches, Fast, Order};
use super::leaky::{self, Arrivals};
use super::start::{Initial, Start};
use super::{
    Kernel, LEAST_DRIFT, Measure, Model, Observation, ParameterError, Process, ProcessSpec, Runner, prefers_profile,
    profile_bins, single_bins,
};
use crate::grid;
use crate::number;
use crate::profile::{
    Balls, CountTail, Profile, ProfileChain, State, TailChain, Throw, Thrower, Total, Watch, one_choice_work,
};
use crate::rng::bounded::Packing;
use crate::rng::lanes::Lanes;
use crate::rng::samplers::Rounded;
use crate::rng::stream::Stream;
use crate::rng::thresholds::Thresholds;
use crate::rng::{Domain, Draws};
use crate::stats::Flow;
use crate::theory::{self, Expected, Prediction, TheoryError, When};
use serde::{Deserialize, Serialize};

/// Parameters of Tetris.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of bins
    #[arg(long, value_parser = number::count, default_value = "1024")]
    pub n: u64,
    /// New balls a bin and round, in [0, 1]
    #[arg(long, value_parser = number::rate, default_value = "0.75", allow_hyphen_values = true)]
    pub lambda: f64,
    /// Initial loads: `empty`, `each:H`, `one-bin:H`, `random:H`, `mean-field` or `file:PATH`
    #[arg(long, default_value_t)]
    pub start: Start,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { n: 1024, lambda: 0.75, start: Start::Empty }
    }
}

/// Grids of the parameters; see [`crate::grid`].
#[derive(Clone, Debug, clap::Args)]
pub struct Grid {
    /// Numbers of bins
    #[arg(long, value_name = "GRID", default_value = "1024")]
    pub n: grid::Counts,
    /// New balls a bin and round
    #[arg(long, value_name = "GRID", default_value = "0.75", allow_hyphen_values = true)]
    pub lambda: grid::Rates,
}

impl Grid {
    /// Values of n and lambda.
    pub(super) fn sizes(&self) -> [usize; 2] {
        [self.n.0.len(), self.lambda.0.len()]
    }

    /// All combinations, by n and then lambda, each from the mean field.
    pub(super) fn points(&self) -> impl Iterator<Item = Parameters> {
        let of = |n, lambda| Parameters { n, lambda, start: Start::MeanField };
        self.n.0.iter().flat_map(move |&n| self.lambda.0.iter().map(move |&lambda| of(n, lambda)))
    }
}

impl Parameters {
    /// The leaky bins whose loads before the deletions these are, but for the start.
    #[must_use]
    pub fn as_leaky(&self) -> leaky::Parameters {
        let Self { n, lambda, ref start } = *self;
        leaky::Parameters { n, lambda, d: 1, arrivals: Arrivals::Fixed, start: start.clone() }
    }

    /// The initial loads of `bins` bins.
    fn initial(&self, bins: u64) -> Result<Initial, ParameterError> {
        self.as_leaky().check_lambda_and_d()?;
        self.start.resolve(bins, || theory::leaky::one_bin(&self.as_leaky(), Measure::Pre))
    }
}

impl Model for Parameters {
    fn name(&self) -> &'static str {
        "tetris"
    }

    fn bins(&self) -> u64 {
        self.n
    }

    fn start(&self) -> &Start {
        &self.start
    }

    fn with_start(&self, start: Start) -> ProcessSpec {
        ProcessSpec::Tetris(Self { start, ..self.clone() })
    }

    fn expected_balls(&self) -> f64 {
        self.lambda * self.n as f64
    }

    fn build(&self) -> Result<Box<dyn Process>, ParameterError> {
        Ok(Box::new(Tetris::new(self)?))
    }

    fn build_profile(&self) -> Result<Box<dyn ProfileChain>, ParameterError> {
        Ok(Box::new(TetrisProfile::new(self)?))
    }

    fn prefers_profile(&self) -> bool {
        prefers_profile(self.n, (1.0 - self.lambda) * self.n as f64 >= LEAST_DRIFT, &self.start)
    }

    fn warnings(&self) -> Vec<String> {
        self.as_leaky().warnings()
    }

    fn measured(&self, measure: Measure) -> Option<&'static str> {
        (measure == Measure::Post).then_some("after the throw")
    }

    fn labels(&self) -> Vec<(&'static str, String)> {
        vec![("n", self.n.to_string()), ("1-lambda", format!("{:.2e}", 1.0 - self.lambda))]
    }

    fn autocorrelation_rounds(&self) -> f64 {
        self.as_leaky().autocorrelation_rounds()
    }

    fn recovery_rounds(&self) -> Result<u64, TheoryError> {
        self.as_leaky().recovery_rounds()
    }

    fn predict(&self, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
        theory::tetris::predict(self, when, measure)
    }

    fn trajectory(&self, rounds: &[u64], budget: f64) -> Result<Vec<Option<Expected>>, TheoryError> {
        theory::tetris::trajectory(self, rounds, budget)
    }
}

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct Tetris {
    arrivals: Thresholds,
    packing: Packing,
    initial: Initial,
    expected_balls: f64,
}

impl Tetris {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = single_bins(parameters.n)?;
        let initial = parameters.initial(parameters.n)?;
        let (arrivals, packing) = (Thresholds::rounded(parameters.lambda, bins), Packing::new(bins, 1));
        Ok(Self { arrivals, packing, initial, expected_balls: parameters.expected_balls() })
    }
}

impl Process for Tetris {
    fn bins(&self) -> u32 {
        self.packing.bins
    }

    fn start(&self, seed: u64, replica: u32, loads: &mut [u32]) {
        self.initial.write(seed, replica, loads);
    }

    fn round(&self, draws: &Draws, loads: &mut [u32], observation: Option<&mut Observation<'_>>) -> Flow {
        let mut departed = 0u128;
        for load in loads.iter_mut().filter(|load| **load > 0) {
            *load -= 1;
            departed += 1;
        }
        let balls = self.arrivals.draw(draws.arrivals());
        for ball in 0..balls {
            self.packing.indices(draws, Domain::Choices, ball, |bin| loads[bin as usize] += 1);
        }
        if let Some(seen) = observation {
            loads.iter().for_each(|&load| seen.bin(load));
        }
        Flow { arrived: balls.into(), departed }
    }

    fn expected_balls(&self) -> f64 {
        self.expected_balls
    }

    fn runner(&self) -> Box<dyn Runner + '_> {
        let Self { arrivals, packing, .. } = self;
        let batches = Batches { arrivals, rethrows: false, packing: *packing, order: Order::DeleteThenThrow };
        Box::new(Fast::new(batches, Lanes::best()))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            sources: &[include_str!("../../shaders/throw.wgsl"), include_str!("../../shaders/tetris.wgsl")],
            arrivals: &self.arrivals,
            rethrows: false,
            packing: self.packing,
            pool: None,
            starts_empty: matches!(self.initial, Initial::Same(0)),
        }
    }
}

/// The process on profiles: deletions are certain, throws have equal weights.
#[derive(Clone, Debug)]
pub struct TetrisProfile {
    bins: u64,
    arrivals: Rounded,
    initial: Initial,
    drift: f64,
}

impl TetrisProfile {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = profile_bins(parameters.n)?;
        let initial = parameters.initial(bins)?.for_profile(&parameters.start, bins)?;
        let arrivals = Rounded::new(parameters.lambda, bins);
        Ok(Self { bins, arrivals, initial, drift: 1.0 - parameters.lambda })
    }
}

impl ProfileChain for TetrisProfile {
    fn bins(&self) -> u64 {
        self.bins
    }

    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> State {
        self.initial.profile(self.bins, stream, thrower).into()
    }

    fn round(&self, stream: &mut Stream, thrower: &mut Thrower, state: &mut State, watch: &mut Watch<'_>) -> Flow {
        let profile = &mut state.bins;
        let departed = profile.serve();
        let balls = Balls::Exactly(self.arrivals.draw(stream.bits()));
        let arrived = thrower.throw(stream, profile, balls, |_, _| 1.0);
        (watch.loads)(Measure::Post, profile);
        Flow { arrived: arrived.into(), departed: departed.into() }
    }

    fn round_work(&self) -> f64 {
        one_choice_work(self.bins, self.drift)
    }

    fn tail(&self) -> Option<&dyn TailChain> {
        Some(self)
    }
}

impl TailChain for TetrisProfile {
    fn expected_reaching(&self, counts: &mut CountTail, profile: &Profile, levels: &[u64], expected: &mut Vec<f64>) {
        let mut left = profile.clone();
        left.serve();
        Throw::even(Total::Rounded(self.arrivals)).expected_reaching(counts, &left, levels, expected);
    }

    fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    ) {
        profile.serve();
        Throw::even(Total::Rounded(self.arrivals)).force(stream, thrower, counts, profile, level);
    }
}
