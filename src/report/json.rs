//! JSON: everything about a run, for programs. Schema 1.
//!
//! One object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"run"`: what the document is |
//! | `version` | string | version of leakybins |
//! | `stream_version` | integer | version of the drawn bits: [`STREAM_VERSION`] |
//! | `stream` | string | which random numbers are drawn: `"bins"`, or `"profile"` by the backend of that name |
//! | `profile_stream_version` | integer, or absent | of a run on profiles: version of what is drawn there, [`PROFILE_STREAM_VERSION`](crate::profile::PROFILE_STREAM_VERSION) |
//! | `process` | string | the process, as in `leakybins run PROCESS` |
//! | `parameters` | object | its parameters by the names of their flags: for `leaky` `n`, `lambda`, `d`, `arrivals`, `start` |
//! | `seed` | integer | seed of all randomness, below 2^64 |
//! | `replicas` | integer | independent replicas; with `stopping` the most there could have been |
//! | `rounds` | integer | rounds of each replica |
//! | `burn_in` | integer | rounds before sampling begins |
//! | `every` | integer | rounds from one sample to the next |
//! | `loads_every` | integer | samples from one load histogram to the next; 0: none |
//! | `measure` | string | `"pre"`: loads before the deletions of a round, or `"post"`: at its end |
//! | `stopping` | object, or absent | rules that may end the run: `at`, `rel_err`, `max_hits`, `max_time` (s), `confidence` |
//! | `ended` | string | what ended it: `"replicas"` (all are done), `"rel-err"`, `"max-hits"`, `"max-time"`; `"incomplete"`: not ended, a journal without all its blocks |
//! | `replicas_done` | integer | replicas that the result is of: 0, 1, .., or any others of an `"incomplete"` run |
//! | `rel_err` | number or null | relative error that `stopping` is about, where known |
//! | `backend` | string, or absent | `"gpu"`, `"cpu"`, `"reference"` or `"profile"`: what computed the blocks of the result; several as `"gpu+cpu"` |
//! | `adapter` | string or null, or absent | the GPU; several with `"; "` between them, equal ones as `"2 x NAME"` |
//! | `samples` | integer | sampled rounds over all replicas |
//! | `balls` | integer | balls thrown in all rounds, burn-in included |
//! | `elapsed_s` | number, or absent | wall time in seconds |
//! | `confidence` | number | probability with which an interval covers |
//! | `band` | string | `"pointwise"` or `"simultaneous"`, see below |
//! | `observables` | object | see below |
//! | `theory` | object or null | see below |
//! | `warnings` | list of strings | reasons to distrust the estimates |
//!
//! `observables` holds, each over all samples:
//!
//! | field | fields | values |
//! |---|---|---|
//! | `max_load` | a mean, `histogram`, `exceedance` | largest load of a sampled round, in balls |
//! | `load_per_bin` | `mean`, `histogram` | load of every bin in the rounds that add their loads, in balls |
//! | `total_load` | a mean, `min`, `max`, `variance` | balls in the system in a sampled round |
//! | `empty_bins` | a mean, `min`, `max`, `variance` | bins of load 0 in a sampled round |
//!
//! and, by name, those that the process has beside them
//! ([`Model::observables`](crate::process::Model::observables)): a number has the fields of `total_load`, a histogram those of `load_per_bin`.
//!
//! A `histogram` maps a value, as a string of decimal digits, to how often it was seen; values ascend, values never
//! seen are left out. `variance` is the mean squared deviation from the mean. Samples of one replica are correlated, so
//! that it is no measure of error.
//!
//! A mean is `mean`, `standard_error`, `low`, `high`, `effective_samples`, `autocorrelation_time`. How they are made is told in
//! [`estimate`](crate::stats::estimate). `low` and `high` are the limits of an interval of `confidence`,
//! from the spread of the replicas alone; all but `mean` are null where the replicas show no error (a single one, or
//! all alike). `effective_samples` is the number of independent samples of the same standard error;
//! `autocorrelation_time`, in rounds, is null where each replica has one sample. `mean` itself is null where nothing was
//! seen (`load_per_bin` with `loads_every` 0).
//!
//! `exceedance` is a list, one entry for each level seen, ascending, and one for the next: `k`, `p` = P(max load >= k),
//! `low`, `high`, `method`. `method` is what the interval rests on: `"certain"` (k = 0), `"clopper-pearson"` (one sample
//! a replica), `"korn-graubard"` (time averages) or `"unseen"` (no sample reached k, or all did). Without intervals
//! `low`, `high` and `method` are null. With `band` `"simultaneous"` all intervals of the list hold at once with the
//! stated confidence, with `"pointwise"` each for itself.
//!
//! `theory` is what is known of the stationary state, whatever the start and the length of the run: `load`, `max_load`,
//! `bounds` and `levels` as in [`theory`](crate::theory::report); null where there is no stationary law.
//!
//! # Numbers
//! Integers are written as integers and exact: read them as such. They are below 2^64, but `balls` and the counts of
//! `load_per_bin`, which are below 2^128 and pass 2^64 in large runs on profiles: a reader of 64-bit integers refuses or
//! rounds those. Floating-point numbers are the shortest decimals that read back as the same `f64`.
//!
//! # Reproducibility
//! Everything but `version`, `elapsed_s`, `backend` and `adapter` follows from the fields `stream_version` to `stopping`,
//! and from whether the run was one on profiles, which gives another sample than all other backends;
//! with a `start` of `file:PATH`, and from what that file held. A run that `"max-time"` ended is that of `replicas_done`
//! replicas without a time limit.
//!
//! The result of a [journal](crate::journal), by `run --out` or `report`, has no `elapsed_s`, `backend` and `adapter`: it does
//! not depend on what computed its blocks, nor in how many sittings or shards, and is the same byte for byte. The journal
//! has them for each block.
//!
//! # Versions
//! `schema` grows when a field changes its meaning, type or place, or goes. New fields may come without that.

