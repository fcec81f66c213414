//! A prediction as JSON or CSV, for programs. Schema 1.
//!
//! One object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"theory"`: what the document is |
//! | `version` | string | version of leakybins |
//! | `process` | string | the process, as in `leakybins theory PROCESS` |
//! | `parameters` | object | its parameters, as in a [run](crate::report::json) |
//! | `round` | integer or null | rounds from the start; null: stationary, whatever the start |
//! | `measure` | string | `"pre"`: loads before the deletions of a round, or `"post"`: at its end |
//! | `load` | object | law of a bin chosen at random: `basis`, `mean`, `variance`, `empty_fraction`, `decay_rate` |
//! | `max_load` | object | largest load of all bins: `basis`, `mean`, `quantiles` (a list of [q, load]) |
//! | `bounds` | object or null | shapes of the paper's [`bounds`](super::bounds): `one_choice`, `two_choices`; null at lambda = 1 and for other processes than `leaky` |
//! | `further` | object, or absent | means of what the process observes beside the loads, by name, where they are known: for `capped` `pool` (balls) and `waiting_time` (rounds) |
//! | `levels` | list | `k`, `load_exceedance` = P(load >= k), `max_exceedance` = P(max load >= k) |
//!
//! `basis` is `"exact"`, `"mean-field"` (the limit of many bins) or `"independent-bins"` (n bins with the law of the
//! load, taken as independent). `decay_rate` is ln z0 with P(load >= k) ~ C z0^-k, null where there is no geometric
//! tail. Loads are in balls.
//!
//! `levels` ascend: 0, and for each group of bins that started alike from the smallest load that occurs to the first k
//! that one of them reaches with probability below 1e-15, in steps of 1, 2, 5, 10, .. such that there are at most 1000
//! in all. As CSV it is the whole table, its columns the fields.

use super::bounds::Bounds;
use super::population::Population;
use super::{Basis, Prediction, When};
use crate::process::{Measure, ProcessSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;
/// Most levels of the object.
const MAX_LEVELS: usize = 1000;
/// Levels go on until the max load reaches them with a probability below this.
const INVISIBLE: f64 = 1e-15;

/// The object.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    #[serde(flatten)]
    pub(crate) process: &'a ProcessSpec,
    pub(crate) round: Option<u64>,
    pub(crate) measure: Measure,
    #[serde(flatten)]
    pub(crate) laws: Laws,
}

/// The answer itself.
#[derive(Debug, Serialize)]
pub(crate) struct Laws {
    pub(crate) load: Load,
    pub(crate) max_load: MaxLoad,
    pub(crate) bounds: Option<Bounds>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    further: BTreeMap<&'static str, f64>,
    pub(crate) levels: Vec<Level>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Load {
    basis: Basis,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    pub(crate) empty_fraction: f64,
    pub(crate) decay_rate: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MaxLoad {
    basis: Basis,
    pub(crate) mean: f64,
    pub(crate) quantiles: Vec<(f64, u64)>,
}

/// How likely a load is reached.
#[derive(Debug, Serialize)]
pub(crate) struct Level {
    pub(crate) k: u64,
    pub(crate) load_exceedance: f64,
    pub(crate) max_exceedance: f64,
}

impl<'a> Document<'a> {
    pub(crate) fn new(process: &'a ProcessSpec, when: When, measure: Measure, prediction: &Prediction) -> Self {
        Self {
            schema: SCHEMA,
            kind: "theory",
            version: env!("CARGO_PKG_VERSION"),
            process,
            round: match when {
                When::Stationary => None,
                When::Round(round) => Some(round),
            },
            measure,
            laws: Laws::new(prediction),
        }
    }
}

impl Laws {
    pub(crate) fn new(prediction: &Prediction) -> Self {
        let bins = &prediction.bins;
        let tail = match bins.groups() {
            [(_, law)] => law.tail(),
            _ => None,
        };
        Self {
            load: Load {
                basis: prediction.load_basis,
                mean: bins.mean_load(),
                variance: bins.load_variance(),
                empty_fraction: bins.empty_fraction(),
                decay_rate: tail.map(|tail| tail.rate),
            },
            max_load: MaxLoad {
                basis: prediction.max_basis,
                mean: bins.mean_max(),
                quantiles: [0.05, 0.5, 0.95, 0.999].map(|q| (q, bins.max_quantile(q))).to_vec(),
            },
            bounds: prediction.bounds,
            further: prediction.further.iter().copied().collect(),
            levels: Level::grid(bins, MAX_LEVELS),
        }
    }
}

impl Level {
    /// About `most` levels at most: 0, and for each group of bins from its smallest load, in equal steps, to the first
    /// load that is out of reach.
    pub(crate) fn grid(bins: &Population, most: usize) -> Vec<Level> {
        let mut loads = vec![0];
        for (count, law) in bins.groups() {
            let group = Population::new(vec![(*count, law.clone())]);
            let (first, last) = (law.first(), group.max_quantile(1.0 - INVISIBLE) + 1);
            let rows = (most / bins.groups().len()) as u64;
            let mut steps = (0..19).flat_map(|e| [1, 2, 5].map(|m| m * 10u64.pow(e)));
            let step = steps.find(|step| last / step - first / step + 3 <= rows).unwrap_or(u64::MAX);
            loads.extend((first / step..=last.div_ceil(step)).map(|i| i * step));
        }
        loads.sort_unstable();
        loads.dedup();
        let level = |k| Level { k, load_exceedance: bins.load_exceedance(k), max_exceedance: bins.max_exceedance(k) };
        loads.into_iter().map(level).collect()
    }
}
