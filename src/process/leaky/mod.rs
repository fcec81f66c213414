//! Leaky bins: self-stabilizing balls and bins in batches (Berenbrink, Friedetzky, Kling, Mallmann-Trenn, Nagel,
//! Wastell, PODC 2016; Algorithmica 2018).
//!
//! One round: A balls arrive, A drawn from the arrival law with mean lambda n. Each ball samples d bins independently
//! and uniformly (with replacement), sees their loads at the START of the round, and joins a least loaded one. Then
//! every non-empty bin deletes one ball.
//!
//! # Ties
//! A ball keeps the first of its samples that attains the minimum. The samples are exchangeable and bins of equal load
//! are too, so given the loads the ball joins each bin of the minimal load with equal probability: the same law as a
//! uniformly random tie.

mod model;
mod profile;
mod tail;

pub use profile::LeakyProfile;

use super::fast::{Batches, Fast, Order};
use super::start::{Initial, Start};
use super::{Kernel, Measure, Observation, ParameterError, Process, Runner, TailBins, single_bins};
use crate::grid;
use crate::number;
use crate::profile::Total;
use crate::rng::bounded::{MAX_CHOICES, Packing};
use crate::rng::lanes::Lanes;
use crate::rng::samplers::Rounded;
use crate::rng::thresholds::Thresholds;
use crate::rng::{Domain, Draws};
use crate::stats::Flow;
use crate::theory;
use serde::{Deserialize, Serialize};

/// How many balls arrive in a round; every law has mean lambda n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Each of n generators emits a ball with probability lambda: Binomial(n, lambda).
    #[default]
    Binomial,
    /// Poisson(lambda n).
    Poisson,
    /// Floor or ceiling of lambda n, with mean lambda n.
    Fixed,
}

impl Arrivals {
    /// The law of the number of arrivals at `bins` bins and rate `lambda`.
    pub(super) fn thresholds(self, lambda: f64, bins: u32) -> Thresholds {
        match self {
            Arrivals::Binomial => Thresholds::binomial(bins, lambda),
            Arrivals::Poisson => Thresholds::poisson(lambda, bins),
            Arrivals::Fixed => Thresholds::rounded(lambda, bins),
        }
    }

    /// The same law for any number of `bins`, as profiles draw it.
    pub(super) fn total(self, lambda: f64, bins: u64) -> Total {
        match self {
            Arrivals::Binomial => Total::Binomial(bins, lambda),
            Arrivals::Poisson => Total::Poisson(lambda * bins as f64),
            Arrivals::Fixed => Total::Rounded(Rounded::new(lambda, bins)),
        }
    }
}

/// Parameters of the leaky bins, in the paper's letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of bins
    #[arg(long, value_parser = number::count, default_value = "1024")]
    pub n: u64,
    /// Arrival rate: mean number of balls a bin and round, in [0, 1]
    #[arg(long, value_parser = number::rate, default_value = "0.95", allow_hyphen_values = true)]
    pub lambda: f64,
    /// Bins that a ball samples
    #[arg(short, long, value_parser = number::count, default_value = "2")]
    pub d: u64,
    /// Law of the number of arrivals
    #[arg(long, value_enum, default_value_t)]
    pub arrivals: Arrivals,
    /// Initial loads: `empty`, `each:H`, `one-bin:H`, `random:H`, `mean-field` or `file:PATH`
    #[arg(long, default_value_t)]
    pub start: Start,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { n: 1024, lambda: 0.95, d: 2, arrivals: Arrivals::default(), start: Start::default() }
    }
}

/// Grids of the parameters; see [`crate::grid`].
#[derive(Clone, Debug, clap::Args)]
pub struct Grid {
    /// Numbers of bins
    #[arg(long, value_name = "GRID", default_value = "1024")]
    pub n: grid::Counts,
    /// Arrival rates
    #[arg(long, value_name = "GRID", default_value = "0.95", allow_hyphen_values = true)]
    pub lambda: grid::Rates,
    /// Numbers of bins that a ball samples
    #[arg(short, long, value_name = "GRID", default_value = "2")]
    pub d: grid::Counts,
    /// Law of the number of arrivals
    #[arg(long, value_enum, default_value_t)]
    pub arrivals: Arrivals,
}

impl Grid {
    /// Values of n, d and lambda.
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.n.0.len(), self.d.0.len(), self.lambda.0.len()]
    }

    /// All combinations, by n, then d, then lambda, each from the mean field.
    pub(super) fn points(&self) -> impl Iterator<Item = Parameters> {
        let Self { n, lambda, d, arrivals } = self;
        n.0.iter().flat_map(move |&n| {
            d.0.iter().flat_map(move |&d| {
                let of = move |&lambda| Parameters { n, lambda, d, arrivals: *arrivals, start: Start::MeanField };
                lambda.0.iter().map(of)
            })
        })
    }
}

