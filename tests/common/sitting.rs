//! Runs with a journal that are stopped as if they were killed, and go on.

#![allow(dead_code, reason = "each test binary uses a part")]

use leakybins::backend::{Backend, BackendError, BlockResult, Control, Keeper, Partial, Pool, StreamKind, Work};
use leakybins::journal::{Contents, Header, Journal, Snapshots};
use leakybins::run::{Event, Outcome, RunError, Shard, Spec, run, run_journaled};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A backend that is stopped as if it was killed, at a snapshot.
pub(crate) struct Mortal {
    pub(crate) backend: Box<dyn Backend>,
    /// Snapshots that it lives for.
    pub(crate) lives: usize,
    pub(crate) kept: Arc<AtomicUsize>,
    /// What becomes of a block before it is kept.
    pub(crate) change: fn(&mut Partial),
    /// Control of a run that is interrupted after its first step.
    pub(crate) interrupted: Option<Arc<Control<'static>>>,
}

struct Counting<'a> {
    keeper: &'a dyn Keeper,
    control: &'a Control<'a>,
    lives: usize,
    kept: &'a AtomicUsize,
    change: fn(&mut Partial),
    interrupted: Option<&'a Control<'static>>,
}

impl Keeper for Counting<'_> {
    fn resume(&self) -> Option<Partial> {
        self.keeper.resume()
    }

    fn is_due(&self) -> bool {
        self.interrupted.into_iter().for_each(Control::cancel);
        self.keeper.is_due()
    }

    fn keep(&self, partial: &Partial) {
        let mut partial = partial.clone();
        (self.change)(&mut partial);
        self.keeper.keep(&partial);
        if self.kept.fetch_add(1, Ordering::SeqCst) + 1 == self.lives {
            self.control.cancel();
        }
    }
}

impl Backend for Mortal {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn stream(&self) -> StreamKind {
        self.backend.stream()
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let Self { lives, ref kept, change, ref interrupted, .. } = *self;
        let counting = Counting { keeper, control, lives, kept, change, interrupted: interrupted.as_deref() };
        self.backend.run_kept(work, block, control, &counting)
    }

    fn renew(&mut self) -> Result<(), BackendError> {
        self.backend.renew()
    }
}

impl Mortal {
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, lives: 0, kept: Arc::default(), change: |_| (), interrupted: None }
    }
}

/// A run with a journal, and with a snapshot after each segment.
pub(crate) struct Sitting {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) spec: Spec,
    pub(crate) every: Duration,
}

impl Sitting {
    pub(crate) fn new(spec: Spec) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), spec, every: Duration::ZERO }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.path("a.jsonl.0.snapshot")
    }

    pub(crate) fn run(&self, pool: &mut Pool) -> (Result<Outcome, RunError>, Vec<Event>) {
        self.run_under(&Control::default(), pool)
    }

    pub(crate) fn run_under(&self, control: &Control<'_>, pool: &mut Pool) -> (Result<Outcome, RunError>, Vec<Event>) {
        let (path, mut events) = (self.path("a.jsonl"), Vec::new());
        let mut journal = Journal::open(&path).expect("a journal");
        let form = self.spec.process.build_for(pool.stream()).expect("valid parameters");
        journal.begin(Header::new(&self.spec, &form)).expect("room");
        let snapshots = Snapshots::beside(&path, self.every);
        let part = (&mut journal, Shard::WHOLE);
        let ended = run_journaled(&self.spec, pool, control, part, Some(&snapshots), &mut |e| events.push(e));
        if ended.is_ok() {
            assert_eq!(control.rounds(), self.spec.replicas * self.spec.schedule.rounds);
            assert_eq!(files(self.folder.path()), ["a.jsonl"], "nothing stays but the journal");
        }
        (ended, events)
    }

    /// Stops a run at its second snapshot.
    pub(crate) fn killed(spec: Spec, backend: Box<dyn Backend>) -> Self {
        let sitting = Self::new(spec);
        let (ended, events) = sitting.run(&mut Mortal { lives: 2, ..Mortal::new(backend) }.into());
        assert!(is_killed(&ended) && events.is_empty(), "{ended:?} {events:?}");
        assert!(Contents::<Header>::read(&sitting.path("a.jsonl")).expect("a journal").entries().len() == 0);
        sitting
    }
}

pub(crate) fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
}

pub(crate) fn is_killed(ended: &Result<Outcome, RunError>) -> bool {
    matches!(ended, Err(RunError::Backend(BackendError::Cancelled)))
}

/// What a run on `backend` gives that nobody stops.
pub(crate) fn expected(spec: &Spec, backend: Box<dyn Backend>) -> Outcome {
    run(spec, &mut Mortal::new(backend).into(), &Control::default(), None, &mut |_| ()).expect("a result")
}

/// The states of the replicas under way.
pub(crate) fn states(partial: &mut Partial) -> impl Iterator<Item = &mut Vec<u64>> {
    partial.left.iter_mut().flat_map(|(_, begun)| begun).map(|begun| &mut begun.state)
}

/// Changes the states of the replicas under way.
pub(crate) fn change_states(partial: &mut Partial, change: fn(&mut Vec<u64>)) {
    states(partial).for_each(change);
}
