//! A sweep as JSON (schema 1), CSV and table.
//!
//! # JSON
//! One object, its fields in this order:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"sweep"` |
//! | `version`, `stream_version` | string, integer | of leakybins, of the drawn bits |
//! | `process` | string | the process |
//! | `seed` | integer | seed of the sweep: that of the first point |
//! | `measure` | string | `"pre"`: loads before the deletions of a round, or `"post"`: at its end |
//! | `confidence` | number | probability with which an interval covers, each for itself |
//! | `complete` | boolean | false: the sweep was interrupted, and these are the points finished before |
//! | `elapsed_s` | number | wall time of all points in seconds |
//! | `points` | list | see below, in the order of the grid |
//! | `fits` | list | see below |
//! | `exponents` | list | d ln E[max load] / d ln(1/(1 - lambda)) between neighbours: `d`, `n`, `lambda_low`, `lambda_high`, `exponent`, `error` |
//!
//! A point: the process's parameters (for `leaky` `n`, `lambda`, `d`, `arrivals`, `start`), `seed`, `replicas`, `rounds`,
//! `burn_in`, `every`, `profile_stream_version` (absent unless the point was run on profiles), `samples`, `balls`, `short` (true: sampled for less than 20 autocorrelation times, so that the
//! start may show), and
//!
//! | field | fields | values |
//! |---|---|---|
//! | `max_load` | a mean, `quantiles` | largest load of a sampled round; `quantiles` is a list of [q, load] |
//! | `load` | a mean | load of a bin, in balls |
//! | `empty_fraction` | a mean | fraction of bins of load 0 |
//! | numbers that the process observes beside these, by name | a mean | for `capped` `pool`: balls in the pool |
//! | `exceedance` | list of `k`, `p`, `low`, `high`, `method` | P(max load >= k) at the levels asked for |
//! | `theory` | `load_basis`, `max_basis`, `mean_load`, `empty_fraction`, `mean_max`, `quantiles`, `exceedance`, `further` (means of the further numbers by name, where they are known; else absent) | what is known, or null |
//!
//! Means and exceedances are those of a [run](crate::report::json). `seed`, `replicas`, `rounds`, `burn_in`, `every` and
//! the parameters in a `leakybins run` with `--loads-every 0` give a point again, on `--backend profile` if the point
//! was run on it.
//!
//! A fit is that of the growth that the paper's bounds allow, not of a law that is known to hold: a tiny `p_value` says
//! that the max load follows another one. It is the line of least weighted squares through the mean max loads of one (d, n), over the points with lambda not
//! below `--fit-from`: `d`, `n`, `x` (the abscissa as a formula), `points`, `intercept`, `intercept_error`, `slope`,
//! `slope_error`, `chi2`, `degrees_of_freedom`, `p_value` (of the goodness of fit). There is one where three points or
//! more have an error.
//!
//! # CSV
//! A row a point: the parameters, `seed`, `replicas`, `rounds`, `burn_in`, `every`, `samples`, `short`; then for `max_load`,
//! `load`, `empty_fraction` and the further numbers the mean, `_se` (standard error), `_low`, `_high` and `_theory`; `max_load_q50`, `_q95`,
//! `_q99`, `_q999`; and `p_K`, `p_K_low`, `p_K_high`, `p_K_theory` for each level K asked for. Fits are in the JSON only.

use super::{Exponent, Fit, Point, Shape, laws};
use crate::process::{Measure, Observable, ObservableKind};
use crate::report::json::{Exceedance, MeanWithError};
use crate::report::{Mean, Render, five_digits, named_parameters, of_kind, percent, pretty, wrapped};
use crate::rng::STREAM_VERSION;
use crate::stats::estimate::{self, Sampling};
use crate::stats::interval::Confidence;
use crate::theory::{Basis, Prediction};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io;

/// Version of the format described on this page.
pub const SCHEMA: u32 = 1;
/// Quantiles of the max load that are reported.
const QUANTILES: [(f64, &str); 4] = [(0.5, "q50"), (0.95, "q95"), (0.99, "q99"), (0.999, "q999")];

