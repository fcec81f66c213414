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
//! | `process` | string | the process, as in `leakybins run PROCESS` |
//! | `parameters` | object | its parameters: for `leaky` `n`, `lambda`, `d`, `arrivals`, `start` |
//! | `seed` | integer | seed of all randomness, below 2^64 |
//! | `replicas` | integer | independent replicas |
//! | `rounds` | integer | rounds of each replica |
//! | `burn_in` | integer | rounds before sampling begins |
//! | `every` | integer | rounds from one sample to the next |
//! | `loads_every` | integer | samples from one load histogram to the next; 0: none |
//! | `measure` | string | `"pre"` or `"post"`: loads before or after the deletions of a round |
//! | `backend` | string | `"gpu"`, `"cpu"` or `"reference"`: what finished the run |
//! | `adapter` | string or null | the GPU |
//! | `samples` | integer | sampled rounds over all replicas |
//! | `balls` | integer | balls thrown in all rounds, burn-in included |
//! | `elapsed_s` | number | wall time in seconds |
//! | `observables` | object | see below |
//!
//! `observables` holds, each over all samples:
//!
//! | field | fields | values |
//! |---|---|---|
//! | `max_load` | `mean`, `histogram` | largest load of a sampled round, in balls |
//! | `load_per_bin` | `mean`, `histogram` | load of every bin in the rounds that add their loads, in balls |
//! | `total_load` | `mean`, `min`, `max`, `variance` | balls in the system in a sampled round |
//! | `empty_bins` | `mean`, `min`, `max`, `variance` | bins of load 0 in a sampled round |
//!
//! A `histogram` maps a value, as a string of decimal digits, to how often it was seen; values ascend, values never
//! seen are left out. `mean` is null where nothing was seen (`load_per_bin` with `loads_every` 0). `variance` is the
//! mean squared deviation from the mean. Samples of one replica are correlated, so that it is no measure of error.
//!
//! # Numbers
//! Integers are written as integers, exact up to 2^64 - 1: read them as such. Floating-point numbers are the shortest
//! decimals that read back as the same `f64`.
//!
//! # Reproducibility
//! Everything but `version`, `elapsed_s`, `backend` and `adapter` follows from the fields `stream_version` to `measure`;
//! with a `start` of `file:PATH`, and from what that file held.
//!
//! # Versions
//! `schema` grows when a field changes its meaning, type or place, or goes. New fields may come without that.

use super::Report;
use crate::process::ProcessSpec;
use crate::rng::STREAM_VERSION;
use crate::run::Schedule;
use crate::stats::{Histogram, Moments};
use serde::{Serialize, Serializer};
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    stream_version: u32,
    #[serde(flatten)]
    process: &'a ProcessSpec,
    seed: u64,
    replicas: u64,
    #[serde(flatten)]
    schedule: &'a Schedule,
    backend: &'static str,
    adapter: Option<&'a str>,
    samples: u64,
    balls: u64,
    elapsed_s: f64,
    observables: Observables<'a>,
}

#[derive(Serialize)]
struct Observables<'a> {
    max_load: Law<'a>,
    load_per_bin: Law<'a>,
    total_load: Summary,
    empty_bins: Summary,
}

#[derive(Serialize)]
struct Law<'a> {
    mean: Option<f64>,
    #[serde(serialize_with = "by_value")]
    histogram: &'a Histogram,
}

#[derive(Serialize)]
struct Summary {
    mean: Option<f64>,
    min: u64,
    max: u64,
    variance: Option<f64>,
}

impl<'a> From<&'a Histogram> for Law<'a> {
    fn from(histogram: &'a Histogram) -> Self {
        Self { mean: histogram.mean(), histogram }
    }
}

impl From<&Moments> for Summary {
    fn from(moments: &Moments) -> Self {
        Self { mean: moments.mean(), min: moments.min, max: moments.max, variance: moments.variance() }
    }
}

fn by_value<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(histogram.iter())
}

/// Writes the object.
///
/// # Errors
/// Those of the JSON writer, which has none in memory.
pub(super) fn render(report: &Report<'_>) -> io::Result<Vec<u8>> {
    let Report { spec, outcome, .. } = report;
    let tally = &outcome.tally;
    let document = Document {
        schema: SCHEMA,
        kind: "run",
        version: env!("CARGO_PKG_VERSION"),
        stream_version: STREAM_VERSION,
        process: &spec.process,
        seed: spec.seed,
        replicas: spec.replicas,
        schedule: &spec.schedule,
        backend: outcome.backend,
        adapter: outcome.adapter.as_deref(),
        samples: tally.samples(),
        balls: tally.flow.arrived,
        elapsed_s: outcome.elapsed.as_secs_f64(),
        observables: Observables {
            max_load: (&tally.max_load).into(),
            load_per_bin: (&tally.load_per_bin).into(),
            total_load: (&tally.total_load).into(),
            empty_bins: (&tally.empty_bins).into(),
        },
    };
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}
