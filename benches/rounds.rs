//! Balls a second of the fast path: one thread, every round sampled. Leaky bins at lambda = 0.95, repeated
//! balls-into-bins with a ball a bin, Tetris at lambda = 3/4.
//!
//! Limit, for n = 1024 and d = 2, where a word holds a ball's two choices: a ball takes 4.7 vector operations of
//! Philox, 1.9 to turn its word into indices, 0.7 in the pass over the bins, and 9.5 scalar ones with 3.5 loads and a
//! store for the choice itself. That is 17 operations, 2.8 cycles on a core that starts six a cycle (Zen 3).
//! For n = 10^6 a ball takes two words, and two random lines from the second- or third-level cache.
//! Goal: with AVX-512 at least 650 million balls/s at n = 1024 and 230 million at n = 10^6, d = 2; of repeated
//! balls-into-bins and Tetris at least 400 million at n = 1024 with AVX2.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec, repeated, tetris};
use leakybins::run::Schedule;
use leakybins::stats::Record;
use std::time::{Duration, Instant};

const CASES: [(u64, u64); 12] = [
    (16, 2),
    (64, 2),
    (256, 2),
    (1000, 2),
    (1000, 3),
    (1024, 1),
    (1024, 2),
    (1024, 3),
    (4096, 2),
    (100_000, 2),
    (1_000_000, 1),
    (1_000_000, 2),
];

fn rounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("rounds");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let leaky = CASES.map(|(n, d)| {
        let parameters = Parameters { n, lambda: 0.95, d, ..Parameters::default() };
        (format!("leaky, n {n}, d {d}"), ProcessSpec::Leaky(parameters))
    });
    let others = [1024, 1_000_000].into_iter().flat_map(|n| {
        let repeated = ProcessSpec::Repeated(repeated::Parameters { n, ..Default::default() });
        let tetris = ProcessSpec::Tetris(tetris::Parameters { n, ..Default::default() });
        [repeated, tetris].map(|process| (format!("{}, n {n}", process.name()), process))
    });
    for (name, process) in leaky.into_iter().chain(others) {
        let (n, process) = (process.bins(), process.build().expect("valid parameters"));
        let schedule = Schedule { rounds: 1 << 40, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
        let mut runner = process.runner();
        let mut loads = vec![0; process.words()];
        process.start(1, 0, &mut loads);
        let mut next = 0;
        // About as long as the calls that the backend makes.
        let step = 4_000_000 / n;
        let balls = process.expected_balls() * step as f64;
        group.throughput(Throughput::Elements(balls as u64));
        group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let mut record = Record::default();
                let begun = Instant::now();
                for _ in 0..times {
                    runner.advance(1, 0, &mut loads, next..next + step, &schedule, &mut record);
                    next += step;
                }
                begun.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, rounds);
criterion_main!(benches);