/// A finished sweep, or as far as it came.
#[derive(Debug)]
pub struct Sweep {
    /// The points, in the order of the grid.
    pub points: Vec<Point>,
    /// Levels k whose P(max load >= k) is reported.
    pub levels: Vec<u64>,
    /// Confidence of all intervals.
    pub confidence: Confidence,
    /// Least lambda of the points that fits go through.
    pub fit_from: f64,
    /// Points of the grid.
    pub planned: usize,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    kind: &'static str,
    version: &'static str,
    stream_version: u32,
    process: &'static str,
    seed: u64,
    measure: Measure,
    confidence: f64,
    complete: bool,
    elapsed_s: f64,
    points: Vec<PointDocument>,
    fits: Vec<FitDocument>,
    exponents: Vec<ExponentDocument>,
}

#[derive(Serialize)]
struct PointDocument {
    #[serde(flatten)]
    parameters: Map<String, Value>,
    seed: u64,
    replicas: u64,
    rounds: u64,
    burn_in: u64,
    every: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_stream_version: Option<u32>,
    samples: u64,
    balls: u128,
    short: bool,
    max_load: MaxLoad,
    load: MeanWithError,
    empty_fraction: MeanWithError,
    #[serde(flatten)]
    further: BTreeMap<&'static str, MeanWithError>,
    exceedance: Vec<Exceedance>,
    theory: Option<Theory>,
}

#[derive(Serialize)]
struct MaxLoad {
    #[serde(flatten)]
    mean: MeanWithError,
    quantiles: Vec<(f64, u64)>,
}

#[derive(Serialize)]
struct Theory {
    load_basis: Basis,
    max_basis: Basis,
    mean_load: f64,
    empty_fraction: f64,
    mean_max: f64,
    quantiles: Vec<(f64, u64)>,
    exceedance: Vec<(u64, f64)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    further: BTreeMap<&'static str, f64>,
}

#[derive(Serialize)]
struct FitDocument {
    d: u64,
    n: u64,
    x: Shape,
    points: usize,
    intercept: f64,
    intercept_error: f64,
    slope: f64,
    slope_error: f64,
    chi2: f64,
    degrees_of_freedom: u64,
    p_value: Option<f64>,
}

#[derive(Serialize)]
struct ExponentDocument {
    d: u64,
    n: u64,
    lambda_low: f64,
    lambda_high: f64,
    exponent: f64,
    error: f64,
}

impl From<&Fit> for FitDocument {
    fn from(fit: &Fit) -> Self {
        let Fit { d, n, shape, points, line } = *fit;
        Self {
            d,
            n,
            x: shape,
            points,
            intercept: line.intercept.value,
            intercept_error: line.intercept.error,
            slope: line.slope.value,
            slope_error: line.slope.error,
            chi2: line.chi_square,
            degrees_of_freedom: line.degrees_of_freedom,
            p_value: line.p_value,
        }
    }
}

impl From<&Exponent> for ExponentDocument {
    fn from(exponent: &Exponent) -> Self {
        let Exponent { d, n, lambda: [lambda_low, lambda_high], exponent } = *exponent;
        Self { d, n, lambda_low, lambda_high, exponent: exponent.value, error: exponent.error }
    }
}

impl Point {
    fn bins(&self) -> f64 {
        self.spec.process.bins() as f64
    }

    fn mean(&self, mean: &Mean, scale: f64) -> MeanWithError {
        MeanWithError::new(&self.estimates, mean, scale)
    }

    fn exceedance(&self, k: u64, confidence: Confidence) -> Exceedance {
        let tally = &self.outcome.tally;
        let sampling = Sampling { replicas: tally.replicas, samples: self.spec.schedule.samples_per_replica() };
        let hits = tally.max_load.at(k);
        Exceedance::new(k, &hits, tally.samples(), estimate::exceedance(&hits, sampling, confidence).ok().as_ref())
    }

    fn quantiles(&self) -> Vec<(f64, u64)> {
        QUANTILES.iter().filter_map(|&(q, _)| Some((q, self.outcome.tally.max_load.quantile(q)?))).collect()
    }

    /// The numbers that the process observes beside those of all processes.
    fn numbers(&self) -> impl Iterator<Item = (&'static Observable, &Mean)> {
        of_kind(&self.spec.process, ObservableKind::Number).zip(&self.estimates.further)
    }

