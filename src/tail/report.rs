//! Rare max loads as a table for people, as CSV, and as JSON for programs. Schema 1.
//!
//! The JSON is one object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"tail"` |
//! | `version` | string | version of leakybins |
//! | `profile_stream_version` | integer | version of the drawn bits of profiles: [`PROFILE_STREAM_VERSION`] |
//! | `tail_version` | integer | version of the method: [`TAIL_VERSION`] |
//! | `process` | string | the process, as in `leakybins tail PROCESS` |
//! | `parameters` | object | its parameters, as in a [run](crate::report::json); in the stationary state `start` has no effect but the number of balls of `repeated` |
//! | `states` | string | what a state of the chain is: `profile` (how many bins have each load) or `bins` (the load of each) |
//! | `when` | string | when the level is to be reached: `stationary`, `at round 100`, or `within 100 rounds` |
//! | `horizon` | integer or null | that round, or number of rounds |
//! | `seed` | integer | seed of all randomness, below 2^64 |
//! | `confidence` | number | probability with which an interval covers |
//! | `rel_err` | number or null | relative error at which the run was to end |
//! | `max_islands` | integer | most islands |
//! | `islands` | integer | independent islands |
//! | `reason` | string | why it ended: `rel-err`, `max-islands` or `max-time`; `incomplete`: not ended, a journal without all its islands |
//! | `rounds` | integer | rounds computed in all islands, burn-in included |
//! | `elapsed_s` | number, or absent | seconds of wall time; absent of a [journal](crate::journal), by `tail --out` or `report` |
//! | `stages` | list | [level, excursions in an island] of each stage, ascending |
//! | `levels` | list | the levels asked for, ascending, see below |
//!
//! A level has
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `k` | integer | the level: P(max load >= k) at the end of a round, as a run has it with `--measure post` |
//! | `method` | string | `plain` (counted along the plain chains), `stage`, or `one-bin` (a bin followed alone) |
//! | `p` | number | the estimate |
//! | `low`, `high` | number or null | limits of its t interval over the islands, each level for itself |
//! | `rel_err` | number or null | half the width of the interval over the estimate |
//! | `effective_excursions` | number | as many equally heavy excursions would do the same |
//! | `ancestors` | integer | different states of the plain chains that they come from |
//! | `largest_share` | number | share of the estimate of the heaviest excursion |
//! | `skewness` | number | skewness of the islands |
//! | `gain` | number or null | rounds of a plain run that would give the same error if rounds were independent (they are not: it would take more), over `rounds` |
//! | `theory` | number or null | P(M >= k) of independent bins: exact for d = 1 with Poisson arrivals, else an approximation that fails far out |
//! | `trusted` | boolean | whether there is no doubt |
//! | `doubts` | list | reasons to distrust the interval: `few-ancestors`, `dominating-weight`, `skewed-islands`, `never-reached`, `few-islands` (of a journal that is incomplete) |
//!
//! Everything but `version` and `elapsed_s` follows from the fields `profile_stream_version` to `max_islands`, and from
//! the levels; a run that ended by `max-time` is that with so many islands.
//!
//! The CSV has the fields of a level as columns, without `doubts`; where something is null the cell is empty.

use super::{Doubt, Estimate, Method, Outcome, Question, Reason, Spec, TAIL_VERSION};
use crate::backend::StreamKind;
use crate::process::{Measure, ProcessSpec};
use crate::profile::PROFILE_STREAM_VERSION;
use crate::report::{Render, field, grouped, human, parameters, percent, pretty, probability, wrapped};
use crate::theory::When;
use serde::Serialize;
use std::fmt::{self, Write};
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;

/// Rounds up to which the law at a round is computed for comparison: it takes a moment.
const KNOWN_ROUNDS: u64 = 4096;

