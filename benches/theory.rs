//! How long predictions take.

use criterion::{Criterion, criterion_group, criterion_main};
use leakybins::process::Measure;
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::theory::When;
use leakybins::theory::leaky::predict;

fn theory(c: &mut Criterion) {
    let mut group = c.benchmark_group("theory");
    group.sample_size(20);
    let gaps = [("0.9", 0.1), ("1-1e-9", 1e-9)];
    for d in [1, 2, 16, 256] {
        for (name, gap) in gaps {
            let arrivals = Arrivals::Poisson;
            let parameters = Parameters { n: 1 << 20, lambda: 1.0 - gap, d, arrivals, ..Default::default() };
            let ask = || predict(&parameters, When::Stationary, Measure::Post).expect("a prediction");
            group.bench_function(format!("stationary, d {d}, lambda {name}"), |b| b.iter(ask));
        }
    }
    for d in [1, 2] {
        let parameters = Parameters { lambda: 0.95, d, ..Default::default() };
        let ask = || predict(&parameters, When::Round(100), Measure::Post).expect("a prediction");
        group.bench_function(format!("100 rounds from empty, d {d}, lambda 0.95"), |b| b.iter(ask));
    }
    group.finish();
}

criterion_group!(benches, theory);
criterion_main!(benches);
