//! Balls per second of the leaky bins on a GPU, for each layout, product and workgroup size, beside a ceiling. Each
//! combination is compared with the reference in a small run before it is measured.
//!
//! # The ceiling
//! Operations are 32-bit integer instructions of one thread, counted from the shaders as a compiler would emit them:
//! * a 64-bit product: 2 with 64-bit integers (a wide multiply takes two issue slots), 12 from 16-bit limbs;
//! * a Philox round: 2 products, 2 three-input xors, 2 additions to the key; a block: 10 rounds;
//! * a word: 2 to test for rejection; an index: 1 product; a choice after the first: 5 to compare and keep;
//! * a join: 2; a bin at the end of the round: 8.
//!
//! Bytes are those of device memory in the layouts `storage` and `grid`: a random access moves a sector of 32 bytes, a
//! join reads and writes one, a bin is read and written once a round. In the layout `workgroup` there are none.
//! The ceiling is the smaller of operations a second over operations a ball and bytes a second over bytes a ball; it
//! leaves out workgroup memory, barriers, caches (which hold small loads, so that speeds above the bytes' ceiling are
//! possible there) and rounds too small to fill the device.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to a terminal")]

use clap::Parser;
use leakybins::backend::gpu::compose::{Layout, Multiply, Unit};
use leakybins::backend::gpu::{Gpu, Tuning};
use leakybins::backend::{Backend, BackendError, Control, Job, Options, Work};
use leakybins::process::leaky::{Leaky, Parameters};
use leakybins::process::{Measure, Process};
use leakybins::rng::bounded::Packing;
use leakybins::run::Schedule;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LAMBDA: f64 = 0.95;

#[derive(Debug, Parser)]
struct Arguments {
    /// Adapter by index, part of its name, or pci:ADDRESS
    #[arg(long)]
    gpu: Option<String>,
    /// Measure a software adapter where there is no other
    #[arg(long)]
    allow_software: bool,
    /// Fewer and shorter measurements
    #[arg(long)]
    quick: bool,
    /// Write all rows to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// 32-bit integer operations that the device does in a second
    #[arg(long)]
    int_ops_per_s: Option<f64>,
    /// Bytes that its memory moves in a second
    #[arg(long)]
    bytes_per_s: Option<f64>,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    n: u64,
    d: u64,
    layout: String,
    product: &'static str,
    workgroup: u32,
    replicas: u64,
    rounds: u64,
    /// Best, median and worst of the runs.
    balls_per_s: [f64; 3],
    operations_per_ball: f64,
    bytes_per_ball: f64,
    ceiling: Option<f64>,
}

/// Integer operations and bytes of device memory that a ball takes; see the top of this file.
fn cost(packing: &Packing, layout: Layout, multiply: Multiply) -> (f64, f64) {
    let product = match multiply {
        Multiply::Int64 => 2.0,
        Multiply::Limbs16 => 12.0,
    };
    let block = 10.0 * (2.0 * product + 4.0);
    let unit = Unit::new(packing);
    let (choices, balls) = (f64::from(packing.choices), f64::from(unit.balls));
    let words = f64::from(packing.words_per_ball) / f64::from(packing.balls_per_word);
    let bins_per_ball = 1.0 / LAMBDA;
    let operations = block * f64::from(unit.blocks) / balls
        + 2.0 * words
        + product * choices
        + 5.0 * (choices - 1.0)
        + 2.0
        + 8.0 * bins_per_ball;
    let looks = if packing.choices == 1 { 0.0 } else { choices };
    let bytes = match layout {
        Layout::Workgroup => 0.0,
        Layout::Storage | Layout::Grid => 32.0 * looks + 64.0 + 8.0 * bins_per_ball,
    };
    (operations, bytes)
}

fn schedule(rounds: u64) -> Schedule {
    Schedule { rounds, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post }
}

/// Seconds and balls of one run.
fn time(gpu: &mut Gpu, process: &Leaky, replicas: u64, rounds: u64) -> Result<(f64, f64), BackendError> {
    let work = Work::Bins(Job { process, seed: 1, schedule: schedule(rounds), keep_loads: false });
    let begun = Instant::now();
    let result = gpu.run(&work, 0..replicas, &Control::default())?;
    Ok((begun.elapsed().as_secs_f64(), result.tally.flow.arrived as f64))
}