/// The outcome, ready to be written.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    profile_stream_version: u32,
    tail_version: u32,
    #[serde(flatten)]
    process: &'a ProcessSpec,
    states: StreamKind,
    when: String,
    horizon: Option<u64>,
    seed: u64,
    confidence: f64,
    rel_err: Option<f64>,
    max_islands: u64,
    islands: u64,
    reason: Reason,
    rounds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_s: Option<f64>,
    stages: &'a [(u64, u64)],
    levels: Vec<Level<'a>>,
}

#[derive(Debug, Serialize)]
struct Level<'a> {
    k: u64,
    method: Method,
    p: f64,
    low: Option<f64>,
    high: Option<f64>,
    rel_err: Option<f64>,
    effective_excursions: f64,
    ancestors: u64,
    largest_share: f64,
    skewness: f64,
    gain: Option<f64>,
    theory: Option<f64>,
    trusted: bool,
    doubts: &'a [Doubt],
}

impl<'a> Report<'a> {
    /// The report of `outcome`, which `spec` gave.
    #[must_use]
    pub fn new(spec: &'a Spec, outcome: &'a Outcome) -> Self {
        let when = match spec.question {
            Question::Stationary => Some(When::Stationary),
            Question::AtRound(round) if round <= KNOWN_ROUNDS => Some(When::Round(round)),
            Question::AtRound(_) | Question::Within(_) => None,
        };
        let theory = when.and_then(|when| spec.process.predict(when, Measure::Post).ok());
        let level = |of: &'a Estimate| Level {
            k: of.k,
            method: of.method,
            p: of.probability,
            low: of.interval.map(|interval| interval.0),
            high: of.interval.map(|interval| interval.1),
            rel_err: of.rel_err,
            effective_excursions: of.effective_excursions,
            ancestors: of.ancestors,
            largest_share: of.largest_share,
            skewness: of.skewness,
            gain: of.gain,
            theory: theory.as_ref().map(|theory| theory.bins.max_exceedance(of.k)),
            trusted: of.doubts.is_empty(),
            doubts: &of.doubts,
        };
        Self {
            schema: SCHEMA,
            kind: "tail",
            version: env!("CARGO_PKG_VERSION"),
            profile_stream_version: PROFILE_STREAM_VERSION,
            tail_version: TAIL_VERSION,
            process: &spec.process,
            states: spec.states,
            when: spec.question.to_string(),
            horizon: spec.question.horizon(),
            seed: spec.seed,
            confidence: spec.confidence.level(),
            rel_err: spec.rel_err,
            max_islands: spec.max_islands,
            islands: outcome.islands,
            reason: outcome.reason,
            rounds: outcome.rounds,
            elapsed_s: outcome.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            stages: &outcome.stages,
            levels: outcome.levels.iter().map(level).collect(),
        }
    }

    fn write_table(&self, out: &mut String) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        field(out, "process", &[self.process.name().to_owned()])?;
        let mut parameters = parameters(self.process);
        // The stationary state knows no start, but how many balls are always there.
        let has_start = self.horizon.is_some() || self.process.is_closed();
        parameters.retain(|text| has_start || !text.starts_with("start "));
        field(out, "parameters", &parameters)?;
        field(out, "states", &[self.states.to_string()])?;
        let done = [format!("islands {}", self.islands), format!("rounds {}", grouped(self.rounds))];
        let time = self.elapsed_s.map(|elapsed| format!("{elapsed:.3} s"));
        field(out, "tail", &done.into_iter().chain(time).collect::<Vec<_>>())?;
        let stages = match (self.stages.first(), self.stages.last()) {
            (Some(first), Some(last)) => format!("{} from level {} to {}", self.stages.len(), first.0, last.0),
            _ => "none: every level was counted along the plain chains".to_owned(),
        };
        field(out, "stages", &[stages])?;
        field(out, "seed", &[self.seed.to_string()])?;
        let versions = [format!("profile stream {PROFILE_STREAM_VERSION}"), format!("tail {TAIL_VERSION}")];
        field(out, "version", &[&[format!("leakybins {version}")], &versions[..]].concat())?;

        let interval = format!("{} % interval", percent(self.confidence));
        let measured = self.process.measured(Measure::Post).expect("every round has an end");
        writeln!(out, "\nmax load M {measured} of a round, in balls; {}", self.when)?;
        writeln!(out, "{:>7} {:>9} {interval:>19} {:>7} {:>9} {:>7} {:>8}", "", "", "rel.", "effective", "ances-", "")?;
        writeln!(
            out,
            "{:>7} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7} {:>8} {:>9}",
            "k", "P(M >= k)", "from", "to", "error", "visits", "tors", "gain", "theory"
        )?;
        for level in &self.levels {
            let cell = |value: Option<f64>| value.map_or(String::new(), small);
            let mark = if level.trusted { "" } else { " ?" };
            let error = level.rel_err.map_or(String::new(), |e| format!("{:.2} %", 100.0 * e));
            let gain = level.gain.map_or(String::new(), of_gain);
            writeln!(
                out,
                "{:>7} {:>9} {:>9} {:>9} {error:>7} {:>9} {:>7} {gain:>8} {:>9}{mark}",
                level.k,
                small(level.p),
                cell(level.low),
                cell(level.high),
                human(level.effective_excursions),
                human(level.ancestors as f64),
                cell(level.theory),
            )?;
        }
        for level in self.levels.iter().filter(|level| !level.trusted) {
            let doubts: Vec<_> = level.doubts.iter().map(|doubt| doubt.meaning()).collect();
            let text = format!("? The interval of level {} cannot be trusted: {}.", level.k, doubts.join("; "));
            writeln!(out, "\n{}", wrapped(text.split(' '), " ", 0))?;
        }
        let note = "Each interval for itself, by the spread of the islands. Effective visits: as many equally heavy ones \
                    would do the same; ancestors: different plain states that they come from. Gain: rounds of a plain \
                    run for the same error, if its rounds were independent, over the rounds computed. Theory: \
                    independent bins; exact for d = 1 with Poisson arrivals, else it fails far out.";
        writeln!(out, "\n{}", wrapped(note.split(' '), " ", 0))
    }
}

