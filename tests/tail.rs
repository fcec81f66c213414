//! Rare max loads against exact laws, against plain runs, and the coverage of their intervals.
//!
//! Statistical tests use fixed seeds and compare at 4 standard errors (of the islands), so that a test with another seed
//! fails by bad luck with probability below 1e-4 a comparison; each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::backend::Control;
use leakybins::process::ProcessSpec;
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::stats::interval::Confidence;
use leakybins::stats::special::student;
use leakybins::tail::{Estimate, Method, Outcome, Spec, run};
use leakybins::theory::SmallChain;

/// Standard errors that an estimate may be off by.
const BOUND: f64 = 4.0;

fn spec(parameters: Parameters, levels: impl IntoIterator<Item = u64>, islands: u64) -> Spec {
    Spec {
        process: ProcessSpec::Leaky(parameters),
        seed: 1,
        levels: levels.into_iter().collect(),
        confidence: Confidence::new(0.95).expect("a confidence"),
        rel_err: None,
        max_islands: islands,
        max_time: None,
    }
}

fn estimate(spec: &Spec) -> Outcome {
    run(spec, &Control::default()).expect("a valid run")
}

/// Standard error of an estimate over the estimate.
fn relative_error(level: &Estimate, islands: u64) -> f64 {
    level.rel_err.expect("islands differ") / student::upper_quantile(0.025, islands - 1)
}

/// Compares every level with its exact probability; returns the lowest probability.
fn assert_exact(what: &str, outcome: &Outcome, exact: impl Fn(u64) -> f64) -> f64 {
    let mut lowest = 1.0f64;
    for level in &outcome.levels {
        let (p, error) = (exact(level.k), relative_error(level, outcome.islands));
        let z = (level.probability / p - 1.0) / error;
        println!(
            "{what}, k {}: {:.4e} for {p:.4e}, error {:.2} %, z {z:.2}, bound {BOUND}",
            level.k,
            level.probability,
            100.0 * error
        );
        assert!(z.abs() < BOUND, "{what}, k {}: {} for {p}, z {z:.2}", level.k, level.probability);
        lowest = lowest.min(p);
    }
    lowest
}

#[test]
fn few_bins_have_the_exact_stationary_tail() {
    for (n, lambda, d, arrivals) in [
        (2, 0.75, 1, Arrivals::Binomial),
        (2, 0.75, 2, Arrivals::Binomial),
        (3, 0.75, 1, Arrivals::Poisson),
        (3, 0.75, 2, Arrivals::Binomial),
        (3, 0.75, 3, Arrivals::Poisson),
        (3, 0.8, 2, Arrivals::Fixed),
        (3, 0.75, 2, Arrivals::Poisson),
        (4, 0.5, 2, Arrivals::Binomial),
        (4, 0.5, 3, Arrivals::Binomial),
    ] {
        let parameters = Parameters { n, lambda, d, arrivals, ..Parameters::default() };
        let cap = if d == 1 { 60 } else { 24 };
        let law = SmallChain::new(&parameters, cap).expect("a small chain").stationary().expect("it settles");
        let exceedance = |k: u64| law.max_load[k as usize..].iter().rev().sum::<f64>();
        let highest = (1..).take_while(|&k| exceedance(k) > 1e-13).last().expect("some level");
        let outcome = estimate(&spec(parameters.clone(), 1..=highest, 64));
        println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        let lowest = assert_exact(&format!("{parameters:?}"), &outcome, exceedance);
        assert!(lowest < 1e-12, "the levels reach far: {lowest:e}");
    }
}
