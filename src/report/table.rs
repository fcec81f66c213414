//! The result for people: at most 80 columns.

use super::{Level, Report, WIDTH, human, levels, wrapped};
use crate::process::Measure;
use crate::rng::STREAM_VERSION;
use crate::stats::Moments;
use std::fmt::{self, Display, Write};

/// Histograms with more levels than this are grouped.
const MAX_ROWS: usize = 40;
/// Widest bar, in columns.
const BAR: usize = 24;

/// The whole table.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut out = String::new();
    write(report, &mut out).expect("a string takes everything");
    out
}

fn write(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let Report { spec, outcome, bins } = *report;
    let (tally, schedule) = (&outcome.tally, &spec.schedule);
    let (samples, replicas) = (tally.samples(), spec.replicas);

    let measure = match schedule.measure {
        Measure::Pre => "measure pre (before the deletions)",
        Measure::Post => "measure post (after the deletions)",
    };
    let sampling = [
        format!("replicas {replicas}"),
        format!("rounds {}", schedule.rounds),
        format!("burn-in {}", schedule.burn_in),
        format!("every {}", schedule.every),
        format!("loads-every {}", schedule.loads_every),
        measure.to_owned(),
    ];
    let parts = [
        format!("{} thrown in {:.3} s", human_count(tally.flow.arrived), outcome.elapsed.as_secs_f64()),
        format!("{} balls/s", human(report.balls_per_second())),
    ];
    field(out, "process", &[spec.process.name().to_owned()])?;
    field(out, "parameters", &parameters(report))?;
    field(out, "sampling", &sampling)?;
    field(out, "seed", &[spec.seed.to_string()])?;
    field(
        out,
        "samples",
        &[format!("{} rounds", grouped(samples)), format!("{} a replica", grouped(samples / replicas))],
    )?;
    field(out, "balls", &parts)?;
    field(out, "backend", &[outcome.backend.to_owned()])?;
    let adapter = outcome.adapter.as_deref().unwrap_or("none");
    writeln!(out, "{:<12}{}", "adapter", wrapped(adapter.split(' '), " ", 12))?;
    field(out, "version", &[format!("leakybins {}", env!("CARGO_PKG_VERSION")), format!("stream {STREAM_VERSION}")])?;

    let n = f64::from(bins);
    writeln!(out)?;
    let max_load = levels(&tally.max_load);
    let range = max_load.first().zip(max_load.last()).map(|(low, high)| [low.value, high.value].map(|v| v as f64));
    writeln!(out, "{:<16}{:>14}{:>14}{:>14}{:>14}", "", "mean", "deviation", "smallest", "largest")?;
    summary(out, "max load", tally.max_load.mean(), None, range)?;
    summary(out, "load per bin", tally.total_load.mean().map(|m| m / n), None, None)?;
    moments(out, "total load", &tally.total_load, 1.0)?;
    moments(out, "empty fraction", &tally.empty_bins, n)?;

    writeln!(out, "\nmax load M of a round, in balls")?;
    law(out, &max_load, "rounds", "P(M >= k)")?;
    writeln!(out, "\nload L of a bin, in balls")?;
    if tally.load_per_bin.total() == 0 {
        writeln!(out, "  not recorded: no sampled round was asked for its loads (see --loads-every)")?;
    } else {
        law(out, &levels(&tally.load_per_bin), "bins", "P(L >= k)")?;
    }
    let evidence = format!(
        "Fractions are time averages: the {} sampled rounds of a replica are correlated. The independent evidence is \
         {} replica{}.",
        grouped(samples / replicas),
        grouped(replicas),
        if replicas == 1 { "" } else { "s" },
    );
    writeln!(out, "\n{}", wrapped(evidence.split(' '), " ", 0))
}

/// The process's parameters by name, as the specification writes them.
fn parameters(report: &Report<'_>) -> Vec<String> {
    let spec = serde_json::to_value(&report.spec.process).expect("parameters are plain values");
    let named = spec["parameters"].as_object().expect("parameters have names");
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    named.iter().map(|(name, value)| format!("{name} {}", text(value))).collect()
}

