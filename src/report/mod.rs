//! Results for people (table), for programs ([`json`]) and for spreadsheets ([`csv`]).

pub mod csv;
pub mod json;
mod table;

pub(crate) use table::{probability, significant};

use crate::run::{Outcome, Spec};
use crate::stats::Histogram;
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
    /// The histograms as one table
    Csv,
}

/// A finished run, ready to be reported.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was run.
    pub spec: &'a Spec,
    /// Number of bins, n.
    pub bins: u32,
    /// What it gave.
    pub outcome: &'a Outcome,
}

impl Report<'_> {
    /// The whole result in one of the forms, a line feed at its end.
    ///
    /// # Errors
    /// Never for a result of [`crate::run::run`]; serializers want to be able to.
    pub fn render(&self, format: Format) -> io::Result<Vec<u8>> {
        match format {
            Format::Table => Ok(table::render(self).into_bytes()),
            Format::Json => json::render(self),
            Format::Csv => csv::render(self),
        }
    }

    /// Balls thrown a second of wall time.
    fn balls_per_second(&self) -> f64 {
        self.outcome.tally.flow.arrived as f64 / self.outcome.elapsed.as_secs_f64()
    }
}

/// A level of a histogram with the count of all values that reach it.
struct Level {
    value: u64,
    count: u64,
    at_least: u128,
}

/// The levels of a histogram, ascending.
fn levels(histogram: &Histogram) -> Vec<Level> {
    let mut at_least = histogram.total();
    histogram
        .iter()
        .map(|(value, count)| {
            let level = Level { value, count, at_least };
            at_least -= u128::from(count);
            level
        })
        .collect()
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
    fn levels_count_all_values_that_reach_them() {
        let mut h = Histogram::default();
        h.add(2, 5);
        h.add(7, 3);
        let seen: Vec<_> = levels(&h).into_iter().map(|l| (l.value, l.count, l.at_least)).collect();
        assert_eq!(seen, [(2, 5, 8), (7, 3, 3)]);
    }

    #[test]
    fn long_parts_move_to_the_next_line() {
        let long = "x".repeat(70);
        assert_eq!(wrapped(["a", &long, "b"].into_iter(), ", ", 12), format!("a,\n{:12}{long},\n{:12}b", "", ""));
    }
}