    fn document(&self, levels: &[u64], confidence: Confidence) -> PointDocument {
        let (tally, schedule, estimates) = (&self.outcome.tally, &self.spec.schedule, &self.estimates);
        PointDocument {
            parameters: named_parameters(&self.spec.process),
            seed: self.spec.seed,
            replicas: tally.replicas,
            rounds: schedule.rounds,
            burn_in: schedule.burn_in,
            every: schedule.every,
            profile_stream_version: self.outcome.stream.profile_version(),
            samples: tally.samples(),
            balls: tally.flow.arrived,
            short: self.is_short(),
            max_load: MaxLoad { mean: self.mean(&estimates.max_load, 1.0), quantiles: self.quantiles() },
            load: self.mean(&estimates.total_load, self.bins()),
            empty_fraction: self.mean(&estimates.empty_bins, self.bins()),
            further: self.numbers().map(|(observable, mean)| (observable.name, self.mean(mean, 1.0))).collect(),
            exceedance: levels.iter().map(|&k| self.exceedance(k, confidence)).collect(),
            theory: self.theory.as_ref().map(|theory| {
                let further = self.numbers().filter_map(|(of, _)| Some((of.name, theory.further_mean(of.name)?)));
                Theory::new(theory, levels, further.collect())
            }),
        }
    }
}

impl PointDocument {
    /// What theory says of a further number.
    fn known(&self, name: &str) -> Option<f64> {
        self.theory.as_ref()?.further.get(name).copied()
    }
}

impl Theory {
    fn new(theory: &Prediction, levels: &[u64], further: BTreeMap<&'static str, f64>) -> Self {
        let bins = &theory.bins;
        Self {
            load_basis: theory.load_basis,
            max_basis: theory.max_basis,
            mean_load: bins.mean_load(),
            empty_fraction: bins.empty_fraction(),
            mean_max: bins.mean_max(),
            quantiles: QUANTILES.iter().map(|&(q, _)| (q, bins.max_quantile(q))).collect(),
            exceedance: levels.iter().map(|&k| (k, bins.max_exceedance(k))).collect(),
            further,
        }
    }
}

impl Sweep {
    fn document(&self) -> Document {
        let first = self.points.first().map(|point| &point.spec);
        Document {
            schema: SCHEMA,
            kind: "sweep",
            version: env!("CARGO_PKG_VERSION"),
            stream_version: STREAM_VERSION,
            process: first.map_or("", |spec| spec.process.name()),
            seed: first.map_or(0, |spec| spec.seed),
            measure: first.map_or_else(Measure::default, |spec| spec.schedule.measure),
            confidence: self.confidence.level(),
            complete: self.points.len() == self.planned,
            elapsed_s: self.points.iter().map(|point| point.outcome.elapsed.as_secs_f64()).sum(),
            points: self.points.iter().map(|point| point.document(&self.levels, self.confidence)).collect(),
            fits: self.fits().iter().map(FitDocument::from).collect(),
            exponents: self.exponents().iter().map(ExponentDocument::from).collect(),
        }
    }

    /// The lines through the mean max loads.
    #[must_use]
    pub fn fits(&self) -> Vec<Fit> {
        laws::fits(&self.points, self.fit_from)
    }

    /// The local exponents.
    #[must_use]
    pub fn exponents(&self) -> Vec<Exponent> {
        laws::exponents(&self.points)
    }

