//! Cover times as a table for people, as CSV, and as JSON for programs. Schema 1.
//!
//! The JSON is one object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"cover"` |
//! | `version` | string | version of leakybins |
//! | `stream_version` | integer | version of the drawn bits: [`STREAM_VERSION`] |
//! | `process` | string | the process, as in `leakybins cover PROCESS` |
//! | `parameters` | object | its parameters, as in a [run](crate::report::json) |
//! | `queue` | string | which of its balls a bin gives: `"fifo"`, `"lifo"` or `"random"` |
//! | `balls` | integer | number of balls, m |
//! | `seed` | integer | seed of all randomness, below 2^64 |
//! | `replicas` | integer | independent replicas |
//! | `rounds` | integer | most rounds of a replica |
//! | `confidence` | number | probability with which an interval covers |
//! | `n_ln_n` | number | n ln n, the unit of the scaled means |
//! | `cover` | object | the first round after which every ball has been in every bin (0: at the start), see below |
//! | `first_ball` | object | the first round after which some ball has been in every bin |
//! | `max_delay` | object | the most rounds that a ball stayed in a bin while the bin gave others |
//! | `moves` | integer | balls that bins gave, over all rounds and replicas; may pass 2^64 |
//! | `ball_rounds` | integer | rounds of all balls of all replicas: each ball moves or stays; may pass 2^64 |
//! | `mean_delay` | number or null | rounds that balls stayed, over `moves`; null without a move |
//!
//! A replica ends when every ball has been in every bin, or after `rounds` rounds. `max_delay`, `moves` and `ball_rounds`
//! are of its rounds up to there; a ball that still stays counts with the rounds so far. The bin that a ball starts in
//! is one that it has been in.
//!
//! `cover`, `first_ball` and `max_delay` are each a number of rounds for each replica:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `reached` | integer | replicas that came so far; all of them for `max_delay` |
//! | `censored` | integer | replicas that did not within `rounds` |
//! | `mean`, `low`, `high` | number or null | mean, limits of its t interval; null where a replica is censored, the limits also where the replicas show no error: a single one, or all alike |
//! | `quantiles` | list | [q, rounds]: what at least a fraction q of the replicas do not exceed; those that censored replicas leave unknown are left out |
//! | `least`, `largest` | integer or null | extremes of the replicas; `largest` is null where a replica is censored, both where none came so far |
//! | `scaled` | number or null | `mean` over n ln n; null for n = 1 |
//! | `histogram` | object | number of rounds, as a string of decimal digits, to replicas |
//!
//! Everything but `version` follows from the fields `stream_version` to `confidence`.
//!
//! As CSV it is a row for each of the three, with the columns `what` and the fields above, the quantiles as `q05`, `q50`
//! and `q95`, without the histogram. Where something is null or left out the cell is empty.

use super::{Outcome, Queue, Spec};
use crate::float;
use crate::process::ProcessSpec;
use crate::report::{
    Render, ReplicaSummary, field, five_digits, grouped, histogram_by_value, parameters, percent, pretty, wrapped,
};
use crate::rng::{MAX_ROUNDS, STREAM_VERSION};
use crate::stats::Histogram;
use crate::stats::interval::Confidence;
use serde::Serialize;
use std::fmt::{self, Write};
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;

/// The outcome with its errors, ready to be written.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    stream_version: u32,
    #[serde(flatten)]
    process: ProcessSpec,
    queue: Queue,
    balls: u32,
    seed: u64,
    replicas: u64,
    rounds: u64,
    confidence: f64,
    n_ln_n: f64,
    cover: Times<'a>,
    first_ball: Times<'a>,
    max_delay: Times<'a>,
    moves: u128,
    ball_rounds: u128,
    mean_delay: Option<f64>,
}

/// A number of rounds for each replica.
#[derive(Debug, Serialize)]
struct Times<'a> {
    reached: u64,
    censored: u64,
    #[serde(flatten)]
    rounds: ReplicaSummary,
    least: Option<u64>,
    largest: Option<u64>,
    scaled: Option<f64>,
    #[serde(serialize_with = "histogram_by_value")]
    histogram: &'a Histogram,
}

impl<'a> Times<'a> {
    fn new(histogram: &'a Histogram, replicas: u64, confidence: Confidence, n_ln_n: f64) -> Self {
        let reached = histogram.total() as u64;
        let censored = replicas - reached;
        let rounds = ReplicaSummary::new(histogram, censored, confidence);
        Self {
            reached,
            censored,
            least: histogram.iter().next().map(|(least, _)| least),
            largest: histogram.max().filter(|_| censored == 0),
            scaled: rounds.mean.filter(|_| n_ln_n > 0.0).map(|mean| mean / n_ln_n),
            rounds,
            histogram,
        }
    }

