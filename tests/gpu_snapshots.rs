//! Snapshots of blocks on a GPU: they are those of the CPU, so that either goes on with what the other began, with the same
//! bits.

mod common;
#[path = "common/sitting.rs"]
mod sitting;

use common::{gpu, run_on_gpu};
use leakybins::backend::gpu::Tuning;
use leakybins::backend::gpu::compose::Layout;
use leakybins::backend::{Backend, Begun, Control, Host, Keeper, Partial, Pool, StreamKind, Work};
use leakybins::journal::MOST_LOADS;
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec, Reference, Runner, capped, repeated};
use leakybins::run::{Event, Schedule, Spec};
use leakybins::stats::Record;
use libtest_mimic::Failed;
use sitting::{Mortal, Sitting, change_states, expected, is_killed};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    run_on_gpu(&[
        ("a_block_that_is_killed_at_any_snapshot_goes_on", a_block_that_is_killed_at_any_snapshot_goes_on),
        ("a_block_goes_back_and_forth", a_block_goes_back_and_forth),
        ("replicas_at_different_rounds_go_on_together", replicas_at_different_rounds_go_on_together),
        ("a_block_of_several_chunks_goes_on", a_block_of_several_chunks_goes_on),
        ("a_load_outgrows_its_form_between_snapshots", a_load_outgrows_its_form_between_snapshots),
        ("a_run_that_is_interrupted_keeps_its_block", a_run_that_is_interrupted_keeps_its_block),
        ("a_lost_device_goes_on_from_the_snapshot", a_lost_device_goes_on_from_the_snapshot),
        (
            "a_snapshot_that_is_damaged_or_does_not_fit_is_ignored",
            a_snapshot_that_is_damaged_or_does_not_fit_is_ignored,
        ),
        (
            "a_block_that_a_gpu_and_the_cpu_run_leaves_no_snapshot",
            a_block_that_a_gpu_and_the_cpu_run_leaves_no_snapshot,
        ),
        ("no_snapshot_is_larger_than_the_limit", no_snapshot_is_larger_than_the_limit),
        ("the_command_goes_on_on_the_cpu_after_a_signal", the_command_goes_on_on_the_cpu_after_a_signal),
        ("the_command_says_where_there_will_be_no_snapshots", the_command_says_where_there_will_be_no_snapshots),
    ]);
}

/// Replicas in one block.
fn spec(process: ProcessSpec, rounds: u64, replicas: u64) -> Spec {
    let schedule = Schedule { rounds, burn_in: 7, every: 3, loads_every: 2, measure: Measure::Post };
    Spec { process, seed: 5, replicas, schedule, stopping: None }
}

fn leaky(n: u64, start: &str) -> ProcessSpec {
    ProcessSpec::Leaky(Parameters { n, start: start.parse().expect("a start"), ..Parameters::default() })
}

fn capped(n: u64, start: &str) -> ProcessSpec {
    ProcessSpec::Capped(capped::Parameters { n, start: start.parse().expect("a start"), ..Default::default() })
}

fn short() -> Spec {
    spec(leaky(1000, "empty"), 60, 5)
}

/// Submissions of at most so many rounds.
fn submissions(rounds: u64) -> Tuning {
    Tuning { most_rounds: Some(rounds), ..Tuning::default() }
}

fn on_gpu(tuning: Tuning) -> Box<dyn Backend> {
    Box::new(gpu(tuning))
}

fn cpu() -> Box<dyn Backend> {
    Box::new(Host::cpu())
}

/// Stopped at its snapshot number `lives`.
fn mortal(backend: Box<dyn Backend>, lives: usize) -> Pool {
    Mortal { lives, ..Mortal::new(backend) }.into()
}

/// Goes on with what `sitting` has, to the tally that `spec` has without any stop.
fn goes_on(what: &str, sitting: &Sitting, backend: Box<dyn Backend>) {
    let (ended, events) = sitting.run(&mut Mortal::new(backend).into());
    assert_eq!(ended.expect("a result").tally, expected(&sitting.spec, cpu()).tally, "{what}");
    assert!(matches!(&events[..], [Event::SnapshotTakenUp { .. }]), "{what}: {events:?}");
}

