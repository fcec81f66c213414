//! Repeated balls-into-bins (Becchetti, Clementi, Natale, Pasquale, Posta, SPAA 2015; Distributed Computing 2019).
//!
//! One round: every non-empty bin gives one of its balls, and each of these balls goes to a bin drawn independently and
//! uniformly, its own bin included. Loads are observed after that. No ball arrives or leaves.
//!
//! Which ball a bin gives does not matter to the loads: of the K balls of a round only the number K does. Ball i of
//! them draws as ball i of a round of the leaky bins with d = 1 does.
//!
//! # Balls
//! Their number m follows from the start, `each:1` being the paper's m = n. Every start will do but `mean-field`: loads
//! drawn one by one would give each replica another m.

use super::fast::{Batches, Fast, Order};
use super::start::{Initial, MAX_START_LOAD, Start};
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
use crate::rng::stream::Stream;
use crate::rng::thresholds::Thresholds;
use crate::rng::{Domain, Draws};
use crate::stats::Flow;
use crate::theory::{self, Expected, Prediction, TheoryError, When};
use serde::{Deserialize, Serialize};

/// Parameters of repeated balls-into-bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of bins
    #[arg(long, value_parser = number::count, default_value = "1024")]
    pub n: u64,
    /// Initial loads, and with them the number of balls: `each:H`, `one-bin:H`, `random:H`, `file:PATH` or `empty`
    #[arg(long, default_value = "each:1")]
    pub start: Start,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { n: 1024, start: Start::Each(1) }
    }
}

/// Grids of the parameters; see [`crate::grid`].
#[derive(Clone, Debug, clap::Args)]
pub struct Grid {
    /// Numbers of bins
    #[arg(long, value_name = "GRID", default_value = "1024")]
    pub n: grid::Counts,
    /// Numbers of balls that each bin starts with, at most 2^31
    #[arg(long, value_name = "GRID", value_parser = loads, default_value = "1")]
    pub each: grid::Counts,
}

/// A grid of initial loads.
fn loads(text: &str) -> Result<grid::Counts, String> {
    let loads = grid::counts(text)?;
    match loads.iter().find(|&&load| load > u64::from(MAX_START_LOAD)) {
        Some(load) => Err(format!("{load} balls in a bin are too many to count; use at most 2^31")),
        None => Ok(grid::Counts(loads)),
    }
}

impl Grid {
    /// Values of n and of balls a bin.
    pub(super) fn sizes(&self) -> [usize; 2] {
        [self.n.0.len(), self.each.0.len()]
    }

    /// All combinations, by n and then by balls a bin.
    pub(super) fn points(&self) -> impl Iterator<Item = Parameters> {
        let of = |n, each: u64| Parameters { n, start: Start::Each(u32::try_from(each).unwrap_or(u32::MAX)) };
        self.n.0.iter().flat_map(move |&n| self.each.0.iter().map(move |&each| of(n, each)))
    }
}

impl Parameters {
    /// Balls in all, m; of a file they are read.
    ///
    /// # Errors
    /// [`ParameterError`] where the start is not usable.
    pub fn balls(&self) -> Result<u64, ParameterError> {
        Ok(match self.initial(self.n)? {
            Initial::Same(h) => self.n.saturating_mul(h.into()),
            Initial::OneBin(balls) | Initial::Random(balls) => balls.into(),
            Initial::Independent(_) => unreachable!("such a start is refused"),
            Initial::Loads(loads) => loads.iter().map(|&load| u64::from(load)).sum(),
        })
    }

    /// Fraction of the bins that are empty in the stationary state, in the limit of many bins: the drift of a bin that
    /// is not. `None` where the balls cannot be counted.
    fn drift(&self) -> Option<f64> {
        let balls = self.balls().ok().filter(|_| self.n > 0)?;
        Some(theory::repeated::empty_fraction(balls as f64 / self.n as f64))
    }

