//! `leakybins report FILE`: the result of a journal.

use super::exit::{Exit, Refused};
use super::journal::{describe, warn_if_torn};
use super::output::Output;
use crate::journal::{Contents, Header, JournalError, Kind, Subject};
use crate::report::Report;
use crate::stats::estimate::Band;
use crate::stats::interval::Confidence;
use crate::{run, tail};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  leakybins report results.jsonl
  leakybins report results.jsonl --confidence 0.99 --format json -o result.json --plot result.svg

The same blocks give the same report, byte for byte, whatever computed them, in however many sittings or shards. A journal
that is not complete is reported for the blocks that are there, with a warning.";

/// Arguments of `leakybins report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// Journal, as `run --out`, `tail --out` or `merge` writes it; one that is being written may be read
    #[arg(value_name = "FILE")]
    journal: PathBuf,
    /// Confidence of the intervals
    #[arg(long, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Of a `run`: whether the intervals of P(max load >= k) hold each for itself or all at once
    #[arg(long, value_enum, default_value_t)]
    band: Band,
    #[command(flatten)]
    output: Output,
}

/// Reports the blocks that are there.
pub(super) fn run(arguments: &ReportArgs) -> anyhow::Result<Exit> {
    let ReportArgs { journal, confidence, band, output } = arguments;
    let confidence = Confidence::new(*confidence)?;
    let destination = output.open(&[])?;
    destination.keep_off(journal)?;
    match Kind::of(journal)?.unwrap_or(Kind::Run) {
        Kind::Run => {
            let contents = read::<Header>(arguments)?;
            let outcome = run::replay(&contents)?;
            let bins = contents.process().bins();
            destination.publish(&Report::new(contents.spec(), bins, &outcome, confidence, *band))?;
        }
        Kind::Tail => {
            if *band != Band::Pointwise {
                let reason = "the intervals of `tail` hold each for itself; leave --band out";
                return Err(Refused(reason.to_owned()).into());
            }
            let contents = read::<tail::Header>(arguments)?;
            let outcome = tail::replay(&contents, confidence)?;
            let spec = tail::Spec { confidence, ..contents.header().spec().clone() };
            destination.publish(&tail::report::Report::new(&spec, &outcome))?;
        }
    }
    Ok(Exit::Done)
}

/// Reads the journal, which has to hold something, and says what that is.
fn read<S: Subject>(ReportArgs { journal, output, .. }: &ReportArgs) -> anyhow::Result<Contents<S>> {
    let contents = Contents::read(journal)?;
    warn_if_torn(&contents);
    if contents.entries().len() == 0 {
        return Err(JournalError::Empty(contents.name().to_owned()).into());
    }
    if !output.quiet {
        tracing::info!("{}", describe(&contents));
    }
    Ok(contents)
}
