//! The blocks of a run that its journal lacks, kept in the middle where they take long.

use super::device::warn;
use super::exit::Refused;
use super::journal::Journaled;
use super::progress::{Progress, Show};
use super::run::seconds;
use crate::backend::{BackendError, Control, Pool};
use crate::journal::{MOST_LOADS, Snapshots};
use crate::run::{self, Outcome, Reason, RunError};
use std::path::Path;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Journal")]
pub(super) struct Blocks {
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

impl Blocks {
    /// The snapshots beside the journal at `out`, if there is one.
    pub(super) fn snapshots(&self, out: Option<&Path>) -> Result<Option<Snapshots>, Refused> {
        if out.is_none() && self.snapshot_every.is_some() {
            return Err(Refused("snapshots are kept beside a journal; add --out FILE for it".to_owned()));
        }
        Ok(out.map(|out| Snapshots::beside(out, self.snapshot_every.unwrap_or(SNAPSHOT_EVERY))))
    }

    /// Runs the blocks that are missing, on the backends that `open` gives where there are any.
    pub(super) fn run(
        &self,
        journaled: &mut Journaled,
        snapshots: Option<&Snapshots>,
        (control, show): (&Control, Show),
        open: impl FnOnce() -> anyhow::Result<Pool>,
    ) -> anyhow::Result<Outcome> {
        let there = run::replay(journaled.contents())?;
        let left = journaled.progress().left;
        if left == 0 || there.reason != Reason::Incomplete {
            return Ok(there);
        }
        let mut pool = open()?;
        if let Some(reason) = no_snapshots(journaled, &pool).filter(|_| self.snapshot_every.is_some()) {
            tracing::warn!("there will be no snapshots: {reason}");
        }
        let spec = journaled.contents().spec().clone();
        let progress = Progress::new(left.saturating_mul(spec.schedule.rounds), spec.process.expected_balls(), show);
        let outcome = progress.watch(control, || {
            let part = (&mut journaled.journal, journaled.shard);
            run::run_journaled(&spec, &mut pool, control, part, snapshots, &mut |event| warn(&event))
        });
        outcome.map_err(|error| match error {
            RunError::Backend(BackendError::Cancelled) => journaled.interrupted().into(),
            other => other.into(),
        })
    }
}

/// Why blocks are not kept in the middle, where they are not.
fn no_snapshots(journaled: &Journaled, pool: &Pool) -> Option<&'static str> {
    let contents = journaled.contents();
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
