//! Time of a round of leaky bins on profiles: one thread, lambda = 0.95, stationary, no round sampled.
//!
//! A round at d = 2 takes about 40 binomial numbers at n = 10^6 and 80 at 10^12, and as many again for the balls that
//! mend the Poisson throw.
//! Goal: at d = 2 under 15 microseconds at n = 10^6 and under 60 at n = 10^12; growth like the number of loads that
//! occur, which is like log n.

use criterion::{Criterion, criterion_group, criterion_main};
use leakybins::process::leaky::{LeakyProfile, Parameters};
use leakybins::profile::{ProfileChain, Thrower, Watch};
use leakybins::rng::stream::Stream;
use leakybins::rng::{Domain, Draws};
use std::time::Duration;

fn profile(c: &mut Criterion) {
    let mut group = c.benchmark_group("profile");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for (exponent, d) in [(3, 2), (6, 2), (9, 2), (12, 2), (15, 2), (3, 1), (6, 1), (12, 1)] {
        let parameters = Parameters { n: 10u64.pow(exponent), lambda: 0.95, d, ..Parameters::default() };
        let process = LeakyProfile::new(&parameters).expect("valid parameters");
        let mut stream = Stream::new(&Draws::new(1, 0, 0), Domain::Start);
        let mut thrower = Thrower::default();
        let mut state = process.start(&mut stream, &mut thrower);
        let mut round = 0;
        let mut step = || {
            stream.restart(&Draws::new(1, 0, round), Domain::Profile);
            round += 1;
            process.round(&mut stream, &mut thrower, &mut state, &mut Watch { loads: &mut |_, _| (), further: None })
        };
        // The relaxation time is near 2 / (1 - lambda)^2 for one choice, and shorter for more.
        for _ in 0..1500 {
            step();
        }
        group.bench_function(format!("n 10^{exponent}, d {d}"), |b| b.iter(&mut step));
    }
    group.finish();
}

criterion_group!(benches, profile);
criterion_main!(benches);
