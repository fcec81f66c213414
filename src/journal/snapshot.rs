//! Snapshots: blocks that take long, kept in the middle beside their journal.
//!
//! A block is written every few minutes into the file `JOURNAL.FIRST.snapshot`, FIRST being its
//! first replica: into a file of another name that is renamed when it is on disk, so that a snapshot is whole or the one
//! before it; and once more when the run is interrupted. It is a line as those of the [journal](super), checksum and id
//! included, and of no use to another run. One that is not whole, or whose replicas cannot be those of its block, is ignored,
//! and its block begins again: nothing depends on a snapshot but time. When its block is in the journal it is removed.
//!
//! It holds the states of the replicas under way: on the CPU and on profiles one for each thread, unless more were begun
//! elsewhere, and on a GPU those of a chunk. Where these are more than [`MOST_LOADS`] numbers together, none is written. The
//! states are the same everywhere, so that a block goes on wherever its snapshot is found.

use super::Contents;
use super::line::{open, seal};
use super::sync_name;
use super::tally::{Form, RecordForm};
use crate::backend::{Begun, Control, Keeper, Partial, Work};
use crate::run::Event;
use crate::stats::Flow;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most loads of bins, or other numbers of the states, in a snapshot, over all replicas under way.
pub const MOST_LOADS: u64 = 1 << 24;
/// Most bytes of one: so many loads of ten digits and a comma, and the tallies.
const MOST_BYTES: u64 = 1 << 28;
const SCHEMA: u32 = 1;

/// The snapshots of a journal.
#[derive(Clone, Debug)]
pub struct Snapshots {
    journal: PathBuf,
    every: Duration,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotLine {
    schema: u32,
    kind: String,
    first: u64,
    end: u64,
    elapsed_us: u64,
    tally: Form,
    begun: Vec<(u64, u64, Vec<u64>, RecordForm)>,
    fresh: Vec<u64>,
}

impl Snapshots {
    /// Those beside `journal`, each block's written anew after `every`.
    #[must_use]
    pub fn beside(journal: &Path, every: Duration) -> Self {
        Self { journal: journal.to_owned(), every }
    }

    fn path(&self, block: &Range<u64>) -> PathBuf {
        let mut name = self.journal.as_os_str().to_owned();
        name.push(format!(".{}.snapshot", block.start));
        name.into()
    }

    /// The keeper of `block` of the run of `work`, whose journal has this id; `run` is cancelled where the run is
    /// interrupted, and `tell` hears what happens.
    pub(crate) fn keeper<'a>(
        &self,
        id: &'a str,
        (work, run): (&'a Work<'a>, &'a Control<'a>),
        block: Range<u64>,
        tell: &'a (dyn Fn(Event) + Sync),
    ) -> BlockKeeper<'a> {
        let (path, every) = (self.path(&block), self.every);
        let (begun, kept, carried) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
        BlockKeeper { path, every, id, work, run, block, tell, begun, kept, carried }
    }

    /// Removes the snapshot of a block that needs none any more.
    pub(crate) fn remove(&self, block: &Range<u64>) {
        let path = self.path(block);
        // One that stays is known to be of no use by the next sitting.
        let _ = fs::remove_file(temporary(&path));
        let _ = fs::remove_file(path);
    }

    /// Removes those of all blocks that are in the journal.
    pub fn sweep(&self, contents: &Contents) {
        contents.entries().for_each(|entry| self.remove(&entry.block));
    }
}

/// The file that becomes the snapshot at `path` when it is on disk.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Keeps one block.
pub(crate) struct BlockKeeper<'a> {
    path: PathBuf,
    every: Duration,
    id: &'a str,
    work: &'a Work<'a>,
    run: &'a Control<'a>,
    block: Range<u64>,
    tell: &'a (dyn Fn(Event) + Sync),
    begun: Instant,
    /// Microseconds from the beginning to the last snapshot, or attempt at one.
    kept: AtomicU64,
    /// Microseconds that the block took in earlier sittings.
    carried: AtomicU64,
}