use super::estimates::{Estimates, Level, Mean};
use super::{Render, Report};
use crate::backend::StreamKind;
use crate::process::{Observable, ObservableKind, ProcessSpec};
use crate::rng::STREAM_VERSION;
use crate::run::{Reason, Schedule, Stopping};
use crate::stats::estimate::{Band, Estimate, Method};
use crate::stats::{Histogram, LevelTally, Moments};
use crate::theory::report::Laws;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    stream_version: u32,
    stream: StreamKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_stream_version: Option<u32>,
    #[serde(flatten)]
    process: &'a ProcessSpec,
    seed: u64,
    replicas: u64,
    #[serde(flatten)]
    schedule: &'a Schedule,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopping: Option<Stopping>,
    ended: Reason,
    replicas_done: u64,
    rel_err: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter: Option<Option<&'a str>>,
    samples: u64,
    balls: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_s: Option<f64>,
    confidence: f64,
    band: Band,
    observables: Observables<'a>,
    theory: Option<Laws>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Observables<'a> {
    max_load: MaxLoad,
    load_per_bin: Law<'a>,
    total_load: Summary,
    empty_bins: Summary,
    #[serde(flatten)]
    further: BTreeMap<&'static str, Further<'a>>,
}

/// An observable that the process has beside the others.
#[derive(Serialize)]
#[serde(untagged)]
enum Further<'a> {
    Number(Summary),
    Histogram(Law<'a>),
}

#[derive(Serialize)]
struct MaxLoad {
    #[serde(flatten)]
    mean: MeanWithError,
    #[serde(serialize_with = "by_value")]
    histogram: Vec<(u64, u64)>,
    exceedance: Vec<Exceedance>,
}

#[derive(Serialize)]
struct Law<'a> {
    mean: Option<f64>,
    #[serde(serialize_with = "histogram_by_value")]
    histogram: &'a Histogram,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    mean: MeanWithError,
    min: u64,
    max: u64,
    variance: Option<f64>,
}

/// A mean with all that is known of its error.
#[derive(Serialize)]
pub(crate) struct MeanWithError {
    pub(crate) mean: Option<f64>,
    pub(crate) standard_error: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    effective_samples: Option<f64>,
    autocorrelation_time: Option<f64>,
}

/// A level with all that is known of its probability.
#[derive(Serialize)]
pub(crate) struct Exceedance {
    pub(crate) k: u64,
    pub(crate) p: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    method: Option<Method>,
}