fn a_block_that_is_killed_at_any_snapshot_goes_on() -> Result<(), Failed> {
    let layout = |layout| Tuning { layout: Some(layout), ..submissions(7) };
    let again = ProcessSpec::Repeated(repeated::Parameters { n: 300, start: "one-bin:500".parse()? });
    for (spec, tuning) in [
        (short(), layout(Layout::Workgroup)),
        (short(), Tuning { most_counted: Some(20), ..layout(Layout::Storage) }),
        (short(), layout(Layout::Grid)),
        (spec(leaky(65, "random:900"), 60, 40), submissions(7)),
        // The loads fit wide bins only; bins that are occupied; balls elsewhere, with observables of their own.
        (spec(leaky(100, "one-bin:100000"), 60, 3), submissions(7)),
        (spec(again.clone(), 60, 5), submissions(7)),
        (spec(again, 60, 5), layout(Layout::Grid)),
        (spec(capped(500, "mean-field"), 60, 5), submissions(7)),
        (spec(capped(100, "one-bin:300"), 60, 5), layout(Layout::Storage)),
    ] {
        let expected = expected(&spec, cpu()).tally;
        for kill in 1.. {
            let what = format!("{:?}, {:?}, killed at snapshot {kill}", spec.process, tuning.layout);
            let killed = || {
                let sitting = Sitting::new(spec.clone());
                let kept = Arc::new(AtomicUsize::new(0));
                let mortal = Mortal { lives: kill, kept: Arc::clone(&kept), ..Mortal::new(on_gpu(tuning)) };
                let (ended, events) = sitting.run(&mut mortal.into());
                assert!(events.is_empty(), "{what}: {events:?}");
                (sitting, ended, kept.load(Ordering::SeqCst))
            };
            let (sitting, ended, kept) = killed();
            if let Ok(outcome) = ended {
                assert_eq!(outcome.tally, expected, "{what}");
                assert!(kill > 4 && kept < kill, "{what}: {kept} snapshots");
                break;
            }
            assert!(is_killed(&ended), "{what}: {ended:?}");
            goes_on(&format!("{what}, goes on on the GPU"), &sitting, on_gpu(tuning));
            goes_on(&format!("{what}, goes on on the CPU"), &killed().0, cpu());
        }
    }
    Ok(())
}

fn a_block_goes_back_and_forth() -> Result<(), Failed> {
    // Of as many bins that the CPU keeps it, too, several times.
    for (process, rounds) in [(leaky(1 << 16, "empty"), 150), (capped(20_000, "empty"), 500)] {
        let spec = spec(process, rounds, 3);
        let expected = expected(&spec, cpu()).tally;
        let sitting = Sitting::new(spec);
        let mut kept = [0, 0];
        let last = (0..100).find_map(|turn| {
            let tuning = submissions(20);
            let backend = if turn % 2 == 0 { cpu() } else { on_gpu(tuning) };
            match sitting.run(&mut mortal(backend, 1)).0 {
                Ok(outcome) => Some(outcome),
                killed => {
                    assert!(is_killed(&killed), "{killed:?}");
                    kept[turn % 2] += 1;
                    None
                }
            }
        });
        assert_eq!(last.expect("an end").tally, expected, "{:?}", sitting.spec.process);
        assert!(kept.iter().all(|&kept| kept > 1), "{kept:?} snapshots on the CPU and on the GPU");
    }
    Ok(())
}

/// Has a block in the middle.
struct Given {
    partial: Partial,
    /// Whether it is to be kept after each submission.
    due: bool,
    kept: AtomicUsize,
}

impl Keeper for Given {
    fn resume(&self) -> Option<Partial> {
        Some(self.partial.clone())
    }

    fn is_due(&self) -> bool {
        self.due
    }

    fn keep(&self, _: &Partial) {
        self.kept.fetch_add(1, Ordering::SeqCst);
    }
}

