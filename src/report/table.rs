//! The result for people: at most 80 columns.

use super::estimates::{Estimates, Mean};
use super::{Report, WIDTH, human, wrapped};
use crate::backend::Machine;
use crate::process::{Measure, Observable, ObservableKind, ProcessSpec};
use crate::rng::STREAM_VERSION;
use crate::run::{Reason, Stopping};
use crate::stats::Histogram;
use crate::stats::estimate::{Band, Estimate};
use crate::theory::Prediction;
use serde_json::{Map, Value};
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
    let Report { spec, outcome, bins, ref estimates, ref theory } = *report;
    let (tally, schedule) = (&outcome.tally, &spec.schedule);
    let (samples, replicas) = (tally.samples(), tally.replicas);

    let name = match schedule.measure {
        Measure::Pre => "pre",
        Measure::Post => "post",
    };
    let measure = spec.process.measured(schedule.measure).map_or(String::new(), |point| format!(" ({point})"));
    let sampling = [
        format!("replicas {replicas}"),
        format!("rounds {}", schedule.rounds),
        format!("burn-in {}", schedule.burn_in),
        format!("every {}", schedule.every),
        format!("loads-every {}", schedule.loads_every),
        format!("measure {name}{measure}"),
    ];
    let thrown = format!("{} thrown", human_count(tally.flow.arrived));
    let balls = match &outcome.machine {
        None => vec![thrown],
        Some(_) => vec![
            format!("{thrown} in {:.3} s", outcome.elapsed.as_secs_f64()),
            format!("{} balls/s", human(report.balls_per_second())),
        ],
    };
    field(out, "process", &[spec.process.name().to_owned()])?;
    field(out, "parameters", &parameters(&spec.process))?;
    field(out, "sampling", &sampling)?;
    if let Some(stopping) = &spec.stopping {
        field(out, "stopping", &rules(report, stopping))?;
    }
    field(out, "seed", &[spec.seed.to_string()])?;
    field(
        out,
        "samples",
        &[format!("{} rounds", grouped(samples)), format!("{} a replica", grouped(samples / replicas))],
    )?;
    field(out, "balls", &balls)?;
    if let Some(Machine { backend, adapter }) = &outcome.machine {
        field(out, "backend", std::slice::from_ref(backend))?;
        let adapter = adapter.as_deref().unwrap_or("none");
        writeln!(out, "{:<12}{}", "adapter", wrapped(adapter.split(' '), " ", 12))?;
    }
    let stream = match outcome.stream.profile_version() {
        Some(version) => format!("profile stream {version}"),
        None => format!("stream {STREAM_VERSION}"),
    };
    field(out, "version", &[format!("leakybins {}", env!("CARGO_PKG_VERSION")), stream])?;

    let n = bins as f64;
    let percent = percent(estimates.confidence.level());
    writeln!(
        out,
        "\n{:<14}{:>11}{:>22}{:>11}{:>11}{:>11}",
        "",
        "mean",
        format!("{percent} % interval"),
        "effective",
        "autocorr.",
        "theory"
    )?;
    writeln!(out, "{:<14}{:>11}{:>11}{:>11}{:>11}{:>11}", "", "", "from", "to", "samples", "rounds")?;
    let predicted = |of: &dyn Fn(&Prediction) -> f64| theory.as_ref().map(of);
    let mut mean = |name: &str, mean: &Mean, scale: f64, theory| summary(out, name, estimates, mean, scale, theory);
    mean("max load", &estimates.max_load, 1.0, predicted(&|theory| theory.bins.mean_max()))?;
    mean("load per bin", &estimates.total_load, n, predicted(&|theory| theory.bins.mean_load()))?;
    mean("empty fraction", &estimates.empty_bins, n, predicted(&|theory| theory.bins.empty_fraction()))?;
    for (observable, of) in of_kind(&spec.process, ObservableKind::Number).zip(&estimates.further) {
        let known = theory.as_ref().and_then(|theory| theory.further_mean(observable.name));
        mean(&observable.name.replace('_', " "), of, 1.0, known)?;
    }

    let band = match estimates.band {
        Band::Pointwise => "each for itself",
        Band::Simultaneous => "all at once",
    };
    writeln!(out, "\nmax load M of a round, in balls; {percent} % intervals, {band}")?;
    max_load(out, estimates, theory.as_ref())?;
    writeln!(out, "\nload L of a bin, in balls")?;
    let loads = levels_of(&tally.load_per_bin);
    if loads.is_empty() {
        writeln!(out, "  not recorded: no sampled round was asked for its loads (see --loads-every)")?;
    } else {
        let total = tally.load_per_bin.total() as f64;
        let fraction = |row: &Row| probability(row.count as f64 / total);
        let theory = |row: &Row| theory.as_ref().map_or(String::new(), |t| reached(t.bins.load_exceedance(row.low)));
        law(out, &loads, ["bins", "P(L >= k)"], &[("fraction", &fraction), ("theory", &theory)])?;
    }
    for (observable, counts) in of_kind(&spec.process, ObservableKind::Histogram).zip(&tally.further.histograms) {
        let heading = format!("{}: {}", observable.name.replace('_', " "), observable.meaning);
        writeln!(out, "\n{}", wrapped(heading.split(' '), " ", 0))?;
        law(out, &levels_of(counts), ["count", "P(X >= k)"], &[])?;
    }

    writeln!(out)?;
    for note in notes(report, &percent) {
        writeln!(out, "{}", wrapped(note.split(' '), " ", 0))?;
    }
    Ok(())
}

