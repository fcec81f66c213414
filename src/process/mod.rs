//! The processes, each defined once in integer arithmetic as a function of (seed, replica, round).
//!
//! [`Process::round`] is the definition. Every backend gives the bits that it gives.

pub mod leaky;
pub mod start;

use crate::backend::StreamKind;
use crate::profile::ProfileChain;
use crate::rng::Draws;
use crate::rng::bounded::Packing;
use crate::rng::thresholds::Thresholds;
use crate::run::Schedule;
use crate::stats::{Flow, Histogram, Record};
use serde::{Deserialize, Serialize};
use start::Start;
use std::fmt;
use std::ops::Range;

/// Most bins that are simulated one by one.
pub const MAX_BINS: u64 = 1 << 31;

/// When in a round the loads are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// After the arrivals, before the deletions.
    Pre,
    /// After the deletions, at the end of the round.
    #[default]
    Post,
}

/// Collects the loads of one sampled round, bin by bin.
#[derive(Debug)]
pub struct Observation<'a> {
    /// When to observe.
    pub measure: Measure,
    /// Largest load so far.
    pub max_load: u64,
    /// Sum of the loads so far.
    pub total_load: u64,
    /// Empty bins so far.
    pub empty_bins: u64,
    /// Where each load is counted, if the load histogram of this round was asked for.
    pub loads: Option<&'a mut Histogram>,
}

impl Observation<'_> {
    /// Records one bin, given its loads before and after the deletions.
    pub fn bin(&mut self, pre: u32, post: u32) {
        let load = u64::from(match self.measure {
            Measure::Pre => pre,
            Measure::Post => post,
        });
        self.max_load = self.max_load.max(load);
        self.total_load += load;
        self.empty_bins += u64::from(load == 0);
        if let Some(loads) = &mut self.loads {
            loads.add(load, 1);
        }
    }
}

/// A process: a Markov chain on the loads of `bins()` bins, one `u32` a bin, driven by counter-based draws.
pub trait Process: fmt::Debug + Send + Sync {
    /// Number of bins, n.
    fn bins(&self) -> u32;

    /// Writes the initial loads of `replica`.
    fn start(&self, seed: u64, replica: u32, loads: &mut [u32]);

    /// Performs one round on `loads` and shows every bin to `observation`, if there is one.
    fn round(&self, draws: &Draws, loads: &mut [u32], observation: Option<&mut Observation<'_>>) -> Flow;

    /// Expected balls moved in one round of one replica.
    fn expected_balls(&self) -> f64;

    /// Work of one round of one replica, for sizing what is done at once: its balls, or its bins where these are more.
    fn round_work(&self) -> f64 {
        self.expected_balls().max(f64::from(self.bins()))
    }

    /// The fast CPU path; the plain one where there is none.
    fn runner(&self) -> Box<dyn Runner + '_>;

    /// What the GPU needs to know.
    fn kernel(&self) -> Kernel<'_>;
}

/// A process on the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// The WGSL fragment of the process: `throw_unit` and `serve`, see `shaders/leaky.wgsl`.
    pub source: &'static str,
    /// Law of the number of balls of a round.
    pub arrivals: &'a Thresholds,
    /// How the bins that the balls sample are drawn.
    pub packing: Packing,
    /// Whether every replica starts with empty bins, which saves making and moving the loads.
    pub starts_empty: bool,
}

/// Runs many rounds of one replica at a time; owns whatever scratch memory that takes.
pub trait Runner: Send {
    /// Advances `loads` through `rounds` (counted from 0), adding flow and sampled rounds to `record`.
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        loads: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    );
}

/// The plain runner: one call of [`Process::round`] a round.
#[derive(Debug)]
pub struct Reference<'a>(pub &'a dyn Process);

impl Runner for Reference<'_> {
    fn advance(
        &mut self,
        seed: u64,
        replica: u32,
        loads: &mut [u32],
        rounds: Range<u64>,
        schedule: &Schedule,
        record: &mut Record,
    ) {
        for round in rounds {
            let draws = Draws::new(seed, replica, round);
            if !schedule.samples(round) {
                record.flow.add(self.0.round(&draws, loads, None));
                continue;
            }
            let histogram = schedule.samples_loads(round).then_some(&mut record.load_per_bin);
            let mut seen =
                Observation { measure: schedule.measure, max_load: 0, total_load: 0, empty_bins: 0, loads: histogram };
            let flow = self.0.round(&draws, loads, Some(&mut seen));
            let (max_load, total_load, empty_bins) = (seen.max_load, seen.total_load, seen.empty_bins);
            record.flow.add(flow);
            record.sample(max_load, total_load, empty_bins);
        }
    }
}