fn replicas_at_different_rounds_go_on_together() -> Result<(), Failed> {
    const REPLICAS: u64 = 21;
    let layout = |layout| Tuning { layout: Some(layout), ..submissions(7) };
    let again = ProcessSpec::Repeated(repeated::Parameters { n: 300, start: "one-bin:500".parse()? });
    for (process, tuning, due) in [
        (leaky(1000, "empty"), layout(Layout::Workgroup), true),
        (leaky(1000, "empty"), layout(Layout::Storage), false),
        (leaky(1000, "random:900"), layout(Layout::Grid), true),
        (again, layout(Layout::Grid), false),
        (capped(500, "mean-field"), submissions(7), true),
        (capped(500, "mean-field"), submissions(7), false),
    ] {
        let what = format!("{process:?}, {:?}, due: {due}", tuning.layout);
        let spec = spec(process, 60, REPLICAS);
        let form = spec.process.build_for(StreamKind::Bins)?;
        let work = spec.work(&form, false);
        let Work::Bins(job) = work else { panic!("single bins") };
        // Some are finished, some not begun, and no two of the others at the same round.
        let mut given = Given { partial: Partial::default(), due, kept: AtomicUsize::new(0) };
        for replica in 0..REPLICAS {
            let round = [60, 0, replica * 11 % 59 + 1][replica as usize % 3];
            if round == 0 {
                given.partial.left.push((replica, None));
                continue;
            }
            let (mut state, mut record) = (vec![0; job.process.words()], Record::default());
            let balls = |state: &[u32]| state.iter().map(|&balls| u128::from(balls)).sum::<u128>();
            job.process.start(job.seed, replica as u32, &mut state);
            given.partial.tally.initial_balls += balls(&state);
            let mut reference = Reference(job.process);
            reference.advance(job.seed, replica as u32, &mut state, 0..round, &job.schedule, &mut record);
            if round == 60 {
                given.partial.tally.final_balls += balls(&state);
                given.partial.tally.add(&record);
            } else {
                let state = state.into_iter().map(u64::from).collect();
                given.partial.left.push((replica, Some(Box::new(Begun { round, state, record }))));
            }
        }
        let control = Control::default();
        let result = gpu(tuning).run_kept(&work, 0..REPLICAS, &control, &given)?;
        assert_eq!(result.tally, expected(&spec, cpu()).tally, "{what}");
        assert_eq!(control.rounds(), REPLICAS * 60, "{what}");
        assert_eq!(given.kept.into_inner() > 0, due, "{what}");
    }
    Ok(())
}

fn a_block_of_several_chunks_goes_on() -> Result<(), Failed> {
    // The counters of such loads leave room for a few replicas at once.
    let spec = spec(leaky(8, "one-bin:5000000"), 30, 10);
    // Whether replicas are finished, and whether others are under way.
    let mut wanted = vec![(false, true), (true, false), (true, true)];
    // Slow submissions are followed by shorter ones, so that there may be more snapshots.
    for kill in 1..100 {
        let sitting = Sitting::new(spec.clone());
        let (ended, _) = sitting.run(&mut mortal(on_gpu(submissions(10)), kill));
        assert!(is_killed(&ended), "{ended:?}; not seen: {wanted:?}");
        let snapshot: serde_json::Value = serde_json::from_slice(&fs::read(sitting.snapshot())?)?;
        let replicas = |of: &str| snapshot[of].as_array().map_or(0, |replicas| replicas.len() as u64);
        let [finished, begun] = [snapshot["tally"]["replicas"].as_u64().unwrap_or(0), replicas("begun")];
        assert!(finished + begun + replicas("fresh") == 10 && begun < 10, "{finished}, {begun}");
        if let Some(found) = wanted.iter().position(|&of| of == (finished > 0, begun > 0)) {
            wanted.swap_remove(found);
            goes_on(&format!("{finished} finished, {begun} begun"), &sitting, on_gpu(submissions(10)));
        }
        if wanted.is_empty() {
            break;
        }
    }
    Ok(())
}

