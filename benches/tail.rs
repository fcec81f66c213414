//! Time of an island: rare max loads of many bins with two choices, and with one choice.

use criterion::{Criterion, criterion_group, criterion_main};
use leakybins::backend::{Control, StreamKind};
use leakybins::process::ProcessSpec;
use leakybins::process::leaky::Parameters;
use leakybins::stats::interval::Confidence;
use leakybins::tail::{FEWEST_ISLANDS, Question, Spec, run};
use std::hint::black_box;

fn islands(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tail of 32 islands, with the pilot");
    group.sample_size(10);
    for (n, d, level) in [(1_000, 2, 20), (1_000_000, 2, 24), (1_000, 3, 18), (1_024, 1, 400)] {
        let spec = Spec {
            question: Question::Stationary,
            process: ProcessSpec::Leaky(Parameters { n, lambda: 0.95, d, ..Parameters::default() }),
            states: StreamKind::Profile,
            seed: 1,
            levels: vec![level],
            confidence: Confidence::new(0.95).expect("a confidence"),
            rel_err: None,
            max_islands: FEWEST_ISLANDS,
            max_time: None,
        };
        group.bench_function(format!("n {n}, d {d}, level {level}"), |bencher| {
            bencher.iter(|| black_box(run(&spec, &Control::default()).expect("a valid run").rounds));
        });
    }
    group.finish();
}

criterion_group!(benches, islands);
criterion_main!(benches);
