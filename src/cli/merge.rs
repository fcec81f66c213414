//! `leakybins merge FILE ..`: journals of one run as one, whichever command they are of.

use super::atomic::AtomicFile;
use super::exit::{Exit, Refused};
use super::journal::warn_if_torn;
use super::output::file;
use super::print;
use crate::journal::{Contents, Header, Journal, Kind, Merged, Subject, merge};
use crate::{run, tail};
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  leakybins merge shard-*.jsonl -o all.jsonl
  leakybins merge shard-*.jsonl --check || echo 'there is work left'

The merged file does not depend on the order of the journals, byte for byte: its blocks are sorted, and a block that several
of them have is kept once.";

/// Arguments of `leakybins merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MergeArgs {
    /// Journals of one run
    #[arg(value_name = "FILE", required = true)]
    journals: Vec<PathBuf>,
    /// File for the merged journal, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", value_parser = file, required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Print the ranges of replicas, or of islands, that are missing; the exit code is 3 where there are any
    #[arg(long)]
    check: bool,
}

/// Merges.
pub(super) fn run(arguments: &MergeArgs) -> anyhow::Result<Exit> {
    let first = arguments.journals.first().map(|path| Kind::of(path)).transpose()?.flatten();
    match first.unwrap_or(Kind::Run) {
        Kind::Run => merge_all::<Header>(arguments, |all| Ok(run::replay(all)?.reason != run::Reason::Incomplete)),
        Kind::Tail => merge_all::<tail::Header>(arguments, |all| {
            Ok(tail::replay(all, all.header().spec().confidence)?.reason != tail::Reason::Incomplete)
        }),
    }
}

/// Merges journals of one kind.
fn merge_all<S: Subject>(
    arguments: &MergeArgs,
    is_complete: impl FnOnce(&Contents<S>) -> anyhow::Result<bool>,
) -> anyhow::Result<Exit> {
    let MergeArgs { journals, output, check } = arguments;
    let destination = output.as_deref().map(destination::<S>).transpose()?;
    let read = journals.iter().map(|path| Contents::read(path));
    let contents = read.collect::<Result<Vec<_>, _>>()?;
    contents.iter().for_each(warn_if_torn);
    let merged = merge(contents)?.ok_or_else(|| Refused("no journal is named; name at least one".to_owned()))?;
    let Merged { contents, repeated } = merged;
    if repeated > 0 {
        let blocks = S::BLOCKS;
        tracing::info!(repeated, "note: {repeated} {blocks} were there before, with the same tally, and are kept once");
    }
    if let Some((mut file, _lock)) = destination {
        let written = contents.lines().try_for_each(|line| file.write_all(line.as_bytes()));
        let written = written.and_then(|()| file.commit());
        written.context("the merged journal could not be written; check the path and the space left")?;
    }
    if !check {
        return Ok(Exit::Done);
    }
    if is_complete(&contents)? {
        print(b"complete\n")?;
        return Ok(Exit::Done);
    }
    let missing: String = contents.missing().iter().map(|r| format!("missing {}..{}\n", r.start, r.end)).collect();
    print(missing.as_bytes())?;
    Ok(Exit::Incomplete)
}

/// The file to write, and the journal that it replaces, if there is one: nobody must be writing it.
fn destination<S: Subject>(path: &Path) -> anyhow::Result<(AtomicFile, Option<Journal<S>>)> {
    let replaced = path.is_file().then(|| Journal::open(path)).transpose()?;
    Ok((AtomicFile::create(path)?, replaced))
}