    /// The 5, 50 and 95 % quantiles, as far as they are known.
    fn quantiles(&self) -> [Option<u64>; 3] {
        [0, 1, 2].map(|i| self.rounds.quantiles.get(i).map(|(_, rounds)| *rounds))
    }
}

impl<'a> Report<'a> {
    /// The report of `outcome`, which `spec` gave with so many balls.
    #[must_use]
    pub fn new(spec: &Spec, balls: u32, outcome: &'a Outcome, confidence: Confidence) -> Self {
        let Spec { ref parameters, queue, seed, replicas, rounds } = *spec;
        let n = parameters.n as f64;
        let n_ln_n = n * float::ln(n);
        let times = |histogram| Times::new(histogram, replicas, confidence, n_ln_n);
        let Outcome { ref covered, ref first, ref max_delay, moves, ball_rounds } = *outcome;
        Self {
            schema: SCHEMA,
            kind: "cover",
            version: env!("CARGO_PKG_VERSION"),
            stream_version: STREAM_VERSION,
            process: ProcessSpec::Repeated(parameters.clone()),
            queue,
            balls,
            seed,
            replicas,
            rounds,
            confidence: confidence.level(),
            n_ln_n,
            cover: times(covered),
            first_ball: times(first),
            max_delay: times(max_delay),
            moves,
            ball_rounds,
            mean_delay: (moves > 0).then(|| (ball_rounds - moves) as f64 / moves as f64),
        }
    }

    /// What is measured of each replica, by its name in JSON.
    fn times(&self) -> [(&'static str, &Times<'a>); 3] {
        [("cover", &self.cover), ("first_ball", &self.first_ball), ("max_delay", &self.max_delay)]
    }

    fn write_table(&self, out: &mut String) -> fmt::Result {
        let Self { ref process, queue, balls, seed, replicas, rounds, .. } = *self;
        field(out, "process", &[process.name().to_owned()])?;
        field(out, "parameters", &parameters(process))?;
        let cap = if rounds == MAX_ROUNDS { "no bound of rounds".to_owned() } else { format!("rounds {rounds}") };
        field(
            out,
            "cover",
            &[format!("queue {}", queue.name()), format!("balls {balls}"), format!("replicas {replicas}"), cap],
        )?;
        field(out, "seed", &[seed.to_string()])?;
        let version = env!("CARGO_PKG_VERSION");
        field(out, "version", &[format!("leakybins {version}"), format!("stream {STREAM_VERSION}")])?;

        let interval = format!("{} % interval", percent(self.confidence));
        writeln!(out, "\nrounds until a ball has been in every bin, and rounds that a ball stayed")?;
        writeln!(
            out,
            "{:<10} {:>8} {interval:>17} {:>7} {:>7} {:>7} {:>7} {:>8}",
            "", "mean", "least", "5 %", "50 %", "95 %", "largest"
        )?;
        let mean = |value: Option<f64>| value.map_or_else(String::new, five_digits);
        let round = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        for (name, (_, times)) in ["all balls", "first ball", "max delay"].into_iter().zip(self.times()) {
            let ReplicaSummary { mean: middle, low, high, .. } = times.rounds;
            let [q05, q50, q95] = times.quantiles().map(round);
            let line = format!(
                "{name:<10} {:>8} {:>8} {:>8} {:>7} {q05:>7} {q50:>7} {q95:>7} {:>8}",
                mean(middle),
                mean(low),
                mean(high),
                round(times.least),
                round(times.largest),
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)?;
        for (name, times) in [("all balls", &self.cover), ("first ball", &self.first_ball)] {
            let scaled = times.scaled.map_or_else(String::new, |scaled| format!(", mean {scaled:.4} n ln n"));
            writeln!(out, "{name:<10} in {} of {} replicas{scaled}", grouped(times.reached), grouped(replicas))?;
        }
        if let Some(delay) = self.mean_delay {
            writeln!(out, "mean delay {} rounds before a move", five_digits(delay))?;
        }
        let note = "A ball is delayed in a round in which its bin gives another one. 5 %, 50 % and 95 % are quantiles \
                    over the replicas.";
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
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record([
            "what", "reached", "censored", "mean", "low", "high", "q05", "q50", "q95", "least", "largest", "scaled",
        ])?;
        for (what, times) in self.times() {
            let ReplicaSummary { mean, low, high, .. } = times.rounds;
            let Times { reached, censored, least, largest, scaled, .. } = *times;
            table.serialize((what, reached, censored, mean, low, high, times.quantiles(), least, largest, scaled))?;
        }
        table.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn warnings(&self) -> Vec<String> {
        let censored = self.cover.censored;
        if censored == 0 {
            return Vec::new();
        }
        vec![format!(
            "in {censored} of {} replicas some ball had not been in every bin after {} rounds; use more --rounds",
            self.replicas, self.rounds
        )]
    }
}