    /// The initial loads of `bins` bins.
    fn initial(&self, bins: u64) -> Result<Initial, ParameterError> {
        self.start.resolve(bins, || {
            Err(ParameterError::Start {
                start: self.start.to_string(),
                reason: "the number of balls follows from the start, and would be another in each replica".to_owned(),
                remedy: "use random:M for M balls thrown at random, and a burn-in",
            })
        })
    }
}

impl Model for Parameters {
    fn name(&self) -> &'static str {
        "repeated"
    }

    fn bins(&self) -> u64 {
        self.n
    }

    fn start(&self) -> &Start {
        &self.start
    }

    fn with_start(&self, start: Start) -> ProcessSpec {
        ProcessSpec::Repeated(Self { start, ..self.clone() })
    }

    fn stationary_start(&self) -> Start {
        // As many balls, at random: one bin that has them all, or a file, may be far from there.
        match (&self.start, self.balls().map(u32::try_from)) {
            (Start::OneBin(_) | Start::File(_), Ok(Ok(balls))) if balls <= MAX_START_LOAD => Start::Random(balls),
            (start, _) => start.clone(),
        }
    }

    fn expected_balls(&self) -> f64 {
        // Without a count of the balls all bins may have one.
        self.n as f64 * (1.0 - self.drift().unwrap_or(0.0))
    }

    fn is_closed(&self) -> bool {
        true
    }

    fn build(&self) -> Result<Box<dyn Process>, ParameterError> {
        Ok(Box::new(Repeated::new(self)?))
    }

    fn build_profile(&self) -> Result<Box<dyn ProfileChain>, ParameterError> {
        Ok(Box::new(RepeatedProfile::new(self)?))
    }

    fn prefers_profile(&self) -> bool {
        // A file is for single bins anyhow: it is not read for this.
        let of_file = matches!(self.start, Start::File(_));
        let few_levels = !of_file && self.drift().is_some_and(|drift| drift * self.n as f64 >= LEAST_DRIFT);
        prefers_profile(self.n, few_levels, &self.start)
    }

    fn warnings(&self) -> Vec<String> {
        let none = self.balls().is_ok_and(|balls| balls == 0);
        none.then(|| "the start has no ball, and none ever arrives; use --start each:1".to_owned())
            .into_iter()
            .collect()
    }

    fn measured(&self, measure: Measure) -> Option<&'static str> {
        (measure == Measure::Post).then_some("after the throw")
    }

    fn labels(&self) -> Vec<(&'static str, String)> {
        vec![("n", self.n.to_string()), ("start", self.start.to_string())]
    }

    fn autocorrelation_rounds(&self) -> f64 {
        // As for the leaky bins with one choice, a bin being the same queue. Every number of balls has a stationary state:
        // where they cannot be counted it is for the build to say why.
        self.drift().map_or(0.0, |drift| 3.0 / (drift * drift))
    }

    fn recovery_rounds(&self) -> Result<u64, TheoryError> {
        let drain = match self.start {
            Start::OneBin(_) | Start::File(_) => theory::repeated::drain_rounds(self.n, self.balls()?),
            _ => 0.0,
        };
        // A random walk's deviations, and as many relaxation times as the leaky bins with one choice are given.
        let rounds = drain + 6.0 * drain.sqrt() + 7.0 * self.autocorrelation_rounds();
        Ok(theory::two_digits(rounds))
    }

    fn predict(&self, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
        match (when, measure) {
            (_, Measure::Pre) => Err(TheoryError::unmeasured("repeated")),
            (When::Round(_), _) => Err(unknown_round()),
            (When::Stationary, Measure::Post) => theory::repeated::predict(self.n, self.balls()?),
        }
    }

    fn trajectory(&self, _: &[u64], _: f64) -> Result<Vec<Option<Expected>>, TheoryError> {
        Err(unknown_round())
    }
}

