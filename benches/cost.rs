//! Time of a round of the leaky bins against n, for every backend, as a JSON document that `leakybins plot` draws.
//!
//!     cargo bench --bench cost > cost.json && leakybins plot cost.json -o cost.svg
//!
//! lambda = 0.95, one replica on one thread of the CPU, stationary (from the mean field), no round sampled; a GPU, where
//! there is a real one, has 256 replicas at once, and a round of one of them is 1/256 of the time. A measurement is the
//! difference between a long and a short run, so that what happens once is not in it.
//!
//! Limits: bin by bin a round reads and writes each bin and takes d random accesses a ball, so it grows like n; on
//! profiles it takes some binomial numbers for each load that occurs, so it grows like the number of loads.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to a terminal")]

use leakybins::backend::gpu::Gpu;
use leakybins::backend::{Backend, Control, Host, Options, Profiles};
use leakybins::process::leaky::Parameters;
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{Schedule, Spec};
use serde::Serialize;
use std::time::Instant;

const LAMBDA: f64 = 0.95;
const REPEATS: usize = 5;
/// Seconds that the longer run of a measurement should take.
const LONG: f64 = 0.2;
/// Replicas that a GPU has at once.
const GPU_REPLICAS: u64 = 256;

#[derive(Serialize)]
struct Document {
    schema: u32,
    kind: &'static str,
    process: &'static str,
    parameters: Rate,
    series: Vec<Series>,
}

#[derive(Serialize)]
struct Rate {
    lambda: f64,
}

#[derive(Serialize)]
struct Series {
    backend: &'static str,
    d: u64,
    points: Vec<Point>,
}

/// Seconds a round: the median of the repeats, and the least and the largest.
#[derive(Serialize)]
struct Point {
    n: u64,
    seconds: f64,
    low: f64,
    high: f64,
}

/// Seconds that `rounds` rounds of `replicas` replicas take.
fn time(backend: &mut dyn Backend, process: &ProcessSpec, rounds: u64, replicas: u64) -> f64 {
    let schedule = Schedule { rounds, burn_in: 0, every: rounds, loads_every: 0, measure: Measure::Post };
    let spec = Spec { process: process.clone(), seed: 1, replicas, schedule, stopping: None };
    let form = process.build_for(backend.stream()).expect("valid parameters");
    let begun = Instant::now();
    backend.run(&spec.work(&form, false), 0..replicas, &Control::default()).expect("a result");
    begun.elapsed().as_secs_f64()
}

fn measure(backend: &mut dyn Backend, n: u64, d: u64, replicas: u64) -> Point {
    let process =
        ProcessSpec::Leaky(Parameters { n, lambda: LAMBDA, d, start: Start::MeanField, ..Parameters::default() });
    let mut rounds: u64 = 1;
    let mut round = |rounds: u64| {
        (time(backend, &process, 1 + rounds, replicas) - time(backend, &process, 1, replicas)) / rounds as f64
    };
    while round(rounds) * (rounds as f64) < LONG / 2.0 {
        rounds *= 2;
    }
    let mut seconds: Vec<f64> = (0..REPEATS).map(|_| round(rounds) / replicas as f64).collect();
    seconds.sort_by(f64::total_cmp);
    Point { n, seconds: seconds[REPEATS / 2], low: seconds[0], high: seconds[REPEATS - 1] }
}

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first use of the threads");
    let mut backends: Vec<(Box<dyn Backend>, f64, u64)> =
        vec![(Box::new(Profiles), 1e15, 1), (Box::new(Host::cpu()), 1e7, 1), (Box::new(Host::reference()), 1e6, 1)];
    match Gpu::open(&Options::default()) {
        Ok(gpu) => backends.push((Box::new(gpu), 1e7, GPU_REPLICAS)),
        Err(missing) => eprintln!("{missing}"),
    }
    let mut series = Vec::new();
    for (mut backend, largest, replicas) in backends {
        for d in [2, 1] {
            let sizes = (2..16).map(|exponent| 10u64.pow(exponent)).take_while(|&n| n as f64 <= largest);
            let points = sizes.map(|n| measure(&mut *backend, n, d, replicas)).collect();
            series.push(Series { backend: backend.name(), d, points });
        }
    }
    let parameters = Rate { lambda: LAMBDA };
    let document = Document { schema: 1, kind: "cost", process: "leaky", parameters, series };
    println!("{}", serde_json::to_string_pretty(&document).expect("numbers and names"));
}
