//! The burn-in that a pilot finds, against the exact law of a bin after that many rounds.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::backend::Control;
use leakybins::process::leaky::Parameters;
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{BurnIn, Schedule, Spec};
use leakybins::theory::Transient;
use leakybins::theory::When;
use leakybins::theory::leaky::predict;

fn find(parameters: &Parameters, rounds: u64) -> BurnIn {
    let schedule = Schedule { rounds, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
    let process = ProcessSpec::Leaky(parameters.clone());
    let spec = Spec { process, seed: 1, replicas: 256, schedule, stopping: None };
    BurnIn::find(&spec, &Control::default()).expect("a burn-in below the rounds")
}

/// Relative distance of the mean load from its stationary value after each of `rounds` rounds.
fn bias(parameters: &Parameters, rounds: &[u64]) -> Vec<f64> {
    let stationary = predict(parameters, When::Stationary, Measure::Post).expect("a law").bins.mean_load();
    let mut bins = Transient::new(parameters).expect("valid parameters");
    let of = |&round: &u64| {
        while bins.round() < round {
            bins.step();
        }
        bins.after_deletions().mean_load() / stationary - 1.0
    };
    rounds.iter().map(of).collect()
}

/// From empty, the burn-in leaves a bias below 2 %, and an eighth of it would not.
#[test]
fn the_burn_in_is_of_the_right_order() {
    for (n, d, lambda) in
        [(64, 1, 0.5), (1024, 1, 0.5), (1024, 1, 0.9), (1024, 2, 0.5), (64, 2, 0.9), (1024, 2, 0.9), (1024, 2, 0.99)]
    {
        let parameters = Parameters { n, d, lambda, ..Parameters::default() };
        let found = find(&parameters, 1_000_000);
        let biases = bias(&parameters, &[found.rounds / 8, found.rounds]);
        println!(
            "n {n}, d {d}, lambda {lambda}: {found}; bias {:+.4} an eighth of the way, {:+.4} then",
            biases[0], biases[1]
        );
        assert!(biases[1].abs() < 0.02, "the start still shows");
        assert!(biases[0].abs() > 0.02, "much longer than needed");
    }
}

/// From one bin of H balls the burn-in covers its draining: at speed 1 with two choices, at 1 - lambda with one. The
/// first window after that ends before 1.5^2 times its time.
#[test]
fn the_burn_in_covers_the_draining_of_a_tower() {
    for (d, drain) in [(1, 2000.0 / (1.0 - 0.75)), (2, 2000.0)] {
        let parameters = Parameters { n: 100, d, lambda: 0.75, start: Start::OneBin(2000), ..Parameters::default() };
        let found = find(&parameters, 1_000_000);
        println!("d {d}: {found}");
        assert!((1.0..2.4).contains(&(found.rounds as f64 / drain)), "{} rounds for {drain}", found.rounds);
    }
}

/// Whatever the start, it is compared with both extremes; the same start twice is one.
#[test]
fn every_start_is_compared_with_both_extremes() {
    for (start, compared) in [(Start::Empty, 2), (Start::MeanField, 3), (Start::Random(5000), 3)] {
        let found = find(&Parameters { start: start.clone(), lambda: 0.75, ..Parameters::default() }, 1_000_000);
        println!("{found}");
        assert_eq!((&found.starts[0], found.starts.len()), (&start, compared));
        assert!(found.starts.contains(&Start::Empty) && matches!(found.starts[compared - 1], Start::Each(h) if h > 0));
    }
}

/// Of a closed process the extremes have its balls: all at random, and all in one bin, which drains within 1.65 n rounds.
#[test]
fn a_closed_process_is_compared_with_all_its_balls_in_one_bin() {
    use leakybins::process::repeated;
    let process = ProcessSpec::Repeated(repeated::Parameters { n: 64, ..Default::default() });
    let schedule = Schedule { rounds: 2000, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
    let spec = Spec { process, seed: 3, replicas: 1, schedule, stopping: None };
    let found = BurnIn::find(&spec, &Control::default()).expect("a burn-in");
    let starts: Vec<String> = found.starts.iter().map(ToString::to_string).collect();
    assert_eq!(starts, ["each:1", "random:64", "one-bin:64"]);
    assert!((105..500).contains(&found.rounds), "{found}");
}