/// The further observables of this kind, in the order of their places.
pub(crate) fn of_kind(process: &ProcessSpec, kind: ObservableKind) -> impl Iterator<Item = &'static Observable> {
    process.observables().iter().filter(move |observable| observable.kind == kind)
}

/// The levels of a histogram, of which no error is known.
fn levels_of(histogram: &Histogram) -> Vec<Level> {
    let level = |(value, count, at_least)| Level { value, count, at_least, estimate: None };
    histogram.levels().map(level).collect()
}

/// What the numbers rest on.
fn notes(report: &Report<'_>, percent: &str) -> Vec<String> {
    let Report { estimates, theory, outcome, .. } = report;
    let (samples, replicas) = (outcome.tally.samples(), outcome.tally.replicas);
    let evidence = if samples == replicas {
        "One sample a replica: the samples are independent; Clopper-Pearson intervals.".to_owned()
    } else {
        format!(
            "Fractions are time averages: the {} sampled rounds of a replica are correlated. Intervals rest on the \
             spread of the {} replica{} alone.",
            grouped(samples / replicas),
            grouped(replicas),
            if replicas == 1 { "" } else { "s" },
        )
    };
    let band = match estimates.band {
        Band::Pointwise => format!("Each interval for itself covers with {percent} %."),
        Band::Simultaneous => format!("The intervals of all P(M >= k) together cover with {percent} %."),
    };
    let mut notes = vec![format!("{evidence} {band}")];
    if let Some(Prediction { load_basis, max_basis, .. }) = theory {
        let (load, max) = (load_basis.meaning(), max_basis.meaning());
        notes.push(format!("Theory is of the stationary state. Load: {load}. Max load: {max}."));
    }
    notes
}