/// Parameters that do not define a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A number outside its range.
    #[error("{name} = {value} is not allowed ({reason}); {remedy}")]
    OutOfRange {
        /// The parameter as the user knows it.
        name: &'static str,
        /// What was given.
        value: String,
        /// Why it is refused.
        reason: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// An initial state that could not be understood or read.
    #[error("start = {start}: {reason}; {remedy}")]
    Start {
        /// What was given.
        start: String,
        /// Why it is refused.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// Every process with its parameters: the registry. A new process is one line here and one in each match below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Subcommand)]
#[serde(tag = "process", content = "parameters", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProcessSpec {
    /// Batched arrivals, d choices on stale loads, every non-empty bin deletes one ball a round
    Leaky(leaky::Parameters),
}

impl ProcessSpec {
    /// The process's name, as on the command line and in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ProcessSpec::Leaky(_) => "leaky",
        }
    }

    /// The initial loads.
    #[must_use]
    pub fn start(&self) -> &Start {
        match self {
            ProcessSpec::Leaky(parameters) => &parameters.start,
        }
    }

    /// The same process with other initial loads.
    #[must_use]
    pub fn with_start(&self, start: Start) -> Self {
        match self {
            ProcessSpec::Leaky(parameters) => ProcessSpec::Leaky(leaky::Parameters { start, ..parameters.clone() }),
        }
    }

    /// Number of bins, n, unchecked.
    #[must_use]
    pub fn bins(&self) -> u64 {
        match self {
            ProcessSpec::Leaky(parameters) => parameters.n,
        }
    }

    /// Balls that are expected to arrive in one round of one replica.
    #[must_use]
    pub fn expected_balls(&self) -> f64 {
        match self {
            ProcessSpec::Leaky(leaky::Parameters { n, lambda, .. }) => lambda * *n as f64,
        }
    }

    /// Validates the parameters and builds the process, to be simulated bin by bin.
    ///
    /// # Errors
    /// [`ParameterError`] says which parameter is refused, why, and what to do.
    pub fn build(&self) -> Result<Box<dyn Process>, ParameterError> {
        match self {
            ProcessSpec::Leaky(parameters) => Ok(Box::new(leaky::Leaky::new(parameters)?)),
        }
    }

    /// Builds the process in the form that `stream` is drawn for.
    ///
    /// # Errors
    /// [`ParameterError`], as for [`build`](Self::build): a form says which n it has room for.
    pub fn build_for(&self, stream: StreamKind) -> Result<Form, ParameterError> {
        match (stream, self) {
            (StreamKind::Bins, _) => self.build().map(Form::Bins),
            (StreamKind::Profile, ProcessSpec::Leaky(parameters)) => {
                Ok(Form::Profile(Box::new(leaky::LeakyProfile::new(parameters)?)))
            }
        }
    }

    /// Whether many bins should be simulated on profiles where nobody says how.
    ///
    /// The answer follows from the parameters alone: it decides which sample a seed gives, so it is a part of the
    /// reproducibility contract, as the stream is.
    #[must_use]
    pub fn prefers_profile(&self) -> bool {
        match self {
            ProcessSpec::Leaky(parameters) => parameters.prefers_profile(),
        }
    }

    /// Remarks on valid but questionable parameters.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match self {
            ProcessSpec::Leaky(parameters) => parameters.warnings(),
        }
    }
}

/// A process built for one of the streams.
#[derive(Debug)]
pub enum Form {
    /// To be simulated bin by bin.
    Bins(Box<dyn Process>),
    /// As a chain on profiles.
    Profile(Box<dyn ProfileChain>),
}

impl Form {
    /// Which random numbers it draws.
    #[must_use]
    pub fn stream(&self) -> StreamKind {
        match self {
            Form::Bins(_) => StreamKind::Bins,
            Form::Profile(_) => StreamKind::Profile,
        }
    }

    /// Number of bins, n.
    #[must_use]
    pub fn bins(&self) -> u64 {
        match self {
            Form::Bins(process) => process.bins().into(),
            Form::Profile(chain) => chain.bins(),
        }
    }

    /// Loads that a replica keeps in memory, for sizing what is done at once; a profile is as small as a bin.
    #[must_use]
    pub fn loads(&self) -> u64 {
        match self {
            Form::Bins(process) => process.bins().into(),
            Form::Profile(_) => 1,
        }
    }

    /// Work of one round of one replica, in balls that are thrown one by one: see [`Process::round_work`] and
    /// [`ProfileChain::round_work`].
    #[must_use]
    pub fn round_work(&self) -> f64 {
        match self {
            Form::Bins(process) => process.round_work(),
            Form::Profile(chain) => chain.round_work(),
        }
    }
}

/// Every process with grids of its parameters.
#[derive(Clone, Debug, clap::Subcommand)]
#[non_exhaustive]
pub enum ProcessGrid {
    /// Leaky bins over grids of n, lambda and d
    Leaky(leaky::Grid),
}

impl ProcessGrid {
    /// The points of the grid; the last grid varies fastest.
    ///
    /// # Errors
    /// Says so where there are more than `most`.
    pub fn points(&self, most: u64) -> Result<Vec<ProcessSpec>, String> {
        let (points, sizes) = match self {
            ProcessGrid::Leaky(grid) => (grid.points().map(ProcessSpec::Leaky), grid.sizes()),
        };
        let number = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size as u64));
        if number > most {
            let sizes = sizes.map(|size| size.to_string()).join(" x ");
            return Err(format!("the grid has {sizes} = {number} points; use a smaller one, or --max-points {number}"));
        }
        Ok(points.collect())
    }
}
