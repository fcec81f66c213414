//! Snapshots of blocks that take long: a run that is killed at any of them goes on with the same bits, and none of them
//! is believed that is not whole and of this block.

use leakybins::backend::{
    Backend, BackendError, BlockResult, Control, Host, Keeper, Partial, Pool, Profiles, StreamKind, Work,
};
use leakybins::journal::{Contents, Header, Journal, MOST_LOADS, Snapshots};
use leakybins::process::capped;
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{Event, Outcome, RunError, Schedule, Shard, Spec, run, run_journaled};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Five replicas in one block, each of three segments and more.
fn spec(n: u64, rounds: u64) -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n, ..Parameters::default() });
    let schedule = Schedule { rounds, burn_in: 7, every: 3, loads_every: 2, measure: Measure::Post };
    Spec { process, seed: 5, replicas: 5, schedule, stopping: None }
}

fn on_profiles() -> Spec {
    spec(1_000_000_000, 200)
}

/// A backend that is stopped as if it was killed, at a snapshot.
struct Mortal<B> {
    backend: B,
    /// Snapshots that it lives for.
    lives: usize,
    kept: Arc<AtomicUsize>,
}

struct Counting<'a> {
    keeper: &'a dyn Keeper,
    control: &'a Control<'a>,
    lives: usize,
    kept: &'a AtomicUsize,
}

impl Keeper for Counting<'_> {
    fn resume(&self) -> Option<Partial> {
        self.keeper.resume()
    }

    fn is_due(&self) -> bool {
        self.keeper.is_due()
    }

    fn keep(&self, partial: &Partial) {
        self.keeper.keep(partial);
        if self.kept.fetch_add(1, Ordering::SeqCst) + 1 == self.lives {
            self.control.cancel();
        }
    }
}

impl<B: Backend> Backend for Mortal<B> {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn stream(&self) -> StreamKind {
        self.backend.stream()
    }

    fn run(&mut self, work: &Work<'_>, block: Range<u64>, control: &Control) -> Result<BlockResult, BackendError> {
        self.backend.run(work, block, control)
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let counting = Counting { keeper, control, lives: self.lives, kept: &self.kept };
        self.backend.run_kept(work, block, control, &counting)
    }
}

fn mortal(kind: &str, lives: usize, kept: &Arc<AtomicUsize>) -> Pool {
    let kept = Arc::clone(kept);
    match kind {
        "cpu" => Mortal { backend: Host::cpu(), lives, kept }.into(),
        "reference" => Mortal { backend: Host::reference(), lives, kept }.into(),
        _ => Mortal { backend: Profiles, lives, kept }.into(),
    }
}

/// A run with a journal, and with a snapshot after each segment.
struct Sitting {
    folder: tempfile::TempDir,
    spec: Spec,
    every: Duration,
}

impl Sitting {
    fn new(spec: Spec) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), spec, every: Duration::ZERO }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn snapshot(&self) -> PathBuf {
        self.path("a.jsonl.0.snapshot")
    }

    fn run(&self, pool: &mut Pool) -> (Result<Outcome, RunError>, Vec<Event>) {
        let (path, control, mut events) = (self.path("a.jsonl"), Control::default(), Vec::new());
        let mut journal = Journal::open(&path).expect("a journal");
        let form = self.spec.process.build_for(pool.stream()).expect("valid parameters");
        journal.begin(Header::new(&self.spec, &form)).expect("room");
        let snapshots = Snapshots::beside(&path, self.every);
        let part = (&mut journal, Shard::WHOLE);
        let ended = run_journaled(&self.spec, pool, &control, part, Some(&snapshots), &mut |e| events.push(e));
        if ended.is_ok() {
            assert_eq!(control.rounds(), self.spec.replicas * self.spec.schedule.rounds);
            assert_eq!(files(self.folder.path()), ["a.jsonl"], "nothing stays but the journal");
        }
        (ended, events)
    }

    /// Stops a run at its second snapshot.
    fn killed(spec: Spec) -> Self {
        let sitting = Self::new(spec);
        let (ended, events) = sitting.run(&mut mortal("profile", 2, &Arc::default()));
        assert!(is_killed(&ended) && events.is_empty(), "{ended:?} {events:?}");
        assert!(Contents::read(&sitting.path("a.jsonl")).expect("a journal").entries().len() == 0);
        sitting
    }
}

fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
}

fn is_killed(ended: &Result<Outcome, RunError>) -> bool {
    matches!(ended, Err(RunError::Backend(BackendError::Cancelled)))
}

fn expected(spec: &Spec, kind: &str) -> Outcome {
    run(spec, &mut mortal(kind, 0, &Arc::default()), &Control::default(), None, &mut |_| ()).expect("a result")
}

#[test]
fn a_block_that_is_killed_at_any_snapshot_goes_on_with_the_same_bits() {
    // A process with balls in a pool and observables of its own, too.
    let capped = |spec: Spec| {
        let n = spec.process.bins();
        Spec { process: ProcessSpec::Capped(capped::Parameters { n, ..Default::default() }), ..spec }
    };
    let bins = spec(1 << 16, 150);
    for (kind, spec, at_each) in [
        ("cpu", bins.clone(), true),
        ("profile", on_profiles(), true),
        ("reference", bins.clone(), false),
        ("cpu", capped(bins), false),
        ("profile", capped(on_profiles()), false),
    ] {
        let expected = expected(&spec, kind).tally;
        for kill in (1..).take_while(|_| at_each) {
            let sitting = Sitting::new(spec.clone());
            let kept = Arc::new(AtomicUsize::new(0));
            let (ended, events) = sitting.run(&mut mortal(kind, kill, &kept));
            assert!(events.is_empty(), "{kind}, {kill}: {events:?}");
            if let Ok(outcome) = ended {
                assert_eq!(outcome.tally, expected, "{kind}, never killed");
                // Threads that go on with half-finished replicas may end with a snapshot more or less.
                assert!(kill > 4 && kept.load(Ordering::SeqCst) < kill, "{kind}: {kill} snapshots");
                break;
            }
            assert!(is_killed(&ended), "{kind}, {kill}: {ended:?}");
            assert!(sitting.snapshot().exists());
            let (ended, events) = sitting.run(&mut mortal(kind, 0, &Arc::default()));
            assert_eq!(ended.expect("a result").tally, expected, "{kind}, killed at snapshot {kill}");
            assert!(matches!(&events[..], [Event::SnapshotTakenUp { .. }]), "{kind}, {kill}: {events:?}");
        }
        // Killed again and again, at the first snapshot of each sitting: each goes a step further.
        let sitting = Sitting::new(spec);
        let last = (1..100).find_map(|_| match sitting.run(&mut mortal(kind, 1, &Arc::default())).0 {
            Ok(outcome) => Some(outcome),
            killed => {
                assert!(is_killed(&killed), "{kind}: {killed:?}");
                None
            }
        });
        assert_eq!(last.expect("an end").tally, expected, "{kind}");
    }
}

#[test]
fn time_of_earlier_sittings_counts() {
    let sitting = Sitting::killed(on_profiles());
    let text = fs::read_to_string(sitting.snapshot()).expect("a snapshot");
    let snapshot: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let before = snapshot["elapsed_us"].as_u64().expect("a time");
    sitting.run(&mut Profiles.into()).0.expect("a result");
    let contents = Contents::read(&sitting.path("a.jsonl")).expect("a journal");
    let elapsed = contents.entries().next().expect("a block").elapsed;
    assert!(before > 0 && elapsed > Duration::from_micros(before), "{elapsed:?} after {before} us");
}

