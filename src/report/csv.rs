//! CSV: the levels as one tidy table, a row a level seen.
//!
//! | column | meaning |
//! |---|---|
//! | `observable` | `max_load` (values are sampled rounds), `load_per_bin` (values are bins of sampled rounds), or a further histogram of the process |
//! | `value` | the load |
//! | `count` | how often it was seen, exact; of bins it may pass 2^64 in a run on profiles |
//! | `fraction` | `count` over all values of the observable |
//! | `exceedance` | fraction of the values that are at least `value` |
//! | `low`, `high` | limits of its interval; `max_load` only, empty where one replica shows no error |
//! | `theory` | predicted stationary exceedance; empty where there is none |
//!
//! Levels ascend; levels never seen have no row, but for the first one above all max loads: its `count` is 0 and `high`
//! bounds it. The specification is not part of it: keep the command, or use [JSON](super::json).

use super::Report;
use crate::process::ObservableKind;
use std::io;

/// Writes the table.
///
/// # Errors
/// Those of the CSV writer, which has none in memory.
pub(super) fn render(report: &Report<'_>) -> io::Result<Vec<u8>> {
    let Report { spec, estimates, theory, outcome, .. } = report;
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["observable", "value", "count", "fraction", "exceedance", "low", "high", "theory"])?;
    let samples = outcome.tally.samples() as f64;
    for level in &estimates.levels {
        let limits = level.estimate.map(|estimate| estimate.interval);
        table.serialize((
            "max_load",
            level.k,
            level.samples,
            level.samples as f64 / samples,
            level.reached.hits as f64 / samples,
            limits.map(|limits| limits.low),
            limits.map(|limits| limits.high),
            theory.as_ref().map(|theory| theory.bins.max_exceedance(level.k)),
        ))?;
    }
    let loads = &outcome.tally.load_per_bin;
    let total = loads.total() as f64;
    for (load, count, at_least) in loads.levels() {
        let predicted = theory.as_ref().map(|theory| theory.bins.load_exceedance(load));
        let none = None::<f64>;
        table.serialize((
            "load_per_bin",
            load,
            count,
            count as f64 / total,
            at_least as f64 / total,
            none,
            none,
            predicted,
        ))?;
    }
    let histograms = (spec.process.observables().iter()).filter(|of| of.kind == ObservableKind::Histogram);
    for (observable, counts) in histograms.zip(&outcome.tally.further.histograms) {
        let total = counts.total() as f64;
        for (value, count, at_least) in counts.levels() {
            let none = None::<f64>;
            table.serialize((
                observable.name,
                value,
                count,
                count as f64 / total,
                at_least as f64 / total,
                none,
                none,
                none,
            ))?;
        }
    }
    table.into_inner().map_err(csv::IntoInnerError::into_error)
}