fn a_load_outgrows_its_form_between_snapshots() -> Result<(), Failed> {
    // At lambda = 1 the loads wander; a narrow bin holds 65,535.
    let parameters = Parameters { n: 2, lambda: 1.0, d: 1, start: "each:65490".parse()?, ..Parameters::default() };
    let spec = spec(ProcessSpec::Leaky(parameters), 4000, 3);
    let expected = expected(&spec, cpu()).tally;
    let most = expected.load_per_bin.iter().map(|(load, _)| load).max();
    assert!(most > Some(65_535), "{most:?} is no load that outgrows the form");
    let (ended, events) = Sitting::new(spec.clone()).run(&mut mortal(on_gpu(submissions(100)), 0));
    assert_eq!(ended.expect("a result").tally, expected);
    assert!(events.is_empty(), "{events:?}");
    let sitting = Sitting::killed(spec, on_gpu(submissions(100)));
    let snapshot: serde_json::Value = serde_json::from_slice(&fs::read(sitting.snapshot())?)?;
    let loads = snapshot["begun"].as_array().expect("replicas").iter().flat_map(|begun| begun[2].as_array());
    assert!(loads.flatten().all(|load| load.as_u64() < Some(65_536)), "the first snapshot has outgrown the form");
    goes_on("in the narrow form", &sitting, on_gpu(submissions(100)));
    Ok(())
}

