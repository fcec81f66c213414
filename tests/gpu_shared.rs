//! A GPU and the CPU at one queue of blocks give the bytes that either gives alone.

mod common;

use common::{Case, gpu, options, run_on_gpu};
use leakybins::backend::gpu::{Gpu, Tuning};
use leakybins::backend::{Backend, BackendError, BlockResult, Choice, Control, Host, Keeper, Pool, Work, open};
use leakybins::run::{Spec, run};
use libtest_mimic::Failed;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn main() {
    run_on_gpu(&[
        ("the_cpu_and_a_gpu_share_a_run", the_cpu_and_a_gpu_share_a_run),
        ("a_lost_gpu_leaves_its_blocks_to_the_cpu", a_lost_gpu_leaves_its_blocks_to_the_cpu),
        ("all_opens_what_there_is", all_opens_what_there_is),
        ("the_command_gives_the_same_bytes_on_all", the_command_gives_the_same_bytes_on_all),
    ]);
}

/// Two blocks.
fn spec() -> Spec {
    let case = Case::new(16, 2, 6, 1);
    Spec { process: case.process, seed: 5, replicas: 17_000, schedule: case.schedule, stopping: None }
}

/// The GPU counts its blocks; the CPU begins when there is one.
struct Taught<B> {
    backend: B,
    done: Arc<AtomicUsize>,
}

impl Backend for Taught<Gpu> {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        let result = self.backend.run(work, block, control);
        self.done.fetch_add(1, Ordering::SeqCst);
        result
    }

    fn renew(&mut self) -> Result<(), BackendError> {
        self.backend.renew()
    }
}

impl Backend for Taught<Host> {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        while self.done.load(Ordering::SeqCst) == 0 && !control.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        self.backend.run(work, block, control)
    }
}

fn shared(losses: u32) -> Result<(String, usize), Failed> {
    let spec = spec();
    let (mut loads, mut same_loads) = (Vec::new(), Vec::new());
    let alone = run(&spec, &mut Host::cpu().into(), &Control::default(), Some(&mut loads), &mut |_| ())?;
    let done = Arc::new(AtomicUsize::new(0));
    let mut gpu = gpu(Tuning::default());
    gpu.inject_losses(0, losses);
    let gpu = Taught { backend: gpu, done: Arc::clone(&done) };
    let cpu = Taught { backend: Host::cpu(), done };
    let mut pool = Pool::new(vec![Box::new(gpu), Box::new(cpu)])?;
    let control = Control::default();
    let both = run(&spec, &mut pool, &control, Some(&mut same_loads), &mut |_| ())?;
    assert_eq!(both.tally, alone.tally);
    assert!(loads == same_loads, "the loads differ");
    assert_eq!(control.rounds(), spec.replicas * spec.schedule.rounds);
    Ok((both.machine.map_or_else(String::new, |machine| machine.backend), pool.machines().len()))
}

fn the_cpu_and_a_gpu_share_a_run() -> Result<(), Failed> {
    let (backend, left) = shared(0)?;
    assert!(backend.starts_with("gpu") && left == 2, "{backend}");
    Ok(())
}

fn a_lost_gpu_leaves_its_blocks_to_the_cpu() -> Result<(), Failed> {
    // It may have no time for its second loss.
    let (backend, left) = shared(u32::MAX)?;
    assert!(backend == "cpu" && (1..=2).contains(&left), "{backend}");
    Ok(())
}

fn all_opens_what_there_is() -> Result<(), Failed> {
    let any = leakybins::backend::Options { gpu: None, ..options(Tuning::default()) };
    let names =
        |choice| Ok::<_, Failed>(open(choice, &any)?.machines().into_iter().map(|m| m.backend).collect::<Vec<_>>());
    let all = names(Choice::All)?;
    let (cpu, gpus) = all.split_last().expect("a pool has a backend");
    assert!(cpu == "cpu" && !gpus.is_empty() && gpus.iter().all(|name| name == "gpu"), "{all:?}");
    assert_eq!(names(Choice::Gpu)?, ["gpu"]);
    Ok(())
}

/// The JSON of a run of the command, without what computed it and in what time.
fn output(arguments: &str, folder: &Path) -> String {
    let arguments = arguments.replace('@', &format!("{}/", folder.display()));
    let output = Command::new(env!("CARGO_BIN_EXE_leakybins"))
        .args("run leaky --n 16 --rounds 6 --seed 3 --format json".split_whitespace())
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let is_kept = |line: &&str| {
        !["backend", "adapter", "elapsed_s"].iter().any(|name| line.starts_with(&format!("  \"{name}\":")))
    };
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

fn the_command_gives_the_same_bytes_on_all() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for (number, run) in ["--replicas 17e3", "--replicas 1000 --rel-err 0.3 --at 4"].into_iter().enumerate() {
        let alone = output(&format!("{run} --backend cpu"), folder.path());
        for (i, backend) in ["all", "gpu --gpu all"].into_iter().enumerate() {
            let shared = format!("{run} --backend {backend} --allow-software");
            assert_eq!(output(&shared, folder.path()), alone, "{shared}");
            assert_eq!(output(&format!("{shared} --out @{number}-{i}.jsonl"), folder.path()), alone, "{shared}");
        }
    }
    Ok(())
}