impl Parameters {
    /// Refuses a lambda or d that no question allows; what n allows depends on the question.
    pub(crate) fn check_lambda_and_d(&self) -> Result<(), ParameterError> {
        let refuse = |name, value, reason, remedy| Err(ParameterError::OutOfRange { name, value, reason, remedy });
        if !(0.0..=1.0).contains(&self.lambda) {
            let reason = "the arrival rate must be a number from 0 to 1";
            return refuse("lambda", self.lambda.to_string(), reason, "use 0 <= lambda < 1, or 1 for a finite horizon");
        }
        if !(1..=u64::from(MAX_CHOICES)).contains(&self.d) {
            return refuse("d", self.d.to_string(), "a ball samples 1 to 256 bins", "use 1 <= d <= 256");
        }
        Ok(())
    }

    /// The initial loads of `bins` bins.
    pub(crate) fn initial(&self, bins: u64) -> Result<Initial, ParameterError> {
        self.start.resolve(bins, || theory::leaky::one_bin(self, Measure::Post))
    }
}

/// Most Philox words that the balls of a round may occupy, so that word numbers stay in 32 bits with room.
const MAX_WORDS: u64 = 1 << 31;

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct Leaky {
    pub(super) bins: u32,
    pub(super) arrivals: Thresholds,
    /// The law of the same, for rounds that are made to raise a bin.
    pub(super) total: Total,
    pub(super) packing: Packing,
    pub(super) initial: Initial,
    pub(super) expected_balls: f64,
}

impl Leaky {
    /// Validates `parameters` and builds the arrival table.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let Parameters { n, lambda, d, arrivals, .. } = *parameters;
        let refuse =
            |name, value: String, reason, remedy| Err(ParameterError::OutOfRange { name, value, reason, remedy });
        let bins = single_bins(n)?;
        parameters.check_lambda_and_d()?;
        let packing = Packing::new(bins, d as u32);
        let (total, arrivals) = (arrivals.total(lambda, n), arrivals.thresholds(lambda, bins));
        if packing.words(u64::from(arrivals.last())) > MAX_WORDS {
            let reason = "the balls of a round need more than 2^31 random words";
            return refuse(
                "n",
                n.to_string(),
                reason,
                "use a smaller d, fewer bins, or `leakybins run` with --backend profile",
            );
        }
        let initial = parameters.initial(n)?;
        Ok(Self { bins, arrivals, total, packing, initial, expected_balls: lambda * f64::from(bins) })
    }
}

impl Leaky {
    /// Its rounds, for the fast path.
    pub(super) fn batches(&self) -> Batches<'_> {
        Batches { arrivals: &self.arrivals, rethrows: false, packing: self.packing, order: Order::ThrowThenDelete }
    }
}

impl Process for Leaky {
    fn bins(&self) -> u32 {
        self.bins
    }

    fn start(&self, seed: u64, replica: u32, loads: &mut [u32]) {
        self.initial.write(seed, replica, loads);
    }

    fn round(&self, draws: &Draws, loads: &mut [u32], mut observation: Option<&mut Observation<'_>>) -> Flow {
        let balls = self.arrivals.draw(draws.arrivals());
        let mut joined = vec![0u32; loads.len()];
        for ball in 0..balls {
            let mut best = None;
            self.packing.indices(draws, Domain::Choices, ball, |bin| {
                if best.is_none_or(|b: u32| loads[bin as usize] < loads[b as usize]) {
                    best = Some(bin);
                }
            });
            joined[best.expect("a ball samples at least one bin") as usize] += 1;
        }
        let mut departed = 0u128;
        for (load, &joined) in loads.iter_mut().zip(&joined) {
            let pre = *load + joined;
            let post = pre.saturating_sub(1);
            departed += u128::from(pre - post);
            *load = post;
            if let Some(seen) = &mut observation {
                seen.bin(match seen.measure {
                    Measure::Pre => pre,
                    Measure::Post => post,
                });
            }
        }
        Flow { arrived: balls.into(), departed }
    }

    fn expected_balls(&self) -> f64 {
        self.expected_balls
    }

    fn runner(&self) -> Box<dyn Runner + '_> {
        Box::new(Fast::new(self.batches(), Lanes::best()))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            sources: &[include_str!("../../../shaders/throw.wgsl"), include_str!("../../../shaders/leaky.wgsl")],
            arrivals: &self.arrivals,
            rethrows: false,
            packing: self.packing,
            pool: None,
            starts_empty: matches!(self.initial, Initial::Same(0)),
        }
    }

    fn tail(&self) -> Option<&dyn TailBins> {
        Some(self)
    }
}
