//! Journals, as flags and for people.

use super::exit::{Exit, Refused, Resumable};
use super::output::{Destination, Output, file};
use crate::journal::{Contents, Header, Journal, JournalError, Subject};
use crate::run::Shard;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Journal")]
pub(super) struct JournalFlags {
    /// File that each finished block is added to; with the same parameters the run goes on where that file ends
    #[arg(long, global = true, value_name = "FILE", value_parser = file)]
    out: Option<PathBuf>,
    /// Compute part I of N only, of the same journal on each machine; auto: the part that SLURM or Kubernetes name
    #[arg(long, global = true, value_name = "I/N|auto", value_parser = part)]
    shard: Option<Part>,
}

/// Which part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Of(Shard),
    Auto,
}

fn part(text: &str) -> Result<Part, String> {
    match text {
        "auto" => Ok(Part::Auto),
        _ => text.parse().map(Part::Of),
    }
}

/// A run with a journal.
pub(super) struct Journaled<S: Subject = Header> {
    pub(super) journal: Journal<S>,
    pub(super) shard: Shard,
    quiet: bool,
}

/// How many of the wanted blocks are there.
pub(super) struct Progressed {
    pub(super) done: u64,
    pub(super) wanted: u64,
    /// Units of those that are not.
    pub(super) left: u64,
}

impl JournalFlags {
    /// The file, where there is one.
    pub(super) fn out(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    /// Opens the journal, if one is asked for. `stops` says whether there is a rule for stopping, instead of which a shard
    /// has the flag `most`.
    pub(super) fn open<S: Subject>(
        &self,
        (stops, most): (bool, &str),
        destination: &Destination,
        output: &Output,
    ) -> anyhow::Result<Option<Journaled<S>>> {
        let Some(path) = self.out() else {
            if self.shard.is_some() {
                let reason = "a shard alone is no result (others merge it); add --out FILE for its journal";
                return Err(Refused(reason.to_owned()).into());
            }
            return Ok(None);
        };
        let shard = match self.shard {
            None => Shard::WHOLE,
            Some(Part::Of(shard)) => shard,
            Some(Part::Auto) => Shard::from_environment(|name| std::env::var(name).ok())?,
        };
        if shard != Shard::WHOLE && stops {
            let units = S::UNITS;
            return Err(Refused(format!(
                "rules for stopping cannot go with --shard (a rule looks at the first {units}, and no shard has all of \
                 them); give {most} instead"
            ))
            .into());
        }
        destination.keep_off(path)?;
        Ok(Some(Journaled { journal: Journal::open(path)?, shard, quiet: output.quiet }))
    }

    /// The seed of a journal that has begun.
    pub(super) fn begun_seed<S: Subject>(&self) -> Result<Option<u64>, JournalError> {
        let begun = self.out().filter(|path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0));
        begun.map(|path| Contents::<S>::read(path).map(|contents| contents.header().seed())).transpose()
    }

    /// Exit code of a run that a signal ends.
    pub(super) fn when_interrupted(&self) -> Exit {
        if self.out.is_some() { Exit::Resumable } else { Exit::Interrupted }
    }
}

impl<S: Subject> Journaled<S> {
    /// The seed of a journal that has begun, which is said. A shard needs one: its own would make it another run.
    pub(super) fn seed(&self) -> Result<Option<u64>, Refused> {
        let Some(header) = self.journal.header() else {
            if self.shard != Shard::WHOLE {
                let reason = "all shards of a run have the same seed, and a fresh one is another each time; add --seed";
                return Err(Refused(reason.to_owned()));
            }
            return Ok(None);
        };
        let seed = header.seed();
        tracing::info!(seed, "seed: {seed} (of the journal)");
        Ok(Some(seed))
    }

    /// Begins the journal of `header`, or goes on with it.
    pub(super) fn begin(&mut self, header: S) -> Result<(), JournalError> {
        self.journal.begin(header)?;
        warn_if_torn(self.contents());
        let Progressed { done, wanted, .. } = self.progress();
        if !self.quiet {
            let of = if self.shard == Shard::WHOLE { String::new() } else { format!(" of shard {}", self.shard) };
            let (name, blocks) = (self.contents().name(), S::BLOCKS);
            tracing::info!(name, done, wanted, "journal: {name}: {done} of {wanted} {blocks}{of} are there");
        }
        Ok(())
    }

    pub(super) fn progress(&self) -> Progressed {
        let mut progress = Progressed { done: 0, wanted: 0, left: 0 };
        for (number, block) in (0..).zip(self.contents().blocks()) {
            if self.shard.owns(number) {
                let is_done = self.contents().entry(&block).is_some();
                progress.wanted += 1;
                progress.done += u64::from(is_done);
                progress.left += if is_done { 0 } else { block.end - block.start };
            }
        }
        progress
    }

    /// What is said where a signal ends it.
    pub(super) fn interrupted(&self) -> Resumable {
        let Progressed { done, wanted, .. } = self.progress();
        Resumable(format!("{done} of {wanted} {} are in {}, and no result yet", S::BLOCKS, self.contents().name()))
    }

    /// What it holds.
    pub(super) fn contents(&self) -> &Contents<S> {
        self.journal.contents()
    }
}

/// Says where a journal ends too early.
pub(super) fn warn_if_torn<S: Subject>(contents: &Contents<S>) {
    if contents.is_torn() {
        tracing::warn!("the last line of {} is not whole and left out: its block is missing", contents.name());
    }
}

/// How long the blocks of a journal took, and what computed them.
pub(super) fn describe<S: Subject>(contents: &Contents<S>) -> String {
    let mut machines: BTreeMap<String, usize> = BTreeMap::new();
    let mut elapsed = Duration::ZERO;
    for entry in contents.entries() {
        let adapter = entry.machine.adapter.iter().map(|adapter| format!(", {adapter}"));
        let machine = std::iter::once(entry.machine.backend.clone()).chain(adapter).collect();
        *machines.entry(machine).or_default() += 1;
        elapsed += entry.elapsed;
    }
    let machines: Vec<_> = machines.into_iter().map(|(machine, blocks)| format!("{blocks} by {machine}")).collect();
    format!("{}: {}; {:.3} s in all", S::BLOCKS, machines.join("; "), elapsed.as_secs_f64())
}
