//! Journals, as flags and for people.

use super::device::warn;
use super::exit::{Exit, Refused, Resumable};
use super::output::{Destination, Output, file};
use super::progress::{Progress, Show};
use super::run::seconds;
use crate::backend::{BackendError, Control, Pool};
use crate::journal::{Contents, Header, Journal, JournalError, MOST_LOADS, Snapshots};
use crate::run::{self, Outcome, Reason, RunError, Shard, Spec};
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    /// Keep a block that takes longer beside --out so often: seconds, or 90s, 10m [default: 5m]
    #[arg(long, global = true, value_name = "TIME", value_parser = snapshot_time)]
    snapshot_every: Option<Duration>,
}

fn snapshot_time(text: &str) -> Result<Duration, String> {
    let time = seconds(text)?;
    let positive = Duration::try_from_secs_f64(time).ok().filter(|time| !time.is_zero());
    positive.ok_or_else(|| format!("{text} is not a time between two snapshots; write e.g. 5m"))
}

/// Time between two snapshots of a block.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(300);

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
pub(super) struct Journaled {
    journal: Journal,
    shard: Shard,
    snapshots: Snapshots,
    /// Whether these were asked for by name.
    wants_snapshots: bool,
    show: Show,
    quiet: bool,
}

/// How many of the wanted blocks are there.
struct Progressed {
    done: u64,
    wanted: u64,
    /// Replicas of those that are not.
    left: u64,
}

impl JournalFlags {
    /// Opens the journal, if one is asked for; `dumps` says whether loads are.
    pub(super) fn open(
        &self,
        spec: &Spec,
        dumps: bool,
        destination: &Destination,
        output: &Output,
    ) -> anyhow::Result<Option<Journaled>> {
        let Some(path) = &self.out else {
            let reasons = [
                (self.shard.is_some(), "a shard alone is no result (others merge it); add --out FILE for its journal"),
                (self.snapshot_every.is_some(), "snapshots are kept beside a journal; add --out FILE for it"),
            ];
            if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
                return Err(Refused(reason.to_owned()).into());
            }
            return Ok(None);
        };
        let shard = match self.shard {
            None => Shard::WHOLE,
            Some(Part::Of(shard)) => shard,
            Some(Part::Auto) => Shard::from_environment(|name| std::env::var(name).ok())?,
        };
        if dumps {
            let reason = "--dump-loads cannot go with --out (a journal keeps tallies, so that a run that goes on has lost \
                          the loads of earlier blocks); leave one of them out";
            return Err(Refused(reason.to_owned()).into());
        }
        if shard != Shard::WHOLE && spec.stopping.is_some() {
            let reason = "rules for stopping cannot go with --shard (a rule looks at the first replicas, and no shard has \
                          all of them); give --replicas instead";
            return Err(Refused(reason.to_owned()).into());
        }
        destination.keep_off(path)?;
        let journal = Journal::open(path)?;
        let wants_snapshots = self.snapshot_every.is_some();
        let snapshots = Snapshots::beside(path, self.snapshot_every.unwrap_or(SNAPSHOT_EVERY));
        Ok(Some(Journaled { journal, shard, snapshots, wants_snapshots, show: output.progress(), quiet: output.quiet }))
    }

    /// The seed of a journal that has begun.
    pub(super) fn begun_seed(&self) -> Result<Option<u64>, JournalError> {
        let begun = self.out.as_deref().filter(|path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0));
        begun.map(|path| Contents::read(path).map(|contents| contents.header().spec().seed)).transpose()
    }

    /// Exit code of a run that a signal ends.
    pub(super) fn interrupted(&self) -> Exit {
        if self.out.is_some() { Exit::Resumable } else { Exit::Interrupted }
    }
}

impl Journaled {
    /// The seed of a journal that has begun, which is said. A shard needs one: its own would make it another run.
    pub(super) fn seed(&self) -> Result<Option<u64>, Refused> {
        let Some(header) = self.journal.header() else {
            if self.shard != Shard::WHOLE {
                let reason = "all shards of a run have the same seed, and a fresh one is another each time; add --seed";
                return Err(Refused(reason.to_owned()));
            }
            return Ok(None);
        };
        let seed = header.spec().seed;
        tracing::info!(seed, "seed: {seed} (of the journal)");
        Ok(Some(seed))
    }