/// A header line, wrapped between its parts.
fn field(out: &mut String, name: &str, parts: &[String]) -> fmt::Result {
    writeln!(out, "{name:<12}{}", wrapped(parts.iter().map(String::as_str), ", ", 12))
}

/// One line of the summary; what is not known stays blank.
fn summary(
    out: &mut String,
    name: &str,
    mean: Option<f64>,
    deviation: Option<f64>,
    range: Option<[f64; 2]>,
) -> fmt::Result {
    let cell = |value: Option<f64>| value.map_or_else(String::new, significant);
    let [low, high] = range.map_or([None; 2], |range| range.map(Some)).map(cell);
    let line = format!("{name:<16}{:>14}{:>14}{low:>14}{high:>14}", cell(mean), cell(deviation));
    writeln!(out, "{}", line.trim_end())
}

/// A line of the summary in units of `scale`.
fn moments(out: &mut String, name: &str, moments: &Moments, scale: f64) -> fmt::Result {
    let deviation = moments.variance().map(|v| v.sqrt() / scale);
    let range = [moments.min, moments.max].map(|v| v as f64 / scale);
    summary(out, name, moments.mean().map(|m| m / scale), deviation, Some(range))
}

/// The rows of a histogram: level, count, fraction, exceedance, bar.
fn law(out: &mut String, levels: &[Level], values: &str, exceedance: &str) -> fmt::Result {
    let total = levels.first().map_or(0, |l| l.at_least) as f64;
    let rows = rows(levels);
    let labels: Vec<String> = rows.iter().map(Row::label).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0).max(3);
    let counts = rows.iter().map(|r| grouped(r.count).len()).max().unwrap_or(0).max(values.len());
    let peak = rows.iter().map(|r| r.count).max().unwrap_or(1) as f64;
    writeln!(out, "  {:>width$}  {values:>counts$}  {:>9}  {exceedance:>9}", "k", "fraction")?;
    let room = WIDTH.saturating_sub(width + counts + 28).min(BAR);
    for (row, label) in rows.iter().zip(&labels) {
        let (count, share) = (grouped(row.count), probability(row.count as f64 / total));
        let reach = probability(row.at_least as f64 / total);
        let line = format!(
            "  {label:>width$}  {count:>counts$}  {share:>9}  {reach:>9}  {}",
            bar(row.count as f64 / peak, room)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if rows.len() < levels.len() {
        let note = format!(
            "The {} levels seen are grouped; P is that of a group's lowest level. --format json or csv has every level.",
            grouped(levels.len())
        );
        writeln!(out, "  {}", wrapped(note.split(' '), " ", 2))?;
    }
    Ok(())
}

/// A range of levels, shown as one line.
struct Row {
    low: u64,
    high: u64,
    count: u128,
    at_least: u128,
}

impl Row {
    fn label(&self) -> String {
        if self.low == self.high { self.low.to_string() } else { format!("{}-{}", self.low, self.high) }
    }
}

/// One row a level if these are few. Otherwise groups of equal width between the 0.1 % and 99.9 % quantiles, so that an
/// outlier cannot squeeze the bulk into one row, and one row for each tail.
fn rows(levels: &[Level]) -> Vec<Row> {
    let total = levels.first().map_or(0, |l| l.at_least);
    let group: Box<dyn Fn(u64) -> u64> = if levels.len() <= MAX_ROWS {
        Box::new(|value| value)
    } else {
        let quantile = |thousandths: u128| {
            let above = levels.partition_point(|l| (total - l.at_least) * 1000 <= total * thousandths);
            levels[above.max(1) - 1].value
        };
        let (low, high) = (quantile(1), quantile(999));
        let widths = (0..19).flat_map(|e| [1, 2, 5].map(|m| m * 10u64.pow(e)));
        let fits = |w: &u64| high / w - low / w < MAX_ROWS as u64 - 2;
        let width = widths.into_iter().find(fits).expect("loads are below 2^64");
        // The tails keep to the groups 0 and 1 below everything and the one above everything.
        Box::new(move |value| (value / width).clamp((low / width).saturating_sub(1), high / width + 1))
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut last = None;
    for level in levels {
        let number = group(level.value);
        match rows.last_mut() {
            Some(row) if last == Some(number) => {
                row.high = level.value;
                row.count += u128::from(level.count);
            }
            _ => {
                let Level { value, count, at_least } = *level;
                rows.push(Row { low: value, high: value, count: count.into(), at_least });
            }
        }
        last = Some(number);
    }
    rows
}

/// A bar of eighths of a column; anything above 0 shows.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = ((share * (8 * width) as f64).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// A probability in nine columns: seven decimals, or three digits and a power of ten where these say too little.
pub(crate) fn probability(p: f64) -> String {
    if p >= 1e-4 { format!("{p:.7}") } else { format!("{p:.2e}") }
}

/// Seven significant digits; a whole number as it is.
pub(crate) fn significant(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e10 {
        return format!("{value}");
    }
    match value.abs().log10().floor() as i32 {
        d @ -4..=6 => format!("{value:.*}", (6 - d) as usize),
        _ => format!("{value:.6e}"),
    }
}

/// `1234567` as `1,234,567`.
fn grouped(value: impl Display) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn human_count(value: u64) -> String {
    if value < 1_000_000 { grouped(value) } else { format!("{} ({})", grouped(value), human(value as f64)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Histogram;

    fn histogram(counts: impl IntoIterator<Item = (u64, u64)>) -> Vec<Level> {
        let mut histogram = Histogram::default();
        counts.into_iter().for_each(|(value, count)| histogram.add(value, count));
        levels(&histogram)
    }

    #[test]
    fn few_levels_have_a_row_each() {
        let labels: Vec<_> = rows(&histogram([(1, 5), (2, 3), (1_000_000, 1)])).iter().map(Row::label).collect();
        assert_eq!(labels, ["1", "2", "1000000"]);
        assert!(rows(&[]).is_empty());
    }

    #[test]
    fn many_levels_are_grouped_and_nothing_is_lost() {
        for levels in [
            histogram((0..5000).map(|v| (v, 1 + v % 7))),
            // The bulk in a few levels, and a thousand outliers far away.
            histogram((0..8).map(|v| (v, 1_000_000)).chain((999_000..1_000_000).map(|v| (v, 1)))),
            histogram((0..1000).map(|v| (v << 53, 1))),
        ] {
            let rows = rows(&levels);
            assert!((2..=MAX_ROWS).contains(&rows.len()), "{} rows", rows.len());
            assert_eq!(rows.iter().map(|r| r.count).sum::<u128>(), levels[0].at_least);
            assert!(rows.windows(2).all(|w| w[0].high < w[1].low && w[0].at_least - w[0].count == w[1].at_least));
        }
        let rows = rows(&histogram((0..8).map(|v| (v, 1_000_000)).chain((999_000..1_000_000).map(|v| (v, 1)))));
        assert_eq!(rows.len(), 9, "an outlier leaves the bulk its rows");
    }

    #[test]
    fn numbers_keep_their_columns() {
        assert_eq!([1.0, 0.25, 1e-4, 9.99e-5, 1e-300].map(probability).map(|p| p.len()), [9, 9, 9, 7, 9]);
        assert_eq!(probability(9.999e-5), "1.00e-4");
        assert_eq!(
            [0.0, 1.5, 1234.5678, 1e-9, 2.5e12].map(significant),
            ["0", "1.500000", "1234.568", "1.000000e-9", "2.500000e12"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((bar(1.0, 4), bar(0.0001, 4), bar(0.53, 4)), ("████".into(), "▏".into(), "██▏".into()));
    }
}
