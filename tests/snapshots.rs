//! Snapshots of blocks that take long: a run that is killed at any of them goes on with the same bits, and none of them
//! is believed that is not whole and of this block. Those of blocks on a GPU are in `gpu_snapshots.rs`.

#[path = "common/sitting.rs"]
mod sitting;

use leakybins::backend::{Backend, Control, Host, Keeper, Partial, Pool, ProfileJob, Profiles, StreamKind, Work};
use leakybins::journal::{Contents, Header, Journal, MOST_LOADS, Snapshots};
use leakybins::process::capped;
use leakybins::process::leaky::{LeakyProfile, Parameters};
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{Event, Outcome, Schedule, Shard, Spec, run_journaled};
use sitting::{Mortal, Sitting, change_states, files, is_killed, states};
use std::fs;
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

fn backend(kind: &str) -> Box<dyn Backend> {
    match kind {
        "cpu" => Box::new(Host::cpu()),
        "reference" => Box::new(Host::reference()),
        _ => Box::new(Profiles),
    }
}

fn mortal(kind: &str, lives: usize, kept: &Arc<AtomicUsize>) -> Pool {
    Mortal { lives, kept: Arc::clone(kept), ..Mortal::new(backend(kind)) }.into()
}

/// Whose first snapshot, at which it is stopped, is changed.
fn changing(kind: &str, change: fn(&mut Partial)) -> Pool {
    Mortal { lives: 1, change, ..Mortal::new(backend(kind)) }.into()
}

/// Whose run is interrupted after its first step.
fn interrupting(kind: &str, kept: &Arc<AtomicUsize>, control: &Arc<Control<'static>>) -> Pool {
    Mortal { kept: Arc::clone(kept), interrupted: Some(Arc::clone(control)), ..Mortal::new(backend(kind)) }.into()
}

fn killed(spec: Spec) -> Sitting {
    Sitting::killed(spec, Box::new(Profiles))
}

fn expected(spec: &Spec, kind: &str) -> Outcome {
    sitting::expected(spec, backend(kind))
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
    let sitting = killed(on_profiles());
    let text = fs::read_to_string(sitting.snapshot()).expect("a snapshot");
    let snapshot: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let before = snapshot["elapsed_us"].as_u64().expect("a time");
    sitting.run(&mut Profiles.into()).0.expect("a result");
    let contents = Contents::<Header>::read(&sitting.path("a.jsonl")).expect("a journal");
    let elapsed = contents.entries().next().expect("a block").elapsed;
    assert!(before > 0 && elapsed > Duration::from_micros(before), "{elapsed:?} after {before} us");
}

