//! Results for people (table), for programs ([`json`]) and for spreadsheets ([`csv`]).

pub mod csv;
mod estimates;
pub mod json;
#[cfg(feature = "parquet")]
pub mod parquet;
mod replicas;
mod table;

pub(crate) use estimates::ENOUGH_TIMES;
pub use estimates::{Estimates, Level, Mean};

pub(crate) use json::histogram_by_value;
pub(crate) use replicas::ReplicaSummary;
pub(crate) use table::{
    field, five_digits, grouped, named_parameters, of_kind, parameters, percent, probability, reached, significant,
};

use crate::run::{Outcome, Reason, Spec};
use crate::stats::estimate::Band;
use crate::stats::interval::Confidence;
use crate::theory;
use crate::theory::Prediction;
use serde::Serialize;
use std::io;

/// Columns of everything laid out for people.
const WIDTH: usize = 80;

/// Form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// Everything, for programs
    Json,
    /// The main numbers as one table
    Csv,
    /// The same table with typed columns
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A document in JSON, indented, that ends with a line feed.
pub(crate) fn pretty(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A result that can be written.
pub trait Render {
    /// For people: at most 80 columns.
    fn table(&self) -> String;

    /// Everything, for programs.
    ///
    /// # Errors
    /// Never for a result of this crate; serializers want to be able to.
    fn json(&self) -> io::Result<Vec<u8>>;

    /// The main numbers as one table.
    ///
    /// # Errors
    /// As for [`json`](Self::json).
    fn csv(&self) -> io::Result<Vec<u8>>;

    /// The result in one of the forms; text ends with a line feed.
    ///
    /// # Errors
    /// As for [`json`](Self::json).
    fn render(&self, format: Format) -> io::Result<Vec<u8>> {
        match format {
            Format::Table => Ok(self.table().into_bytes()),
            Format::Json => self.json(),
            Format::Csv => self.csv(),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::from_csv(&self.csv()?),
        }
    }

    /// Reasons to distrust the result.
    fn warnings(&self) -> Vec<String>;
}

/// A finished run, ready to be reported.
#[derive(Debug)]
pub struct Report<'a> {
    spec: &'a Spec,
    /// Number of bins, n.
    bins: u64,
    outcome: &'a Outcome,
    estimates: Estimates,
    theory: Option<Prediction>,
}

impl<'a> Report<'a> {
    /// The report of `outcome`, which `spec` gave on `bins` bins; its intervals as wanted.
    #[must_use]
    pub fn new(spec: &'a Spec, bins: u64, outcome: &'a Outcome, confidence: Confidence, band: Band) -> Self {
        let estimates = Estimates::new(&outcome.tally, &spec.schedule, confidence, band);
        let theory = theory::stationary(&spec.process, spec.schedule.measure);
        Self { spec, bins, outcome, estimates, theory }
    }

    /// The relative error that a rule for stopping is about, where it is known.
    fn rel_err(&self) -> Option<f64> {
        self.spec.stopping?.reached(&self.outcome.tally, &self.spec.schedule)
    }

    /// Balls thrown a second of wall time.
    fn balls_per_second(&self) -> f64 {
        self.outcome.tally.flow.arrived as f64 / self.outcome.elapsed.as_secs_f64()
    }
}

impl Render for Report<'_> {
    fn table(&self) -> String {
        table::render(self)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        json::render(self)
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        csv::render(self)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.estimates.warnings();
        let ended = self.outcome.reason;
        if ended == Reason::Incomplete {
            let (done, all) = (self.outcome.tally.replicas, self.spec.replicas);
            warnings.push(format!("the run is incomplete: this is the result of {done} of {all} replicas"));
        }
        if let Some(wanted) = self.spec.stopping.and_then(|stopping| stopping.rel_err)
            && matches!(ended, Reason::Replicas | Reason::MaxTime)
        {
            let reached = self.rel_err().map_or("the error is not known".to_owned(), |e| format!("it is {e:.3}"));
            let remedy = if ended == Reason::MaxTime { "--max-time" } else { "--replicas" };
            warnings.push(format!("the relative error {wanted} was not reached ({reached}); use more {remedy}"));
        }
        warnings
    }
}

/// `parts` joined by `separator`, broken between parts at the width of the table, later lines indented.
pub(crate) fn wrapped<'a>(parts: impl Iterator<Item = &'a str>, separator: &str, indent: usize) -> String {
    let (mut text, mut column) = (String::new(), indent);
    for part in parts {
        if !text.is_empty() {
            text.push_str(separator.trim_end());
            let fits = column + separator.len() + part.chars().count() < WIDTH;
            text.push_str(&if fits { " ".to_owned() } else { format!("\n{:indent$}", "") });
            column = if fits { column + separator.len() } else { indent };
        }
        text.push_str(part);
        column += part.chars().count();
    }
    text
}

/// A number with three digits and a unit: `9.99`, `12.3 k`, `456 M`, `1.20 G`, `3.00 T`.
#[must_use]
pub fn human(value: f64) -> String {
    const UNITS: [&str; 7] = ["", " k", " M", " G", " T", " P", " E"];
    let (mut value, mut unit) = (value, 0);
    // 999.5 would be printed with four digits.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0.00"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1.00 k"),
            (12_345.0, "12.3 k"),
            (650e6, "650 M"),
            (1.2e11, "120 G"),
            (5e21, "5000 E"),
        ] {
            assert_eq!(human(value), text);
        }
    }

    #[test]
    fn long_parts_move_to_the_next_line() {
        let long = "x".repeat(70);
        assert_eq!(wrapped(["a", &long, "b"].into_iter(), ", ", 12), format!("a,\n{:12}{long},\n{:12}b", "", ""));
    }
}