impl BlockKeeper<'_> {
    /// Time that the block took in earlier sittings.
    pub(crate) fn carried(&self) -> Duration {
        Duration::from_micros(self.carried.load(Ordering::Relaxed))
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The snapshot and the time that its block took; `None` where there is none.
    fn read(&self) -> Result<Option<(Partial, u64)>, String> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if found.len() > MOST_BYTES {
            return Err(format!("it has more than {MOST_BYTES} bytes"));
        }
        let text = fs::read_to_string(&self.path).map_err(|error| error.to_string())?;
        let object = open(text.trim_end_matches('\n'), self.id).ok_or("its checksum is not that of this run")?;
        let line: SnapshotLine = serde_json::from_str(&object).map_err(|error| error.to_string())?;
        let SnapshotLine { schema, kind, first, end, elapsed_us, tally, begun, fresh } = line;
        let mut left: Vec<_> = (begun.into_iter())
            .map(|(replica, round, state, record)| {
                (replica, Some(Box::new(Begun { round, state, record: record.into() })))
            })
            .collect();
        left.extend(fresh.into_iter().map(|replica| (replica, None)));
        let partial = Partial { tally: tally.into(), left };
        if (schema, &*kind, first..end) != (SCHEMA, "snapshot", self.block.clone()) {
            return Err("it is of another block".to_owned());
        }
        if !self.fits(&partial) {
            return Err("its replicas are not those of this block".to_owned());
        }
        Ok(Some((partial, elapsed_us)))
    }

    /// Whether these can be the replicas of the block, each in a state that it can have, and no ball is missing.
    fn fits(&self, partial: &Partial) -> bool {
        let mut replicas: Vec<u64> = partial.left.iter().map(|(replica, _)| *replica).collect();
        replicas.sort_unstable();
        replicas.dedup();
        replicas.len() == partial.left.len()
            && replicas.iter().all(|replica| self.block.contains(replica))
            && partial.tally.replicas + replicas.len() as u64 == self.block.end - self.block.start
            && partial.left.iter().flat_map(|(_, begun)| begun).all(|begun| begun.round < self.work.rounds())
            && self.conserves_balls(partial).unwrap_or(false)
    }

    /// Whether the balls that came are those that are there and those that left; `None` where a state does not fit the
    /// process, or a number passes 2^128.
    fn conserves_balls(&self, partial: &Partial) -> Option<bool> {
        let mut there = partial.tally.final_balls;
        let mut flow = partial.tally.flow;
        for begun in partial.left.iter().flat_map(|(_, begun)| begun) {
            there = there.checked_add(self.work.balls_of(&begun.state)?)?;
            flow = flow.checked_add(begun.record.flow)?;
        }
        let Flow { arrived, departed } = flow;
        Some(partial.tally.initial_balls.checked_add(arrived)? == there.checked_add(departed)?)
    }

    fn write(&self, partial: &Partial) -> io::Result<()> {
        let begun = partial.left.iter().flat_map(|(_, begun)| begun);
        let loads: u64 = begun.map(|begun| begun.state.len() as u64).sum();
        if loads > MOST_LOADS {
            return Err(io::Error::other(format!("the replicas under way have {loads} loads, more than {MOST_LOADS}")));
        }
        let record = |(replica, begun): &(u64, Option<Box<Begun>>)| {
            let begun = begun.as_ref()?;
            Some((*replica, begun.round, begun.state.clone(), RecordForm::from(&begun.record)))
        };
        let line = SnapshotLine {
            schema: SCHEMA,
            kind: "snapshot".to_owned(),
            first: self.block.start,
            end: self.block.end,
            elapsed_us: self.carried.load(Ordering::Relaxed).saturating_add(self.elapsed_us()),
            tally: (&partial.tally).into(),
            begun: partial.left.iter().filter_map(record).collect(),
            fresh: partial.left.iter().filter(|(_, begun)| begun.is_none()).map(|(replica, _)| *replica).collect(),
        };
        let sealed = seal(&serde_json::to_string(&line)?, self.id);
        if sealed.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("it would have more than {MOST_BYTES} bytes")));
        }
        let temporary = temporary(&self.path);
        let written = (|| {
            let mut file = File::create(&temporary)?;
            file.write_all(sealed.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            sync_name(&self.path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

impl Keeper for BlockKeeper<'_> {
    fn resume(&self) -> Option<Partial> {
        match self.read() {
            Ok(None) => None,
            Ok(Some((partial, elapsed_us))) => {
                self.carried.store(elapsed_us, Ordering::Relaxed);
                (self.tell)(Event::SnapshotTakenUp { file: self.name() });
                Some(partial)
            }
            Err(reason) => {
                (self.tell)(Event::SnapshotIgnored { file: self.name(), reason });
                None
            }
        }
    }

    fn is_due(&self) -> bool {
        let since = self.elapsed_us().saturating_sub(self.kept.load(Ordering::Relaxed));
        self.run.is_cancelled() || since >= u64::try_from(self.every.as_micros()).unwrap_or(u64::MAX)
    }

    fn keep(&self, partial: &Partial) {
        if let Err(error) = self.write(partial) {
            (self.tell)(Event::SnapshotFailed { file: self.name(), reason: error.to_string() });
        }
        self.kept.store(self.elapsed_us(), Ordering::Relaxed);
    }
}
