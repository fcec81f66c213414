//! The way back as a table for people, as CSV, and as JSON for programs. Schema 1.
//!
//! The JSON is one object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"recover"` |
//! | `version` | string | version of leakybins |
//! | `stream_version` | integer | version of the drawn bits: [`STREAM_VERSION`] |
//! | `process` | string | the process, as in `leakybins recover PROCESS` |
//! | `parameters` | object | its parameters, as in a [run](crate::report::json) |
//! | `seed` | integer | seed of all randomness, below 2^64 |
//! | `replicas` | integer | independent replicas |
//! | `rounds` | integer | the horizon: rounds of each replica |
//! | `confidence` | number | probability with which an interval covers |
//! | `trajectory` | list | a point for each round looked at, ascending from 0 to the horizon, see below |
//! | `recovery` | object | the first round that meets the level, see below |
//!
//! A point has `round`, `max_load`, `total_load` and `theory`. They are those at the end of that round,
//! in balls, over the replicas, `total_load` with the balls outside of the bins: `mean`, `low` and `high` (limits of its t interval, each point for itself; null where
//! the replicas show no error: a single one, or all alike) and `quantiles`, a list of [q, load]: the smallest load that
//! at least a fraction q of the replicas do not exceed. `theory` has `mean_max` and `mean_total`, each what [`theory`]
//! expects after that round: for d = 1 the total is exact, else of the limit of many bins, and the max load is that of
//! independent bins; null where it is not known or takes more than some 10^9 operations to compute.
//!
//! `recovery` tells after which round the level is met for the first time (0: at the start): where the max load and, if
//! the process has balls outside of the bins, an n-th part of these are at most `level` together.
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `level` | integer | the level, in balls |
//! | `elsewhere` | string, or absent | name of the balls outside of the bins: `pool` for `capped` |
//! | `recovered` | integer | replicas that met it by the horizon |
//! | `censored` | integer | replicas that did not |
//! | `mean`, `low`, `high` | number or null | mean round, limits of its t interval; null where a replica is censored |
//! | `quantiles` | list | [q, round]; those that censored replicas leave unknown are left out |
//! | `histogram` | object | round, as a string of decimal digits, to the replicas that met the level then |
//!
//! Everything but `version` follows from the fields `stream_version` to `rounds`, `confidence` and `level`, and from
//! the rounds looked at.
//!
//! As CSV it is the trajectory, a row a point: `round`, and for `max` and `total` each `_mean`, `_low`, `_high`,
//! `_q05`, `_q50`, `_q95`, `_theory`. Where something is null the cell is empty.

use super::{Outcome, Spec};
use crate::process::{Measure, ProcessSpec};
use crate::report::{
    Render, ReplicaSummary, field, five_digits, grouped, histogram_by_value, parameters, percent, pretty, significant,
    wrapped,
};
use crate::rng::STREAM_VERSION;
use crate::stats::Histogram;
use crate::stats::interval::Confidence;
use crate::theory::{self, Basis, Expected, When};
use serde::Serialize;
use std::fmt::{self, Write};
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;
/// Operations that the theory beside the trajectory may take: a second or two.
const THEORY_BUDGET: f64 = 1e9;

/// The outcome with its errors, ready to be written.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    stream_version: u32,
    #[serde(flatten)]
    process: &'a ProcessSpec,
    seed: u64,
    replicas: u64,
    rounds: u64,
    confidence: f64,
    trajectory: Vec<Point>,
    recovery: Recovery<'a>,
    #[serde(skip)]
    bins: u32,
    /// What theory rests on, for bins and for the max load, where there is some.
    #[serde(skip)]
    basis: Option<[Basis; 2]>,
}

#[derive(Debug, Serialize)]
struct Point {
    round: u64,
    max_load: ReplicaSummary,
    total_load: ReplicaSummary,
    theory: Option<Expected>,
}

#[derive(Debug, Serialize)]
struct Recovery<'a> {
    level: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<&'static str>,
    recovered: u64,
    censored: u64,
    #[serde(flatten)]
    round: ReplicaSummary,
    #[serde(serialize_with = "histogram_by_value")]
    histogram: &'a Histogram,
}

impl<'a> Report<'a> {
    /// The report of `outcome`, which `spec` gave on `bins` bins.
    #[must_use]
    pub fn new(spec: &'a Spec, bins: u32, outcome: &'a Outcome, confidence: Confidence) -> Self {
        let rounds: Vec<u64> = outcome.points.iter().map(|point| point.round).collect();
        let expected = theory::trajectory(&spec.process, &rounds, THEORY_BUDGET);
        let basis = expected.iter().any(Option::is_some).then(|| spec.process.predict(When::Round(0), Measure::Post));
        let basis = basis.and_then(Result::ok).map(|start| [start.load_basis, start.max_basis]);
        let trajectory = outcome.points.iter().zip(expected).map(|(point, theory)| Point {
            round: point.round,
            max_load: ReplicaSummary::new(&point.max_load, 0, confidence),
            total_load: ReplicaSummary::new(&point.total_load, 0, confidence),
            theory,
        });
        let Spec { ref process, seed, replicas, rounds, level, .. } = *spec;
        Self {
            schema: SCHEMA,
            kind: "recover",
            version: env!("CARGO_PKG_VERSION"),
            stream_version: STREAM_VERSION,
            process,
            seed,
            replicas,
            rounds,
            confidence: confidence.level(),
            trajectory: trajectory.collect(),
            recovery: Recovery {
                level,
                elsewhere: process.elsewhere(),
                recovered: replicas - outcome.censored,
                censored: outcome.censored,
                round: ReplicaSummary::new(&outcome.recovered, outcome.censored, confidence),
                histogram: &outcome.recovered,
            },
            bins,
            basis,
        }
    }