    /// The columns that tell the points apart: the header, and a row for each point.
    fn columns(&self) -> (String, Vec<String>) {
        let labels: Vec<_> = self.points.iter().map(|point| point.spec.process.labels()).collect();
        let Some(first) = labels.first() else { return (String::new(), Vec::new()) };
        let width = |column: usize| {
            let cells = labels.iter().map(|row| row[column].1.len());
            cells.chain([first[column].0.len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..first.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            cells.zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(" ")
        };
        let head = line(&mut first.iter().map(|(name, _)| *name));
        (head, labels.iter().map(|row| line(&mut row.iter().map(|(_, cell)| cell.as_str()))).collect())
    }

    fn short(&self) -> usize {
        self.points.iter().filter(|point| point.is_short()).count()
    }

    fn to_csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        for (i, point) in self.points.iter().enumerate() {
            let row = Self::row(&point.document(&self.levels, self.confidence));
            if i == 0 {
                table.write_record(row.iter().map(|(name, _)| name))?;
            }
            table.write_record(row.iter().map(|(_, cell)| match cell {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }))?;
        }
        table.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    /// A point as a row: names and cells.
    fn row(point: &PointDocument) -> Vec<(String, Value)> {
        let mut row: Vec<(String, Value)> = Vec::new();
        row.extend(point.parameters.clone());
        let counts = [
            ("seed", point.seed),
            ("replicas", point.replicas),
            ("rounds", point.rounds),
            ("burn_in", point.burn_in),
            ("every", point.every),
            ("samples", point.samples),
        ];
        row.extend(counts.map(|(name, count)| (name.to_owned(), count.into())));
        row.push(("short".to_owned(), point.short.into()));
        let theory = point.theory.as_ref();
        let of_all = [
            ("max_load", &point.max_load.mean, theory.map(|theory| theory.mean_max)),
            ("load", &point.load, theory.map(|theory| theory.mean_load)),
            ("empty_fraction", &point.empty_fraction, theory.map(|theory| theory.empty_fraction)),
        ];
        let further = point.further.iter().map(|(&name, mean)| (name, mean, point.known(name)));
        for (name, mean, theory) in of_all.into_iter().chain(further) {
            let MeanWithError { mean, standard_error, low, high, .. } = *mean;
            let cells = [("", mean), ("_se", standard_error), ("_low", low), ("_high", high), ("_theory", theory)];
            row.extend(cells.map(|(suffix, value)| (format!("{name}{suffix}"), value.into())));
        }
        for (&(_, name), &(_, load)) in QUANTILES.iter().zip(&point.max_load.quantiles) {
            row.push((format!("max_load_{name}"), load.into()));
        }
        for (i, Exceedance { k, p, low, high, .. }) in point.exceedance.iter().enumerate() {
            row.push((format!("p_{k}"), (*p).into()));
            row.push((format!("p_{k}_low"), (*low).into()));
            row.push((format!("p_{k}_high"), (*high).into()));
            row.push((format!("p_{k}_theory"), theory.map(|theory| theory.exceedance[i].1).into()));
        }
        row
    }

    fn write_table(&self, out: &mut String) -> fmt::Result {
        let document = self.document();
        let percent = percent(document.confidence);
        let measured = self.points.first().and_then(|point| point.spec.process.measured(document.measure));
        let name = match document.measure {
            Measure::Pre => "pre",
            Measure::Post => "post",
        };
        let measure = format!("{name} ({})", measured.unwrap_or("unknown"));
        writeln!(out, "{:<12}{}, sweep", "process", document.process)?;
        writeln!(out, "{:<12}{} of {}", "points", self.points.len(), self.planned)?;
        writeln!(out, "{:<12}{measure}", "measure")?;
        writeln!(out, "{:<12}{}", "seed", document.seed)?;
        writeln!(out, "{:<12}{:.1} s", "time", document.elapsed_s)?;
        writeln!(out, "{:<12}leakybins {}, stream {STREAM_VERSION}\n", "version", document.version)?;

        let half = format!("+- {percent} %");
        let (head, labels) = self.columns();
        writeln!(
            out,
            "{head} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}",
            "mean max", half, "theory", "mean load", half, "theory"
        )?;
        for (point, label) in document.points.iter().zip(&labels) {
            let theory = point.theory.as_ref();
            let line = format!(
                "{label} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}{}",
                cell(point.max_load.mean.mean),
                half_width(&point.max_load.mean),
                cell(theory.map(|theory| theory.mean_max)),
                cell(point.load.mean),
                half_width(&point.load),
                cell(theory.map(|theory| theory.mean_load)),
                if point.short { " *" } else { "" },
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        self.further_tables(out, &document)?;
        self.levels_table(out, &document)?;
        self.fits_table(out, &document)?;
        if self.short() > 0 {
            let note = "* sampled for less than 20 autocorrelation times: the point leans on its start; --balls makes it longer";
            writeln!(out, "\n{}", wrapped(note.split(' '), " ", 2))?;
        }
        Ok(())
    }

    /// A table for each further number.
    fn further_tables(&self, out: &mut String, document: &Document) -> fmt::Result {
        let Some(first) = self.points.first() else { return Ok(()) };
        let (head, labels) = self.columns();
        let half = format!("+- {} %", percent(document.confidence));
        for (Observable { name, meaning, .. }, _) in first.numbers() {
            writeln!(out, "\n{}: {meaning}", name.replace('_', " "))?;
            writeln!(out, "{head} {:>8} {half:>8} {:>8}", "mean", "theory")?;
            for (point, label) in document.points.iter().zip(&labels) {
                let mean = &point.further[name];
                let line = format!(
                    "{label} {:>8} {:>8} {:>8}{}",
                    cell(mean.mean),
                    half_width(mean),
                    cell(point.known(name)),
                    if point.short { " *" } else { "" },
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }

    fn levels_table(&self, out: &mut String, document: &Document) -> fmt::Result {
        if self.levels.is_empty() {
            return Ok(());
        }
        let (head, labels) = self.columns();
        writeln!(out, "\n{head} {:>8} {:>9} {:>9} {:>9} {:>9}", "k", "P(M >= k)", "from", "to", "theory")?;
        for (point, label) in document.points.iter().zip(&labels) {
            for (i, level) in point.exceedance.iter().enumerate() {
                let cell = |p: Option<f64>| p.map_or_else(String::new, crate::report::reached);
                let line = format!(
                    "{label} {:>8} {:>9} {:>9} {:>9} {:>9}",
                    level.k,
                    cell(Some(level.p)),
                    cell(level.low),
                    cell(level.high),
                    cell(point.theory.as_ref().map(|theory| theory.exceedance[i].1)),
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }

    fn fits_table(&self, out: &mut String, document: &Document) -> fmt::Result {
        if document.fits.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nmean max load = a + b x over lambda >= {}, errors of one standard deviation", self.fit_from)?;
        for fit in &document.fits {
            let p_value = fit.p_value.map_or_else(String::new, |p| format!(", p = {}", five_digits(p)));
            let parts = [
                format!("d {}, n {}: x = {}", fit.d, fit.n, fit.x.formula()),
                format!("a = {} +- {}", five_digits(fit.intercept), five_digits(fit.intercept_error)),
                format!("b = {} +- {}", five_digits(fit.slope), five_digits(fit.slope_error)),
                format!("chi2 = {} for {}{p_value}", five_digits(fit.chi2), fit.degrees_of_freedom),
            ];
            writeln!(out, "  {}", wrapped(parts.iter().map(String::as_str), ", ", 4))?;
        }
        writeln!(out, "\nlocal exponent d ln E[max] / d ln(1/(1-lambda)) at the last two rates")?;
        let last = |exponent: &&ExponentDocument| {
            let of = |other: &&ExponentDocument| (other.d, other.n) == (exponent.d, exponent.n);
            document.exponents.iter().rfind(of).is_some_and(|last| last.lambda_low == exponent.lambda_low)
        };
        for exponent in document.exponents.iter().filter(last) {
            let ExponentDocument { d, n, exponent, error, .. } = exponent;
            writeln!(out, "  d {d}, n {n}: {} +- {}", five_digits(*exponent), five_digits(*error))?;
        }
        Ok(())
    }
}

/// A number, blank where it is not known.
fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, five_digits)
}

/// Half the length of a mean's interval.
fn half_width(mean: &MeanWithError) -> String {
    cell(mean.high.zip(mean.low).map(|(high, low)| 0.5 * (high - low)))
}

impl Render for Sweep {
    fn table(&self) -> String {
        let mut text = String::new();
        self.write_table(&mut text).expect("a string takes everything");
        text
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        pretty(&self.document())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        self.to_csv()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (done, short) = (self.points.len(), self.short());
        if done < self.planned {
            warnings.push(format!("the sweep was interrupted: {done} of {} points are done", self.planned));
        }
        if short > 0 {
            warnings.push(format!(
                "{short} of {done} points were sampled for less than 20 autocorrelation times and lean on their start; \
                 use more --balls"
            ));
        }
        warnings
    }
}
