//! Leaky bins with two choices on one core: leakybins against the tuned C++ program in `benches/compare/`, in turn.
//!
//! Run it pinned, with `benches/compare/compare.sh`. Goal: faster than the fastest C++ variant at both sizes.

use leakybins::process::leaky::{Leaky, Parameters};
use leakybins::process::{Measure, Process};
use leakybins::run::Schedule;
use leakybins::stats::Record;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const REPEATS: usize = 9;
const LAMBDA: f64 = 0.95;
/// Bins, rounds of a repeat, rounds before it.
const SIZES: [(u64, u64, u64); 2] = [(1024, 80_000, 1000), (1_000_000, 80, 5)];
const GENERATORS: [&str; 6] = ["xo8", "xo8-w16", "ph8", "ph8-w16", "ph16", "ph16-w16"];

/// Millions of balls a second of leakybins.
fn ours(n: u64, rounds: u64, warmup: u64) -> f64 {
    let process =
        Leaky::new(&Parameters { n, lambda: LAMBDA, d: 2, ..Parameters::default() }).expect("valid parameters");
    let schedule =
        Schedule { rounds: warmup + rounds, burn_in: warmup, every: 1, loads_every: 0, measure: Measure::Post };
    let mut loads = vec![0; n as usize];
    let mut record = Record::default();
    let mut runner = process.runner();
    let begun = Instant::now();
    runner.advance(1, 0, &mut loads, 0..schedule.rounds, &schedule, &mut record);
    record.flow.arrived as f64 / begun.elapsed().as_secs_f64() / 1e6
}

/// Millions of balls a second of the C++ program, or `None` where its build has no such generator.
fn theirs(program: &Path, generator: &str, n: u64, rounds: u64, warmup: u64) -> io::Result<Option<f64>> {
    let arguments = [n.to_string(), LAMBDA.to_string(), rounds.to_string(), warmup.to_string()];
    let output = Command::new(program).arg(generator).args(arguments).args(["1", "1"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split_whitespace().find_map(|word| word.strip_prefix("Mballs_per_s=")?.parse().ok()))
}

fn compile() -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/compare/leaky_fast.cpp");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leaky_fast");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(&compiler);
    command
        .args(["-O3", "-march=native", "-std=c++17"])
        .args(cfg!(target_arch = "x86_64").then_some("-mprefer-vector-width=512"))
        .arg(source)
        .arg("-o")
        .arg(&program);
    let done =
        command.status().map_err(|e| io::Error::other(format!("{compiler}: {e}; name a C++ compiler in CXX")))?;
    if done.success() { Ok(program) } else { Err(io::Error::other(format!("{compiler} failed ({done})"))) }
}

fn main() -> io::Result<()> {
    let program = compile()?;
    let mut out = io::stdout();
    for (n, rounds, warmup) in SIZES {
        let fits = |generator: &&str| !generator.ends_with("-w16") || (n.is_power_of_two() && n <= 65_536);
        let mut speeds: Vec<(&str, Vec<f64>)> = vec![("leakybins", Vec::new())];
        speeds.extend(GENERATORS.into_iter().filter(fits).map(|generator| (generator, Vec::new())));
        for _ in 0..REPEATS {
            for (name, seen) in &mut speeds {
                match *name {
                    "leakybins" => seen.push(ours(n, rounds, warmup)),
                    generator => seen.extend(theirs(&program, generator, n, rounds, warmup)?),
                }
            }
        }
        speeds.retain(|(_, seen)| !seen.is_empty());
        writeln!(out, "n = {n}, lambda = {LAMBDA}, d = 2; millions of balls a second, {REPEATS} repeats in turn")?;
        writeln!(out, "{:<10} {:>8} {:>8}  best of leakybins to this", "", "best", "median")?;
        for (_, seen) in &mut speeds {
            seen.sort_by(|a, b| b.total_cmp(a));
        }
        let best = speeds[0].1[0];
        for (name, seen) in &speeds {
            writeln!(out, "{name:<10} {:>8.1} {:>8.1}  {:.2}", seen[0], seen[seen.len() / 2], best / seen[0])?;
        }
    }
    Ok(())
}
