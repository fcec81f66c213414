//! CSV: the histograms as one tidy table, a row a level seen.
//!
//! | column | meaning |
//! |---|---|
//! | `observable` | `max_load` (values are sampled rounds) or `load_per_bin` (values are bins of sampled rounds) |
//! | `value` | the load |
//! | `count` | how often it was seen, exact |
//! | `fraction` | `count` over all values of the observable |
//! | `exceedance` | fraction of the values that are at least `value` |
//!
//! Levels ascend; levels never seen have no row. The specification is not part of it: keep the command, or use
//! [JSON](super::json).

use super::{Report, levels};
use std::io;

/// Writes the table.
///
/// # Errors
/// Those of the CSV writer, which has none in memory.
pub(super) fn render(report: &Report<'_>) -> io::Result<Vec<u8>> {
    let tally = &report.outcome.tally;
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["observable", "value", "count", "fraction", "exceedance"])?;
    for (observable, histogram) in [("max_load", &tally.max_load), ("load_per_bin", &tally.load_per_bin)] {
        let total = histogram.total() as f64;
        for level in levels(histogram) {
            let (fraction, exceedance) = (level.count as f64 / total, level.at_least as f64 / total);
            table.serialize((observable, level.value, level.count, fraction, exceedance))?;
        }
    }
    table.into_inner().map_err(csv::IntoInnerError::into_error)
}