/// A probability in nine columns, however small.
fn small(p: f64) -> String {
    if p == 0.0 { "0".to_owned() } else { probability(p) }
}

/// A gain in eight columns.
fn of_gain(gain: f64) -> String {
    if gain < 1e4 { format!("{gain:.3}") } else { format!("{gain:.1e}") }
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
            "k",
            "method",
            "p",
            "low",
            "high",
            "rel_err",
            "effective_excursions",
            "ancestors",
            "largest_share",
            "skewness",
            "gain",
            "theory",
            "trusted",
        ])?;
        for of in &self.levels {
            let errors = (of.low, of.high, of.rel_err);
            let rests_on = (of.effective_excursions, of.ancestors, of.largest_share, of.skewness, of.gain);
            table.serialize((of.k, of.method, of.p, errors, rests_on, of.theory, of.trusted))?;
        }
        table.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.reason == Reason::Incomplete {
            let (done, all) = (self.islands, self.max_islands);
            warnings.push(format!("the run is incomplete: this is the result of {done} of {all} islands"));
        }
        let doubtful: Vec<_> = self.levels.iter().filter(|of| !of.trusted).map(|of| of.k.to_string()).collect();
        if !doubtful.is_empty() {
            let is_part = self.reason == Reason::Incomplete;
            let remedy = if is_part { "compute the other islands first" } else { "use more --max-islands" };
            warnings.push(format!(
                "the intervals of the levels {} cannot be trusted (the result says why); {remedy}",
                doubtful.join(", ")
            ));
        }
        if let Some(wanted) = self.rel_err
            && !matches!(self.reason, Reason::RelErr | Reason::Incomplete)
        {
            let worst = self.levels.iter().filter_map(|of| of.rel_err).fold(0.0, f64::max);
            let remedy = if self.reason == Reason::MaxTime { "--max-time" } else { "--max-islands" };
            warnings.push(format!(
                "the relative error {wanted} was not reached (the largest is {worst:.3}); use more {remedy}"
            ));
        }
        warnings
    }
}