    /// Begins the journal of `header`, or goes on with it.
    pub(super) fn begin(&mut self, header: Header) -> Result<(), JournalError> {
        self.journal.begin(header)?;
        let contents = self.journal.contents();
        warn_if_torn(contents);
        self.snapshots.sweep(contents);
        let Progressed { done, wanted, .. } = self.progress();
        if !self.quiet {
            let of = if self.shard == Shard::WHOLE { String::new() } else { format!(" of shard {}", self.shard) };
            let name = contents.name();
            tracing::info!(name, done, wanted, "journal: {name}: {done} of {wanted} blocks{of} are there");
        }
        Ok(())
    }

    fn progress(&self) -> Progressed {
        let contents = self.journal.contents();
        let mut progress = Progressed { done: 0, wanted: 0, left: 0 };
        for (number, block) in (0..).zip(contents.spec().blocks(contents.process())) {
            if self.shard.owns(number) {
                let is_done = contents.entry(&block).is_some();
                progress.wanted += 1;
                progress.done += u64::from(is_done);
                progress.left += if is_done { 0 } else { block.end - block.start };
            }
        }
        progress
    }

    /// Runs the blocks that are missing, on the backends that `open` gives where there are any.
    pub(super) fn run(
        &mut self,
        control: &Control,
        open: impl FnOnce() -> anyhow::Result<Pool>,
    ) -> anyhow::Result<Outcome> {
        let there = run::replay(self.journal.contents())?;
        let left = self.progress().left;
        if left == 0 || there.reason != Reason::Incomplete {
            return Ok(there);
        }
        let mut pool = open()?;
        if let Some(reason) = self.no_snapshots(&pool).filter(|_| self.wants_snapshots) {
            tracing::warn!("there will be no snapshots: {reason}");
        }
        let contents = self.journal.contents();
        let (spec, balls) = (contents.spec().clone(), contents.spec().process.expected_balls());
        let progress = Progress::new(left.saturating_mul(spec.schedule.rounds), balls, self.show);
        let outcome = progress.watch(control, || {
            let part = (&mut self.journal, self.shard);
            run::run_journaled(&spec, &mut pool, control, part, Some(&self.snapshots), &mut |event| warn(&event))
        });
        outcome.map_err(|error| match error {
            RunError::Backend(BackendError::Cancelled) => {
                let Progressed { done, wanted, .. } = self.progress();
                let name = self.journal.contents().name();
                Resumable(format!("{done} of {wanted} blocks are in {name}, and no result yet")).into()
            }
            other => other.into(),
        })
    }

    /// Why blocks are not kept in the middle, where they are not.
    fn no_snapshots(&self, pool: &Pool) -> Option<&'static str> {
        let contents = self.journal.contents();
        let (spec, form) = (contents.spec(), contents.process());
        let largest = spec.blocks(form).map(|block| block.end - block.start).max().unwrap_or(0);
        let too_many = |replicas: u64| form.loads().saturating_mul(replicas) > MOST_LOADS;
        let reasons = pool.machines().into_iter().map(|machine| match machine.adapter {
            Some(_) if too_many(largest) => {
                Some("a GPU has the replicas of a block under way at once, with more than 2^24 bins together")
            }
            None if too_many(rayon::current_num_threads() as u64) => {
                Some("the replicas under way have more than 2^24 bins together; use fewer --threads")
            }
            _ => None,
        });
        // Where one of them keeps its blocks, there are some.
        reasons.reduce(Option::and).flatten()
    }

    /// What it holds.
    pub(super) fn contents(&self) -> &Contents {
        self.journal.contents()
    }
}

/// Says where a journal ends too early.
pub(super) fn warn_if_torn(contents: &Contents) {
    if contents.is_torn() {
        tracing::warn!("the last line of {} is not whole and left out: its block is missing", contents.name());
    }
}

/// How long the blocks of a journal took, and what computed them.
pub(super) fn describe(contents: &Contents) -> String {
    let mut machines: BTreeMap<String, usize> = BTreeMap::new();
    let mut elapsed = Duration::ZERO;
    for entry in contents.entries() {
        let adapter = entry.machine.adapter.iter().map(|adapter| format!(", {adapter}"));
        let machine = std::iter::once(entry.machine.backend.clone()).chain(adapter).collect();
        *machines.entry(machine).or_default() += 1;
        elapsed += entry.elapsed;
    }
    let machines: Vec<_> = machines.into_iter().map(|(machine, blocks)| format!("{blocks} by {machine}")).collect();
    format!("blocks: {}; {:.3} s in all", machines.join("; "), elapsed.as_secs_f64())
}