    fn to_csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let columns = ["mean", "low", "high", "q05", "q50", "q95", "theory"];
        let named = |observable: &'static str| columns.map(|column| format!("{observable}_{column}"));
        table.write_record(["round".to_owned()].into_iter().chain(named("max")).chain(named("total")))?;
        for Point { round, max_load, total_load, theory } in &self.trajectory {
            let cells = |summary: &ReplicaSummary, theory: Option<f64>| {
                let quantiles: Vec<u64> = summary.quantiles.iter().map(|(_, load)| *load).collect();
                (summary.mean, summary.low, summary.high, quantiles, theory)
            };
            let max = cells(max_load, theory.map(|expected| expected.mean_max));
            table.serialize((round, max, cells(total_load, theory.map(|expected| expected.mean_total))))?;
        }
        table.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn write_table(&self, out: &mut String) -> fmt::Result {
        let Self { process, seed, replicas, rounds, ref trajectory, ref recovery, .. } = *self;
        let n = f64::from(self.bins);
        let confidence = percent(self.confidence);
        field(out, "process", &[process.name().to_owned()])?;
        field(out, "parameters", &parameters(process))?;
        field(out, "recovery", &[format!("replicas {replicas}"), format!("rounds {rounds}")])?;
        field(out, "seed", &[seed.to_string()])?;
        let version = env!("CARGO_PKG_VERSION");
        field(out, "version", &[format!("leakybins {version}"), format!("stream {STREAM_VERSION}")])?;

        let measured = process.measured(Measure::Post).expect("every round has an end");
        writeln!(out, "\n{measured} of a round, in balls")?;
        writeln!(out, "{:>8} {:<51} {:>17}", "", "max load", "balls per bin")?;
        let interval = format!("{confidence} % interval");
        writeln!(
            out,
            "{:>8} {:>8} {interval:>17} {:>7} {:>7} {:>8} {:>8} {:>8}",
            "round", "mean", "5 %", "95 %", "theory", "mean", "theory"
        )?;
        let cell = |value: Option<f64>| value.map_or(String::new(), five_digits);
        for Point { round, max_load, total_load, theory } in trajectory {
            let [(_, low), _, (_, high)] = max_load.quantiles[..] else { unreachable!("a point has all replicas") };
            let line = format!(
                "{round:>8} {:>8} {:>8} {:>8} {low:>7} {high:>7} {:>8} {:>8} {:>8}",
                cell(max_load.mean),
                cell(max_load.low),
                cell(max_load.high),
                cell(theory.map(|expected| expected.mean_max)),
                cell(total_load.mean.map(|total| total / n)),
                cell(theory.map(|expected| expected.mean_total / n)),
            );
            writeln!(out, "{}", line.trim_end())?;
        }

        let Recovery { level, elsewhere, recovered, ref round, .. } = *recovery;
        let share = elsewhere.map_or(String::new(), |name| format!(" + {name} / n"));
        writeln!(out, "\nfirst round after which the max load{share} is at most {level}")?;
        writeln!(out, "  recovered  {} of {} replicas", grouped(recovered), grouped(replicas))?;
        if let Some(mean) = round.mean {
            write!(out, "  mean       {}", significant(mean))?;
            if let (Some(low), Some(high)) = (round.low, round.high) {
                write!(out, ", {interval} {} to {}", significant(low), significant(high))?;
            }
            writeln!(out)?;
        }
        for (q, round) in &round.quantiles {
            writeln!(out, "  {:<11}{}", format!("{} %", percent(*q)), grouped(round))?;
        }
        let mut note = "5 % and 95 % are quantiles over the replicas.".to_owned();
        if let Some(name) = elsewhere {
            write!(note, " Balls per bin include those in the {name}.")?;
        }
        match self.basis.map(|basis| basis.map(Basis::meaning)) {
            Some([bins, max]) => {
                write!(note, " Theory is left out where it takes long. Balls per bin: {bins}. Max load: {max}.")?;
            }
            None => note.push_str(" Theory does not know this way, or it takes long."),
        }
        writeln!(out, "\n{}", wrapped(note.split(' '), " ", 0))
    }
}

impl Render for Report<'_> {
    fn table(&self) -> String {
        let mut text = String::new();
        self.write_table(&mut text).expect("a string takes everything");
        text
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        pretty(self)
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        self.to_csv()
    }

    fn warnings(&self) -> Vec<String> {
        let Recovery { level, censored, .. } = self.recovery;
        if censored == 0 {
            return Vec::new();
        }
        vec![format!(
            "{censored} of {} replicas were still above level {level} after {} rounds; use more --rounds",
            self.replicas, self.rounds
        )]
    }
}