fn unknown_round() -> TheoryError {
    let remedy = "ask for the stationary state (without --rounds), or simulate it";
    TheoryError::Unknown { process: "repeated", question: "the state after a round", remedy }
}

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct Repeated {
    arrivals: Thresholds,
    packing: Packing,
    initial: Initial,
    expected_balls: f64,
}

impl Repeated {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = single_bins(parameters.n)?;
        let initial = parameters.initial(parameters.n)?;
        let (arrivals, packing) = (Thresholds::constant(0), Packing::new(bins, 1));
        Ok(Self { arrivals, packing, initial, expected_balls: parameters.expected_balls() })
    }
}

impl Process for Repeated {
    fn bins(&self) -> u32 {
        self.packing.bins
    }

    fn start(&self, seed: u64, replica: u32, loads: &mut [u32]) {
        self.initial.write(seed, replica, loads);
    }

    fn round(&self, draws: &Draws, loads: &mut [u32], observation: Option<&mut Observation<'_>>) -> Flow {
        let mut balls = 0;
        for load in loads.iter_mut().filter(|load| **load > 0) {
            *load -= 1;
            balls += 1;
        }
        for ball in 0..balls {
            self.packing.indices(draws, Domain::Choices, ball, |bin| loads[bin as usize] += 1);
        }
        if let Some(seen) = observation {
            loads.iter().for_each(|&load| seen.bin(load));
        }
        Flow { arrived: balls.into(), departed: balls.into() }
    }

    fn expected_balls(&self) -> f64 {
        self.expected_balls
    }

    fn runner(&self) -> Box<dyn Runner + '_> {
        let Self { arrivals, packing, .. } = self;
        let batches = Batches { arrivals, rethrows: true, packing: *packing, order: Order::DeleteThenThrow };
        Box::new(Fast::new(batches, Lanes::best()))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            sources: &[include_str!("../../shaders/throw.wgsl"), include_str!("../../shaders/repeated.wgsl")],
            arrivals: &self.arrivals,
            rethrows: true,
            packing: self.packing,
            pool: None,
            starts_empty: matches!(self.initial, Initial::Same(0)),
        }
    }
}

/// The process on profiles: as many balls as bins have one, thrown with equal weights.
#[derive(Clone, Debug)]
pub struct RepeatedProfile {
    bins: u64,
    initial: Initial,
    drift: f64,
}

impl RepeatedProfile {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = profile_bins(parameters.n)?;
        let initial = parameters.initial(bins)?.for_profile(&parameters.start, bins)?;
        // How many balls a file has does not matter to the size of a block.
        Ok(Self { bins, initial, drift: parameters.drift().unwrap_or(0.5) })
    }
}

impl ProfileChain for RepeatedProfile {
    fn bins(&self) -> u64 {
        self.bins
    }

    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> State {
        self.initial.profile(self.bins, stream, thrower).into()
    }

    fn round(&self, stream: &mut Stream, thrower: &mut Thrower, state: &mut State, watch: &mut Watch<'_>) -> Flow {
        let profile = &mut state.bins;
        let balls = profile.serve();
        thrower.throw(stream, profile, Balls::Exactly(balls), |_, _| 1.0);
        (watch.loads)(Measure::Post, profile);
        Flow { arrived: balls.into(), departed: balls.into() }
    }

    fn round_work(&self) -> f64 {
        one_choice_work(self.bins, self.drift)
    }

    fn tail(&self) -> Option<&dyn TailChain> {
        Some(self)
    }
}

impl TailChain for RepeatedProfile {
    fn expected_reaching(&self, counts: &mut CountTail, profile: &Profile, levels: &[u64], expected: &mut Vec<f64>) {
        let mut left = profile.clone();
        let balls = left.serve();
        Throw::even(Total::Exactly(balls)).expected_reaching(counts, &left, levels, expected);
    }

    fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    ) {
        let balls = profile.serve();
        Throw::even(Total::Exactly(balls)).force(stream, thrower, counts, profile, level);
    }
}
