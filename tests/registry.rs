//! Every process of the registry has what a process must have, and keeps what all processes promise.
//!
//! A process that lacks something fails here, and the message names the file to write.

mod common;

use common::{Case, compare, reference, samples};
use leakybins::backend::{Backend, Control, Host, Profiles, StreamKind};
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::rng::{Draws, STREAM_VERSION};
use leakybins::run::{Schedule, Spec};
use leakybins::stats::Flow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn processes() -> impl Iterator<Item = ProcessSpec> {
    ProcessSpec::all().into_iter()
}

#[test]
fn names_are_those_of_the_specification_and_no_two_are_alike() {
    let mut names = BTreeSet::new();
    for process in processes() {
        let written = serde_json::to_value(&process).expect("plain values");
        assert_eq!(written["process"], process.name());
        assert!(names.insert(process.name()), "{} twice", process.name());
        assert_eq!(serde_json::from_value::<ProcessSpec>(written).expect("it reads back"), process);
    }
}

/// Against implementations written apart from these, in Python. A difference is a change of the drawn bits and must
/// raise `STREAM_VERSION`.
#[test]
fn known_answers() {
    assert_eq!(STREAM_VERSION, 1, "write tests/kat/*.jsonl for the new stream");
    for process in processes() {
        let path = format!("tests/kat/{}.jsonl", process.name());
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("{path}: {e}; write known answers with tests/kat/make_stream.py"));
        assert!(text.lines().count() >= 4, "{path} has few lines");
        for line in text.lines() {
            let answer: Value = serde_json::from_str(line).expect("an object a line");
            let number = |name: &str| answer[name].as_u64().unwrap_or_else(|| panic!("{path}: {name} in {line}"));
            let spec = serde_json::json!({ "process": answer["process"], "parameters": answer["parameters"] });
            let spec: ProcessSpec = serde_json::from_value(spec).expect("a process");
            assert_eq!(spec.name(), process.name());
            let built = spec.build().expect("valid parameters");
            let (seed, replica) = (number("seed"), number("replica") as u32);
            let mut state = vec![0; built.words()];
            built.start(seed, replica, &mut state);
            let mut flow = Flow::default();
            for round in number("first_round")..number("first_round") + number("rounds") {
                flow.add(built.round(&Draws::new(seed, replica, round), &mut state, None));
            }
            let fnv1a = |hash: u64, balls: &u32| (hash ^ u64::from(*balls)).wrapping_mul(0x100_0000_01B3);
            let digest = state.iter().fold(0xCBF2_9CE4_8422_2325, fnv1a);
            assert_eq!(flow.arrived, u128::from(number("arrived")), "{line}");
            assert_eq!(flow.departed, u128::from(number("departed")), "{line}");
            assert_eq!(digest, number("digest"), "{line}");
        }
    }
}

/// The fast path against the definition, every sampled number and every load; `tests/parity.rs` has the GPU.
#[test]
fn the_fast_path_gives_the_bits_of_the_definition() {
    for process in processes() {
        for sample in samples(process.name()) {
            let measures = [Measure::Pre, Measure::Post].into_iter().filter(|&at| sample.measured(at).is_some());
            for measure in measures {
                for (burn_in, every, loads_every) in [(2, 3, 2), (0, 1, 1), (0, 1, 0)] {
                    let rounds = if sample.bins() > 50_000 { 12 } else { 150 };
                    let mut case = Case::of(sample.clone(), rounds, 3);
                    case.schedule = Schedule { rounds, burn_in, every, loads_every, measure };
                    let fast = case.run(&mut Host::cpu());
                    compare(&case, &fast, &reference(&case)).unwrap_or_else(|e| panic!("{e:?}"));
                }
            }
        }
    }
}