/// The rules for stopping, and what ended the run.
fn rules(report: &Report<'_>, stopping: &Stopping) -> Vec<String> {
    let Stopping { at, rel_err, max_hits, max_time, .. } = *stopping;
    let of = at.map_or("the mean max load".to_owned(), |k| format!("P(M >= {k})"));
    let reached = report.rel_err().map_or("unknown".to_owned(), |e| format!("{e:.4}"));
    let hits = at.map_or(0, |k| report.outcome.tally.max_load.at(k).hits);
    let ended = match report.outcome.reason {
        Reason::Replicas => "all replicas are done".to_owned(),
        Reason::Incomplete => "not ended yet".to_owned(),
        reason => format!("ended by {} after {} replicas", reason.name(), grouped(report.outcome.tally.replicas)),
    };
    [
        rel_err.map(|e| format!("rel-err {e} of {of}: {reached}")),
        max_hits.map(|most| format!("max-hits {most} of M >= {}: {hits}", at.unwrap_or(0))),
        max_time.map(|seconds| format!("max-time {seconds} s")),
        Some(ended),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The process's parameters by name, as the specification has them.
pub(crate) fn named_parameters(process: &ProcessSpec) -> Map<String, Value> {
    match serde_json::to_value(process).expect("parameters are plain values") {
        Value::Object(mut spec) => match spec.remove("parameters") {
            Some(Value::Object(named)) => named,
            _ => unreachable!("a process has named parameters"),
        },
        _ => unreachable!("a specification is an object"),
    }
}

/// The same as texts, for people.
pub(crate) fn parameters(process: &ProcessSpec) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    named_parameters(process).iter().map(|(name, value)| format!("{name} {}", text(value))).collect()
}

/// A header line, wrapped between its parts.
pub(crate) fn field(out: &mut String, name: &str, parts: &[String]) -> fmt::Result {
    writeln!(out, "{name:<12}{}", wrapped(parts.iter().map(String::as_str), ", ", 12))
}

/// One line of the summary, in units of `scale`; what is not known stays blank.
fn summary(
    out: &mut String,
    name: &str,
    estimates: &Estimates,
    mean: &Mean,
    scale: f64,
    theory: Option<f64>,
) -> fmt::Result {
    let estimate = mean.estimate;
    let precision = estimate.and_then(|estimate| estimate.precision);
    let cells = [
        mean.value.map(|mean| mean / scale),
        estimate.map(|estimate| estimate.interval.low / scale),
        estimate.map(|estimate| estimate.interval.high / scale),
    ];
    let mut line = format!("{name:<14}");
    let rounds = estimates.autocorrelation_rounds(mean).map(|rounds| format!("{rounds:.1}"));
    let effective = precision.map(|precision| human(precision.effective_samples));
    for cell in cells.map(|cell| cell.map(significant)).into_iter().chain([effective, rounds, theory.map(significant)])
    {
        write!(line, "{:>11}", cell.unwrap_or_default())?;
    }
    writeln!(out, "{}", line.trim_end())
}

/// The levels of the max load, the first one above all included where it has a bound.
fn max_load(out: &mut String, estimates: &Estimates, theory: Option<&Prediction>) -> fmt::Result {
    let levels: Vec<_> = (estimates.levels.iter())
        .filter(|level| level.samples > 0 || level.estimate.is_some())
        .map(|level| Level {
            value: level.k,
            count: level.samples.into(),
            at_least: level.reached.hits,
            estimate: level.estimate,
        })
        .collect();
    let limit = |row: &Row, of: fn(&Estimate) -> f64| row.estimate.as_ref().map_or(String::new(), |e| reached(of(e)));
    let low = |row: &Row| limit(row, |estimate| estimate.interval.low);
    let high = |row: &Row| limit(row, |estimate| estimate.interval.high);
    let theory = |row: &Row| theory.map_or(String::new(), |theory| reached(theory.bins.max_exceedance(row.low)));
    law(out, &levels, ["rounds", "P(M >= k)"], &[("from", &low), ("to", &high), ("theory", &theory)])
}

/// A level of a histogram with the count of all values that reach it.
struct Level {
    value: u64,
    count: u128,
    at_least: u128,
    estimate: Option<Estimate>,
}

/// A column of a law beside its counts and exceedances: its name, and its cells.
type Column<'a> = (&'static str, &'a dyn Fn(&Row) -> String);

/// The rows of a histogram: level, count, exceedance, what else is known, bar.
fn law(out: &mut String, levels: &[Level], [values, exceedance]: [&str; 2], columns: &[Column<'_>]) -> fmt::Result {
    let total = levels.first().map_or(0, |l| l.at_least) as f64;
    let rows = rows(levels);
    let labels: Vec<String> = rows.iter().map(Row::label).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0).max(3);
    let counts = rows.iter().map(|r| grouped(r.count).len()).max().unwrap_or(0).max(values.len());
    let peak = rows.iter().map(|r| r.count).max().unwrap_or(1) as f64;
    let mut head = format!("  {:>width$}  {values:>counts$}  {exceedance:>9}", "k");
    for (name, _) in columns {
        write!(head, "  {name:>9}")?;
    }
    let room = WIDTH.saturating_sub(head.chars().count() + 3).min(BAR);
    writeln!(out, "{head}")?;
    for (row, label) in rows.iter().zip(&labels) {
        let reach = reached(row.at_least as f64 / total);
        let mut line = format!("  {label:>width$}  {:>counts$}  {reach:>9}", grouped(row.count));
        for (_, cell) in columns {
            write!(line, "  {:>9}", cell(row))?;
        }
        let bar = if row.count > 0 { bar(row.count as f64 / peak, room) } else { String::new() };
        writeln!(out, "{}", format!("{line}  {bar}").trim_end())?;
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
    estimate: Option<Estimate>,
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
                row.count += level.count;
            }
            _ => {
                let Level { value, count, at_least, estimate } = *level;
                rows.push(Row { low: value, high: value, count, at_least, estimate });
            }
        }
        last = Some(number);
    }
    rows
}

/// An exceedance in nine columns; one that is 0 is exactly so, or far below what is computed.
pub(crate) fn reached(p: f64) -> String {
    const UNSEEN: f64 = 1e-30;
    match p {
        0.0 => "0".to_owned(),
        p if p < UNSEEN => format!("<{UNSEEN:e}"),
        p => probability(p),
    }
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
    digits(value, 7)
}

/// Five significant digits, or three and a power of ten, in at most eight columns.
pub(crate) fn five_digits(value: f64) -> String {
    match value.abs() {
        v if value.fract() == 0.0 && v < 1e7 => format!("{value}"),
        v if (1e-2..1e7).contains(&v) => format!("{value:.*}", (4 - v.log10().floor() as i32).max(0) as usize),
        _ => format!("{value:.2e}"),
    }
}

/// A confidence in percent.
pub(crate) fn percent(confidence: f64) -> String {
    // The product of a decimal has digits that it has not.
    let text = format!("{:.10}", 100.0 * confidence);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// So many significant digits; a whole number as it is.
fn digits(value: f64, digits: usize) -> String {
    if value.fract() == 0.0 && value.abs() < 1e10 {
        return format!("{value}");
    }
    match value.abs().log10().floor() as i32 {
        d @ -4..=6 => format!("{value:.*}", (digits as i32 - 1 - d).max(0) as usize),
        _ => format!("{value:.*e}", digits - 1),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(value: impl Display) -> String {
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

fn human_count(value: u128) -> String {
    if value < 1_000_000 { grouped(value) } else { format!("{} ({})", grouped(value), human(value as f64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: impl IntoIterator<Item = (u64, u128)>) -> Vec<Level> {
        let mut histogram = Histogram::default();
        counts.into_iter().for_each(|(value, count)| histogram.add(value, count));
        levels_of(&histogram)
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
            histogram((0..5000).map(|v| (v, 1 + u128::from(v % 7)))),
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