fn measure(arguments: &Arguments, n: u64, d: u64, tuning: Tuning) -> Result<Row, BackendError> {
    let options = Options {
        gpu: arguments.gpu.clone(),
        allow_software: arguments.allow_software,
        submit_budget: Duration::from_millis(100),
        tuning,
    };
    let mut gpu = Gpu::open(&options)?;
    gpu.self_check()?;
    let process = Leaky::new(&Parameters { n, lambda: LAMBDA, d, ..Parameters::default() }).expect("valid parameters");
    // Enough replicas to fill a large GPU where the layout has one workgroup for each.
    let bins: u64 = if arguments.quick { 1 << 17 } else { 1 << 24 };
    let replicas = (bins / n).clamp(1, 16_384);
    let (seconds, runs) = if arguments.quick { (0.1, 1) } else { (1.0, 3) };
    // Compiles, then finds out how many rounds take the time wanted.
    time(&mut gpu, &process, replicas, 1)?;
    let mut rounds = 2;
    while rounds < 1 << 30 {
        let (elapsed, _) = time(&mut gpu, &process, replicas, rounds)?;
        if elapsed > seconds / 2.0 {
            break;
        }
        rounds = (rounds as f64 * (0.8 * seconds / elapsed).clamp(2.0, 16.0)) as u64;
    }
    let mut speeds = Vec::new();
    for _ in 0..runs {
        let (elapsed, balls) = time(&mut gpu, &process, replicas, rounds)?;
        speeds.push(balls / elapsed);
    }
    speeds.sort_by(f64::total_cmp);
    let (layout, multiply) = (tuning.layout.expect("given"), tuning.multiply.expect("given"));
    let (operations, bytes) = cost(&process.kernel().packing, layout, multiply);
    let by_operations = arguments.int_ops_per_s.map(|s| s / operations);
    let by_bytes = arguments.bytes_per_s.filter(|_| bytes > 0.0).map(|s| s / bytes);
    let ceiling = match (by_operations, by_bytes) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok(Row {
        n,
        d,
        layout: format!("{layout:?}").to_lowercase(),
        product: if multiply == Multiply::Int64 { "64" } else { "16" },
        workgroup: tuning.workgroup.expect("given"),
        replicas,
        rounds,
        balls_per_s: [speeds[speeds.len() - 1], speeds[speeds.len() / 2], speeds[0]],
        operations_per_ball: operations,
        bytes_per_ball: bytes,
        ceiling,
    })
}

fn main() -> Result<(), anyhow::Error> {
    let arguments = Arguments::parse();
    let gpu = Gpu::open(&Options {
        gpu: arguments.gpu.clone(),
        allow_software: arguments.allow_software,
        ..Options::default()
    })?;
    let adapter = gpu.summary().clone();
    drop(gpu);
    println!("{adapter}");
    println!(
        "{:>8} {:>2} {:>9} {:>3} {:>4} {:>8} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "n", "d", "layout", "mul", "wg", "replicas", "Mballs/s", "median", "worst", "ops/ball", "B/ball", "ceiling"
    );
    let sizes: &[u64] = if arguments.quick { &[256, 1024, 100_000] } else { &[256, 1024, 4096, 100_000, 1_000_000] };
    let workgroups: &[u32] = if arguments.quick { &[64, 256] } else { &[64, 128, 256, 512] };
    let mut rows = Vec::new();
    for &n in sizes {
        for d in [1, 2] {
            for layout in Layout::ALL {
                for multiply in Multiply::ALL {
                    for &workgroup in workgroups {
                        let tuning = Tuning {
                            layout: Some(layout),
                            multiply: Some(multiply),
                            workgroup: Some(workgroup),
                            ..Tuning::default()
                        };
                        let row = match measure(&arguments, n, d, tuning) {
                            Ok(row) => row,
                            Err(BackendError::Unsupported(reason)) => {
                                println!("{n:>8} {d:>2} {layout:?} {multiply:?} {workgroup}: left out ({reason})");
                                continue;
                            }
                            Err(error) => return Err(error.into()),
                        };
                        let [best, median, worst] = row.balls_per_s.map(|s| s / 1e6);
                        let ceiling = row.ceiling.map_or_else(|| "-".to_owned(), |c| format!("{:.0}", c / 1e6));
                        println!(
                            "{n:>8} {d:>2} {:>9} {:>3} {workgroup:>4} {:>8} {best:>9.1} {median:>8.1} {worst:>8.1} \
                             {:>9.1} {:>9.1} {ceiling:>9}",
                            row.layout, row.product, row.replicas, row.operations_per_ball, row.bytes_per_ball
                        );
                        rows.push(row);
                    }
                }
            }
        }
    }
    if let Some(path) = &arguments.json {
        let report = serde_json::json!({ "adapter": adapter, "lambda": LAMBDA, "rows": rows });
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}