fn a_run_that_is_interrupted_keeps_its_block() -> Result<(), Failed> {
    let mut sitting = Sitting::new(short());
    sitting.every = Duration::from_secs(3600);
    let (control, kept) = (Arc::<Control<'_>>::default(), Arc::<AtomicUsize>::default());
    let interrupted = Some(Arc::clone(&control));
    let pool = Mortal { kept: Arc::clone(&kept), interrupted, ..Mortal::new(on_gpu(submissions(7))) };
    let (ended, events) = sitting.run_under(&control, &mut pool.into());
    assert!(is_killed(&ended) && events.is_empty(), "{ended:?} {events:?}");
    assert_eq!(kept.load(Ordering::SeqCst), 1);
    goes_on("interrupted", &sitting, on_gpu(submissions(7)));
    Ok(())
}

fn a_lost_device_goes_on_from_the_snapshot() -> Result<(), Failed> {
    let expected = expected(&short(), cpu()).tally;
    for losses in [1, 2] {
        let sitting = Sitting::new(short());
        let mut gpu = gpu(submissions(7));
        gpu.inject_losses(4, losses);
        let (ended, events) = sitting.run(&mut Mortal::new(Box::new(gpu)).into());
        assert_eq!(ended.expect("a result").tally, expected);
        let taken_up = events.iter().filter(|event| matches!(event, Event::SnapshotTakenUp { .. })).count();
        assert_eq!((taken_up, events.len()), (losses as usize, 2 * losses as usize), "{events:?}");
    }
    Ok(())
}

fn a_snapshot_that_is_damaged_or_does_not_fit_is_ignored() -> Result<(), Failed> {
    let ignored = |what: &str, sitting: &mut Sitting, reason: &str| {
        sitting.every = Duration::from_secs(3600);
        let (ended, events) = sitting.run(&mut mortal(on_gpu(submissions(7)), 0));
        assert_eq!(ended.expect("a result").tally, expected(&sitting.spec, cpu()).tally, "{what}");
        let [Event::SnapshotIgnored { reason: said, .. }] = &events[..] else { panic!("{what}: {events:?}") };
        assert!(said.contains(reason), "{what}: {said}");
    };
    let whole = fs::read(Sitting::killed(short(), on_gpu(submissions(7))).snapshot())?;
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let other = Sitting::killed(Spec { seed: 6, ..short() }, on_gpu(submissions(7)));
    for bytes in [whole[..whole.len() / 2].to_vec(), flipped, fs::read(other.snapshot())?] {
        let mut sitting = Sitting::new(short());
        fs::write(sitting.snapshot(), bytes)?;
        ignored("damaged", &mut sitting, "its checksum is not that of this run");
    }
    let changes: [fn(&mut Partial); 5] = [
        |partial| change_states(partial, |state| state.truncate(100)),
        |partial| change_states(partial, |state| state[0] += 1 << 32),
        |partial| change_states(partial, |state| state[0] += 1),
        |partial| partial.left[1].0 = partial.left[0].0,
        |partial| partial.left[0].1.iter_mut().for_each(|begun| begun.round = 60),
    ];
    for (case, change) in changes.into_iter().enumerate() {
        let mut sitting = Sitting::new(short());
        let (ended, _) = sitting.run(&mut Mortal { lives: 1, change, ..Mortal::new(on_gpu(submissions(7))) }.into());
        assert!(is_killed(&ended), "case {case}: {ended:?}");
        ignored(&format!("case {case}"), &mut sitting, "its replicas are not those of this block");
    }
    Ok(())
}

fn a_block_that_a_gpu_and_the_cpu_run_leaves_no_snapshot() -> Result<(), Failed> {
    let sitting = Sitting::new(spec(leaky(1 << 14, "empty"), 300, 5));
    let tuning = submissions(10);
    let (ended, events) = sitting.run(&mut Pool::new(vec![on_gpu(tuning), cpu()])?);
    assert_eq!(ended.expect("a result").tally, expected(&sitting.spec, cpu()).tally);
    assert!(events.is_empty(), "{events:?}");
    Ok(())
}

fn no_snapshot_is_larger_than_the_limit() -> Result<(), Failed> {
    let process = ProcessSpec::Leaky(Parameters { n: MOST_LOADS + 1, lambda: 0.001, d: 1, ..Parameters::default() });
    let schedule = Schedule { rounds: 4, burn_in: 0, every: 4, loads_every: 0, measure: Measure::Post };
    let sitting = Sitting::new(Spec { process, seed: 1, replicas: 1, schedule, stopping: None });
    let kept = Arc::new(AtomicUsize::new(0));
    let pool = Mortal { kept: Arc::clone(&kept), ..Mortal::new(on_gpu(submissions(1))) };
    sitting.run(&mut pool.into()).0.expect("a result");
    assert_eq!(kept.load(Ordering::SeqCst), 0);
    Ok(())
}

/// The command, with @ for the folder.
fn command(arguments: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leakybins"));
    command.args(arguments.replace('@', &format!("{}/", folder.display())).split_whitespace());
    command
}

fn the_command_goes_on_on_the_cpu_after_a_signal() -> Result<(), Failed> {
    const RUN: &str = "run leaky --n 1024 --rounds 4000 --replicas 64 --seed 3 --format json";
    const ON_GPU: &str = "--backend gpu --allow-software --snapshot-every 0.2 --out @a.jsonl";
    let folder = tempfile::tempdir()?;
    let mut child =
        command(&format!("{RUN} {ON_GPU}"), folder.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let begun = Instant::now();
    while !folder.path().join("a.jsonl.0.snapshot").exists() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(10));
    }
    let signal = ["-s", "TERM", &child.id().to_string()].map(str::to_owned);
    assert!(Command::new("kill").args(signal).status()?.success());
    let signalled = Instant::now();
    let code = child.wait()?.code();
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said)?;
    assert_eq!(code, Some(75), "{said}");
    assert!(signalled.elapsed() < Duration::from_secs(8), "{:?}", signalled.elapsed());
    // The report of either run has what computed it, and in what time.
    let tallies = |arguments: &str| -> Result<String, Failed> {
        let output = command(&format!("{RUN} --backend cpu {arguments}"), folder.path()).output()?;
        let (said, text) = (String::from_utf8(output.stderr)?, String::from_utf8(output.stdout)?);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("goes on from its snapshot"), arguments.contains("@a"), "{said}");
        let is_kept = |line: &&str| !line.starts_with("  \"elapsed_s\":");
        Ok(text.lines().filter(is_kept).collect::<Vec<_>>().join("\n"))
    };
    assert_eq!(tallies("--out @a.jsonl")?, tallies("--out @b.jsonl")?);
    Ok(())
}

fn the_command_says_where_there_will_be_no_snapshots() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for (n, said) in [("2^24", true), ("2^10", false)] {
        let run = "run leaky --lambda 0.01 --d 1 --rounds 1 --replicas 2 --seed 1 --backend gpu --allow-software";
        let output = command(&format!("{run} --n {n} --out @{n}.jsonl --snapshot-every 1m"), folder.path()).output()?;
        let text = String::from_utf8(output.stderr)?;
        assert!(output.status.success(), "{text}");
        assert_eq!(text.contains("there will be no snapshots: a GPU has"), said, "{n}: {text}");
    }
    Ok(())
}