#[test]
fn a_snapshot_that_is_not_whole_or_of_another_run_is_ignored() {
    let expected = expected(&on_profiles(), "profile").tally;
    let whole = fs::read(Sitting::killed(on_profiles()).snapshot()).expect("a snapshot");
    let other = Sitting::killed(Spec { seed: 6, ..on_profiles() });
    let mut damaged = vec![fs::read(other.snapshot()).expect("a snapshot"), b"{}".to_vec(), vec![0xFF; 100]];
    damaged.extend((0..12).map(|i| whole[..i * whole.len() / 12].to_vec()));
    damaged.extend((0..40).map(|i| {
        let mut flipped = whole.clone();
        flipped[i * (whole.len() - 2) / 40] ^= 1 << (i % 7);
        flipped
    }));
    for (i, bytes) in damaged.iter().enumerate() {
        let mut sitting = Sitting::new(on_profiles());
        sitting.every = Duration::from_secs(3600);
        fs::write(sitting.snapshot(), bytes).expect("a file");
        let (ended, events) = sitting.run(&mut Profiles.into());
        assert_eq!(ended.expect("a result").tally, expected, "case {i}");
        assert!(matches!(&events[..], [Event::SnapshotIgnored { .. }]), "case {i}: {events:?}");
    }
    // The same bytes in their place are taken up, and in that of another block they are not.
    let mut sitting = Sitting::new(on_profiles());
    sitting.every = Duration::from_secs(3600);
    fs::write(sitting.snapshot(), &whole).expect("a file");
    assert!(matches!(&sitting.run(&mut Profiles.into()).1[..], [Event::SnapshotTakenUp { .. }]));
}

#[test]
fn a_snapshot_that_cannot_be_written_costs_nothing_but_itself() {
    let expected = expected(&on_profiles(), "profile").tally;
    for obstacle in ["a.jsonl.0.snapshot.tmp", "a.jsonl.0.snapshot"] {
        let sitting = Sitting::new(on_profiles());
        fs::create_dir(sitting.path(obstacle)).expect("a folder in the way");
        let (path, control, mut events) = (sitting.path("a.jsonl"), Control::default(), Vec::new());
        let mut journal = Journal::open(&path).expect("a journal");
        let form = sitting.spec.process.build_for(StreamKind::Profile).expect("valid parameters");
        journal.begin(Header::new(&sitting.spec, &form)).expect("room");
        let snapshots = Snapshots::beside(&path, Duration::ZERO);
        let part = (&mut journal, Shard::WHOLE);
        let pool = &mut Profiles.into();
        let ended = run_journaled(&sitting.spec, pool, &control, part, Some(&snapshots), &mut |e| events.push(e));
        assert_eq!(ended.expect("a result").tally, expected, "{obstacle}");
        let failed = events.iter().filter(|event| matches!(event, Event::SnapshotFailed { .. })).count();
        assert!(failed > 2, "{obstacle}: {events:?}");
        let mut left = files(sitting.folder.path());
        left.sort();
        assert_eq!(left, ["a.jsonl", obstacle]);
    }
}

#[test]
fn a_block_that_two_backends_run_leaves_no_snapshot() {
    let spec = spec(1 << 16, 150);
    let sitting = Sitting::new(spec.clone());
    let mut pool = Pool::new(vec![Box::new(Host::cpu()), Box::new(Host::reference())]).expect("one stream");
    // Which of them is first, and whether it has kept the block by then, is chance; the run looks at its folder.
    let (ended, events) = sitting.run(&mut pool);
    assert_eq!(ended.expect("a result").tally, expected(&spec, "cpu").tally);
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn no_snapshot_is_larger_than_the_limit() {
    let n = MOST_LOADS + 1;
    let process = ProcessSpec::Leaky(Parameters { n, lambda: 0.001, d: 1, ..Parameters::default() });
    let schedule = Schedule { rounds: 4, burn_in: 0, every: 4, loads_every: 0, measure: Measure::Post };
    let sitting = Sitting::new(Spec { process, seed: 1, replicas: 1, schedule, stopping: None });
    let kept = Arc::new(AtomicUsize::new(0));
    sitting.run(&mut mortal("cpu", 0, &kept)).0.expect("a result");
    assert_eq!(kept.load(Ordering::SeqCst), 0);
}