impl MeanWithError {
    /// In units of `scale`.
    pub(crate) fn new(estimates: &Estimates, mean: &Mean, scale: f64) -> Self {
        let precision = mean.estimate.and_then(|estimate| estimate.precision);
        Self {
            mean: mean.value.map(|mean| mean / scale),
            standard_error: precision.map(|precision| precision.standard_error / scale),
            low: mean.estimate.map(|estimate| estimate.interval.low / scale),
            high: mean.estimate.map(|estimate| estimate.interval.high / scale),
            effective_samples: precision.map(|precision| precision.effective_samples),
            autocorrelation_time: estimates.autocorrelation_rounds(mean),
        }
    }
}

impl Summary {
    fn new(estimates: &Estimates, mean: &Mean, samples: &Moments) -> Self {
        let mean = MeanWithError::new(estimates, mean, 1.0);
        Self { mean, min: samples.min, max: samples.max, variance: samples.variance() }
    }
}

impl Exceedance {
    pub(crate) fn new(k: u64, reached: &LevelTally, samples: u64, estimate: Option<&Estimate>) -> Self {
        Self {
            k,
            p: reached.hits as f64 / samples as f64,
            low: estimate.map(|estimate| estimate.interval.low),
            high: estimate.map(|estimate| estimate.interval.high),
            method: estimate.map(|estimate| estimate.method),
        }
    }
}

#[allow(clippy::ptr_arg, reason = "the signature that serde asks for")]
fn by_value<S: Serializer>(counts: &Vec<(u64, u64)>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

pub(crate) fn histogram_by_value<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(histogram.iter())
}

/// The further observables by name; a histogram that never counted anything is `unseen`.
fn further<'a>(report: &'a Report<'_>, unseen: &'a Histogram) -> BTreeMap<&'static str, Further<'a>> {
    let (estimates, tally) = (&report.estimates, &report.outcome.tally.further);
    let mut numbers = estimates.further.iter().zip(&tally.numbers);
    let mut histograms = tally.histograms.iter();
    let one = |observable: &Observable| {
        let of = match observable.kind {
            ObservableKind::Number => {
                let (mean, series) = numbers.next().expect("every sampled round has every number");
                Further::Number(Summary::new(estimates, mean, &series.samples))
            }
            ObservableKind::Histogram => {
                let histogram = histograms.next().unwrap_or(unseen);
                Further::Histogram(Law { mean: histogram.mean(), histogram })
            }
        };
        (observable.name, of)
    };
    report.spec.process.observables().iter().map(one).collect()
}

/// Writes the object.
///
/// # Errors
/// Those of the JSON writer, which has none in memory.
pub(super) fn render(report: &Report<'_>) -> io::Result<Vec<u8>> {
    let Report { spec, outcome, estimates, theory, .. } = report;
    let (tally, machine) = (&outcome.tally, outcome.machine.as_ref());
    let samples = tally.samples();
    let unseen = Histogram::default();
    let exceedance = |level: &Level| Exceedance::new(level.k, &level.reached, samples, level.estimate.as_ref());
    let document = Document {
        schema: SCHEMA,
        kind: "run",
        version: env!("CARGO_PKG_VERSION"),
        stream_version: STREAM_VERSION,
        stream: outcome.stream,
        profile_stream_version: outcome.stream.profile_version(),
        process: &spec.process,
        seed: spec.seed,
        replicas: spec.replicas,
        schedule: &spec.schedule,
        stopping: spec.stopping,
        ended: outcome.reason,
        replicas_done: tally.replicas,
        rel_err: report.rel_err(),
        backend: machine.map(|machine| machine.backend.as_str()),
        adapter: machine.map(|machine| machine.adapter.as_deref()),
        samples,
        balls: tally.flow.arrived,
        elapsed_s: machine.map(|_| outcome.elapsed.as_secs_f64()),
        confidence: estimates.confidence.level(),
        band: estimates.band,
        observables: Observables {
            max_load: MaxLoad {
                mean: MeanWithError::new(estimates, &estimates.max_load, 1.0),
                histogram: tally.max_load.iter().collect(),
                exceedance: estimates.levels.iter().map(exceedance).collect(),
            },
            load_per_bin: Law { mean: tally.load_per_bin.mean(), histogram: &tally.load_per_bin },
            total_load: Summary::new(estimates, &estimates.total_load, &tally.total_load.samples),
            empty_bins: Summary::new(estimates, &estimates.empty_bins, &tally.empty_bins.samples),
            further: further(report, &unseen),
        },
        theory: theory.as_ref().map(Laws::new),
        warnings: report.warnings(),
    };
    super::pretty(&document)
}