/// Balls are conserved on every stream (backends refuse to answer otherwise), sampled numbers agree with each other, and
/// a closed process keeps its balls.
#[test]
fn conservation() {
    for process in processes() {
        for sample in samples(process.name()) {
            let rounds = if sample.bins() > 50_000 { 5 } else { 60 };
            let schedule = Schedule { rounds, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
            let spec = Spec { process: sample.clone(), seed: 5, replicas: 4, schedule, stopping: None };
            let n = u128::from(sample.bins());
            for stream in [StreamKind::Bins, StreamKind::Profile] {
                let form = sample.build_for(stream).expect("valid parameters");
                let mut backend: Box<dyn Backend> = match stream {
                    StreamKind::Bins => Box::new(Host::reference()),
                    StreamKind::Profile => Box::new(Profiles),
                };
                let tally = backend.run(&spec.work(&form, false), 0..4, &Control::default()).expect("a result").tally;
                let samples = 4 * rounds;
                assert_eq!(tally.samples(), samples, "{sample:?}");
                assert_eq!(tally.load_per_bin.total(), n * u128::from(samples), "{sample:?}");
                assert_eq!(tally.load_per_bin.sum(), tally.total_load.samples.sum, "{sample:?}");
                assert_eq!(tally.load_per_bin.count(0), tally.empty_bins.samples.sum, "{sample:?}");
                assert_eq!(tally.load_per_bin.max(), tally.max_load.max(), "{sample:?}");
                if sample.is_closed() {
                    let balls = tally.initial_balls / 4;
                    assert_eq!(tally.final_balls, tally.initial_balls, "{sample:?}");
                    assert_eq!(tally.flow.arrived, tally.flow.departed, "{sample:?}");
                    assert_eq!(u128::from(tally.total_load.samples.min), balls, "{sample:?}");
                    assert_eq!(u128::from(tally.total_load.samples.max), balls, "{sample:?}");
                }
            }
        }
    }
}

#[test]
fn impossible_parameters_are_refused_and_never_panic() {
    for process in processes() {
        for start in ["file:/nowhere/loads.txt", "each:2147483648", "one-bin:2147483648"] {
            let other = process.with_start(start.parse::<Start>().expect("a start"));
            assert_eq!(other.start().to_string(), start);
            // What a start of balls without number means is for the process to say.
            assert!(other.build().is_err() || !start.starts_with("file"), "{start}");
            let _ = (other.warnings(), other.labels(), other.expected_balls(), other.autocorrelation_rounds());
        }
    }
}

#[test]
fn every_process_has_an_exact_oracle() {
    for process in processes() {
        let path = format!("tests/oracles/{}.json", process.name());
        let exists = Path::new(&path).is_file();
        assert!(exists, "{path} is missing: exact values, with the script that made them, for tests/oracle.rs");
        let tests = std::fs::read_to_string("tests/oracle.rs").expect("a text file");
        assert!(tests.contains(&path["tests/".len()..]), "tests/oracle.rs does not use {path}");
    }
}

#[test]
fn every_process_is_documented_with_an_example_that_runs() {
    for process in processes() {
        let name = process.name();
        let path = format!("docs/processes/{name}.md");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("{path}: {e}; say there what a round is, what is known, and how it is run"));
        let example = text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(&format!("leakybins run {name}")))
            .unwrap_or_else(|| panic!("{path} has no line with an example, leakybins run {name} .."));
        let ended = Command::new(env!("CARGO_BIN_EXE_leakybins"))
            .args(example.split_whitespace().skip(1))
            .args(["--replicas", "2", "--rounds", "20", "--burn-in", "0", "--quiet", "--backend", "cpu", "--seed", "1"])
            .output()
            .expect("it starts");
        assert!(ended.status.success(), "{example}: {}", String::from_utf8_lossy(&ended.stderr));
        let readme = std::fs::read_to_string("README.md").expect("a text file");
        assert!(readme.contains(&path), "README.md does not link {path}");
    }
}

/// No command knows a process by name: each takes all of them, in all its forms.
#[test]
fn every_command_takes_every_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: String| folder.path().join(name).display().to_string();
    for process in processes() {
        let name = process.name();
        let (journal, picture) = (at(format!("{name}.jsonl")), at(format!("{name}.svg")));
        let run = format!("run {name} --n 64 --rounds 40 --replicas 20 --seed 1 --backend cpu --quiet");
        let commands = [
            run.clone(),
            format!("{run} --plot {picture}"),
            format!("{run} --format csv"),
            format!("{run} --out {journal}"),
            format!("report {journal} --format json"),
            format!("verify {journal} --seed 1"),
            format!("{run} --print-spec"),
            format!("run {name} --n 64 --rounds 3000 --replicas 4 --burn-in auto --seed 1 --backend cpu --quiet"),
            format!("run {name} --n 64 --rounds 40 --replicas 20 --seed 1 --backend profile --quiet"),
            format!("sweep {name} --n 16,32 --balls 1e5 --seed 1 --backend cpu --plot {picture} --at 3 --quiet"),
            format!("recover {name} --n 64 --start one-bin:100 --replicas 8 --seed 1 --quiet --plot {picture}"),
            format!("theory {name} --n 64"),
            format!("theory {name} --n 64 --plot {picture}"),
        ];
        for command in commands {
            let ended = Command::new(env!("CARGO_BIN_EXE_leakybins"))
                .args(command.split_whitespace())
                .output()
                .expect("it starts");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "leakybins {command}: {said}");
            assert!(!ended.stdout.is_empty() || command.contains("--plot"), "leakybins {command}");
            if !command.contains("--format") {
                let text = String::from_utf8_lossy(&ended.stdout);
                let fits = |line: &str| line.chars().count() <= 80 && !line.ends_with(' ');
                assert!(text.lines().all(fits), "leakybins {command}:\n{text}");
            }
        }
        let refused = Command::new(env!("CARGO_BIN_EXE_leakybins"))
            .args(format!("run {name} --n 64 --rounds 10 --measure pre --quiet --backend cpu").split_whitespace())
            .output()
            .expect("it starts");
        assert_eq!(refused.status.success(), process.measured(Measure::Pre).is_some(), "{name}");
    }
}