#[test]
fn a_snapshot_that_is_not_whole_or_of_another_run_is_ignored() {
    let expected = expected(&on_profiles(), "profile").tally;
    let whole = fs::read(killed(on_profiles()).snapshot()).expect("a snapshot");
    let other = killed(Spec { seed: 6, ..on_profiles() });
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

#[test]
fn a_snapshot_whose_states_do_not_fit_the_process_is_ignored() {
    let profile: [fn(&mut Partial); 9] = [
        |partial| change_states(partial, Vec::clear),
        |partial| change_states(partial, |state| state[0] += 1),
        |partial| change_states(partial, |state| state[0] = u64::MAX),
        |partial| change_states(partial, |state| state[0] = 1 << 63),
        |partial| change_states(partial, |state| state.push(0)),
        // A bin more, a load twice, a level without a bin, a ball more.
        |partial| change_states(partial, |state| state[2] += 1),
        |partial| change_states(partial, |state| state[3] = state[1]),
        |partial| change_states(partial, |state| state[4] = 0),
        |partial| change_states(partial, |state| *state.iter_mut().nth_back(1).expect("a level") += 1),
    ];
    let bins: [fn(&mut Partial); 3] = [
        |partial| change_states(partial, |state| state.truncate(100)),
        |partial| change_states(partial, |state| state[0] += 1 << 32),
        |partial| change_states(partial, |state| state[0] += 1),
    ];
    let cases = profile.iter().map(|change| ("profile", on_profiles(), change));
    let cases = cases.chain(bins.iter().map(|change| ("cpu", spec(1 << 16, 150), change)));
    for (case, (kind, spec, &change)) in cases.enumerate() {
        let expected = expected(&spec, kind).tally;
        let mut sitting = Sitting::new(spec);
        let (ended, events) = sitting.run(&mut changing(kind, change));
        assert!(is_killed(&ended) && events.is_empty() && sitting.snapshot().exists(), "case {case}: {ended:?}");
        sitting.every = Duration::from_secs(3600);
        let (ended, events) = sitting.run(&mut mortal(kind, 0, &Arc::default()));
        assert_eq!(ended.expect("a result").tally, expected, "case {case}");
        let [Event::SnapshotIgnored { reason, .. }] = &events[..] else { panic!("case {case}: {events:?}") };
        assert_eq!(reason, "its replicas are not those of this block", "case {case}");
    }
}

#[test]
fn states_that_are_too_large_are_not_kept() {
    let sitting = Sitting::new(on_profiles());
    let too_large = |partial: &mut Partial| {
        *states(partial).next().expect("a replica under way") = vec![0; MOST_LOADS as usize + 1];
    };
    let (ended, events) = sitting.run(&mut changing("profile", too_large));
    assert!(is_killed(&ended), "{ended:?}");
    let [Event::SnapshotFailed { reason, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(reason.contains("loads, more than 16777216"), "{reason}");
    assert_eq!(files(sitting.folder.path()), ["a.jsonl"]);
}

#[test]
fn a_run_that_is_interrupted_keeps_its_block() {
    for (kind, spec) in [("cpu", spec(1 << 16, 150)), ("profile", on_profiles())] {
        let expected = expected(&spec, kind).tally;
        let mut sitting = Sitting::new(spec);
        sitting.every = Duration::from_secs(3600);
        let (control, kept) = (Arc::default(), Arc::default());
        let (ended, events) = sitting.run_under(&control, &mut interrupting(kind, &kept, &control));
        assert!(is_killed(&ended) && events.is_empty(), "{kind}: {ended:?} {events:?}");
        assert_eq!(kept.load(Ordering::SeqCst), 1, "{kind}");
        let (ended, events) = sitting.run(&mut mortal(kind, 0, &Arc::default()));
        assert_eq!(ended.expect("a result").tally, expected, "{kind}");
        assert!(matches!(&events[..], [Event::SnapshotTakenUp { .. }]), "{kind}: {events:?}");
    }
}

#[test]
fn a_snapshot_that_was_not_finished_is_removed_with_its_block() {
    let mut sitting = Sitting::new(on_profiles());
    sitting.every = Duration::from_secs(3600);
    fs::write(sitting.path("a.jsonl.0.snapshot.tmp"), b"{").expect("a file");
    // The run looks at its folder.
    assert!(sitting.run(&mut Profiles.into()).1.is_empty());
}

/// Asks for a snapshot after every step, and counts.
#[derive(Default)]
struct Most {
    snapshots: AtomicUsize,
    begun: AtomicUsize,
}

impl Keeper for Most {
    fn resume(&self) -> Option<Partial> {
        None
    }

    fn is_due(&self) -> bool {
        true
    }

    fn keep(&self, partial: &Partial) {
        let begun = partial.left.iter().filter(|(_, begun)| begun.is_some()).count();
        self.begun.fetch_max(begun, Ordering::SeqCst);
        self.snapshots.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn no_more_replicas_are_under_way_than_threads() {
    const THREADS: usize = 8;
    let Spec { seed, schedule, process: ProcessSpec::Leaky(parameters), .. } = on_profiles() else {
        panic!("another process")
    };
    let process = LeakyProfile::new(&parameters).expect("valid parameters");
    let work = Work::Profile(ProfileJob { process: &process, seed, replicas: 100, schedule });
    let threads = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().expect("threads");
    let most = Most::default();
    threads.install(|| Profiles.run_kept(&work, 0..100, &Control::default(), &most)).expect("a result");
    let (snapshots, begun) = (most.snapshots.into_inner(), most.begun.into_inner());
    assert!(snapshots > 20 && begun <= THREADS, "{begun} replicas under way in one of {snapshots} snapshots");
}
