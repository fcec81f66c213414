//! CAPPED(c, lambda) against a program apart from this one, against exact chains of few bins, against the limit of many
//! bins, and against the leaky bins, which it is for c = inf.
//!
//! Statistical tests use fixed seeds; the chance that one of this file would fail by bad luck with other seeds is below
//! 1e-6 in all: ALPHA is shared out equally over the comparisons, and each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

#[path = "common/chi_square.rs"]
mod chi_square;

use leakybins::backend::{Backend, BlockResult, Control, Host, Job, Work};
use leakybins::process::capped::{AGES, Capacity, Capped, CappedProfile, Parameters};
use leakybins::process::leaky::{self, Arrivals};
use leakybins::process::start::Start;
use leakybins::process::{Measure, Process, Reference, Runner};
use leakybins::profile::{ProfileChain, Thrower, Watch};
use leakybins::rng::stream::Stream;
use leakybins::rng::{Domain, Draws};
use leakybins::run::Schedule;
use leakybins::stats::{Further, FurtherTally, Histogram, Record, Tally};
use leakybins::theory::When;
use leakybins::theory::capped::{MeanField, SmallCapped, predict, trajectory};
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 200.0;

fn by_value(histogram: &Histogram) -> Vec<u64> {
    let last = histogram.iter().last().map_or(0, |(value, _)| value);
    (0..=last).map(|value| histogram.count(value) as u64).collect()
}

/// Beside what the registry holds every process to: waiting times and pool, on the definition and the fast path.
#[test]
fn waiting_times_are_those_of_a_program_that_follows_every_ball() {
    let mut rows = 0;
    for line in include_str!("kat/capped.jsonl").lines() {
        let answer: Value = serde_json::from_str(line).expect("an object a line");
        let number = |name: &str| answer[name].as_u64().expect("a whole number");
        let parameters: Parameters = serde_json::from_value(answer["parameters"].clone()).expect("parameters");
        let process = Capped::new(&parameters).expect("valid parameters");
        let (seed, replica, first) = (number("seed"), number("replica") as u32, number("first_round"));
        let rounds = first..first + number("rounds");
        let every = Schedule { rounds: rounds.end, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
        for mut runner in [Box::new(Reference(&process)) as Box<dyn Runner>, process.runner()] {
            let (mut state, mut record) = (vec![0; process.words()], Record::default());
            process.start(seed, replica, &mut state);
            runner.advance(seed, replica, &mut state, rounds.clone(), &every, &mut record);
            let mut tally = Tally::default();
            tally.add(&record);
            let fnv1a = |hash: u64, count: u64| (hash ^ count).wrapping_mul(0x100_0000_01B3);
            let waits = by_value(&tally.further.histograms[0]);
            assert_eq!(waits.into_iter().fold(0xCBF2_9CE4_8422_2325, fnv1a), number("waiting_digest"), "{line}");
            let pool: u32 = state[process.bins() as usize..].iter().sum();
            assert_eq!(u64::from(pool), number("pool"), "{line}");
        }
        rows += 1;
    }
    assert_eq!(rows, 7);
}

fn run(process: &dyn Process, backend: &mut Host, seed: u64, replicas: u64, schedule: Schedule) -> BlockResult {
    let job = Job { process, seed, schedule, keep_loads: true };
    backend.run(&Work::Bins(job), 0..replicas, &Control::default()).expect("a result")
}

fn capped(n: u64, c: u64, lambda: f64) -> Parameters {
    Parameters { n, c: Capacity::Finite(c), lambda, ..Parameters::default() }
}

/// The same loads for the same seed, whatever the arrivals and the start.
#[test]
fn without_a_cap_the_bins_are_leaky_bins() {
    let schedule = Schedule { rounds: 60, burn_in: 10, every: 3, loads_every: 2, measure: Measure::Post };
    for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
        for start in [Start::Empty, Start::OneBin(300), Start::Random(200), Start::MeanField] {
            let parameters = Parameters { c: Capacity::Infinite, arrivals, start, ..capped(100, 1, 0.9) };
            let leaky = leaky::Leaky::new(&parameters.as_leaky()).expect("valid parameters");
            let capped = Capped::new(&parameters).expect("valid parameters");
            let expected = run(&leaky, &mut Host::cpu(), 5, 7, schedule);
            for mut host in [Host::cpu(), Host::reference()] {
                let mut result = run(&capped, &mut host, 5, 7, schedule);
                assert_eq!(result.loads, expected.loads);
                // The load that a ball finds is its waiting time, and the pool is empty.
                assert_eq!(result.tally.further.numbers[0].samples.max, 0);
                result.tally.further = expected.tally.further.clone();
                assert_eq!(result.tally, expected.tally);
            }
        }
    }
}

/// Loads within the capacity, and no ball lost, from every start; the host refuses a result that loses one.
#[test]
fn loads_keep_to_the_capacity_and_balls_are_conserved() {
    let schedule = Schedule { rounds: 200, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Pre };
    for (n, c, lambda, start) in [
        (1, 1, 1.0, Start::OneBin(3000)),
        (2, 3, 0.75, Start::Each(30)),
        (50, 2, 0.95, Start::OneBin(10_000)),
        (50, 2, 1.0, Start::Empty),
        (333, 5, 0.99, Start::MeanField),
        (333, 1, 0.0, Start::Random(1000)),
    ] {
        let process = Capped::new(&Parameters { start, ..capped(n, c, lambda) }).expect("valid parameters");
        let result = run(&process, &mut Host::cpu(), 3, 5, schedule);
        let tally = &result.tally;
        assert!(tally.conserves_balls());
        assert!(tally.max_load.iter().all(|(load, _)| load <= c), "n {n}, c {c}");
        assert!(result.loads.iter().all(|&load| u64::from(load) < c), "n {n}, c {c}");
        // Whoever finds a place leaves it, or is in it at the end, but for those that had one at the start.
        let accepted: u128 = tally.further.histograms.first().map_or(0, Histogram::total);
        let placed_at_end: u128 = result.loads.iter().map(|&load| u128::from(load)).sum();
        let mut placed_at_start = 0;
        for replica in 0..5 {
            let mut state = vec![0; process.words()];
            process.start(3, replica, &mut state);
            placed_at_start += state[..n as usize].iter().map(|&load| u128::from(load)).sum::<u128>();
        }
        assert_eq!(accepted + placed_at_start, tally.flow.departed + placed_at_end, "n {n}, c {c}");
    }
}

/// A start far above the ages that are told apart: loads and pool do not notice.
#[test]
fn the_oldest_balls_share_an_age() {
    let parameters = Parameters { start: Start::OneBin(3001), ..capped(1, 1, 1.0) };
    let process = Capped::new(&parameters).expect("valid parameters");
    let schedule = Schedule { rounds: 2500, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
    let result = run(&process, &mut Host::cpu(), 1, 1, schedule);
    // The ball with a place leaves in the first round, whose balls all find the bin full; then one ball a round is
    // accepted, always one of the oldest.
    let waits = &result.tally.further.histograms[0];
    assert_eq!((waits.count(1), waits.count(2), waits.count(AGES as u64 - 1)), (0, 1, 1));
    assert_eq!(waits.count(AGES as u64), 2499 - (AGES as u128 - 2));
    assert_eq!(result.tally.final_balls, 3001);
}

fn counts(values: impl IntoIterator<Item = u64>, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    values.into_iter().for_each(|value| counts[(value as usize).min(cells - 1)] += 1);
    counts
}

fn assert_law(what: &str, observed: &[u64], probabilities: &[f64]) {
    let (statistic, bound) = chi_square::chi_square(observed, probabilities, ALPHA / COMPARISONS);
    println!("{what}: chi-square {statistic:.1}, bound {bound:.1}, {} samples", observed.iter().sum::<u64>());
    assert!(statistic <= bound, "{what}: chi-square {statistic:.1} exceeds {bound:.1}");
}

/// The exact laws of the program and of a script apart from it are the same.
#[test]
fn exact_chains_agree() {
    let all: Value = serde_json::from_str(include_str!("oracles/capped.json")).expect("valid JSON");
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
    };
    let close = |what: &str, law: &[f64], oracle: &Value| {
        for (k, p) in numbers(oracle).into_iter().enumerate() {
            assert!((law[k] - p).abs() < 1e-11, "{what}, {k}: {} for {p}", law[k]);
        }
    };
    for case in all["small_chain"].as_array().expect("cases") {
        let number = |name: &str| case[name].as_u64().expect("a whole number");
        let (n, c, lambda) = (number("n"), number("c"), case["lambda"].as_f64().expect("a rate"));
        let chain = SmallCapped::new(n, c, lambda, Arrivals::Fixed, 12 * n as u32).expect("a small chain");
        let what = format!("n {n}, c {c}, lambda {lambda}");
        for (round, oracle) in case["at_round"].as_object().expect("laws") {
            let law = &chain.at_rounds(&[round.parse().expect("a round")])[0];
            close(&format!("{what}, round {round}, pool"), &law.pool, &oracle["pool"]);
            close(&format!("{what}, round {round}, max load"), &law.max_load, &oracle["max_load"]);
        }
        let law = chain.stationary().expect("a law");
        close(&format!("{what}, stationary, pool"), &law.pool, &case["stationary"]["pool"]);
        close(&format!("{what}, stationary, max load"), &law.max_load, &case["stationary"]["max_load"]);
    }
}

/// Pool and max load of single bins and of profiles, one sample a replica, against the exact chain.
#[test]
fn few_bins_have_the_exact_laws() {
    for (index, (n, c, lambda, arrivals)) in [
        (2u64, 1u64, 0.75, Arrivals::Fixed),
        (2, 2, 0.9, Arrivals::Binomial),
        (4, 2, 0.75, Arrivals::Fixed),
        (4, 3, 0.9, Arrivals::Poisson),
        (8, 1, 0.75, Arrivals::Fixed),
        (8, 2, 0.9375, Arrivals::Binomial),
    ]
    .into_iter()
    .enumerate()
    {
        let parameters = Parameters { arrivals, ..capped(n, c, lambda) };
        let chain = SmallCapped::new(n, c, lambda, arrivals, 12 * n as u32).expect("a small chain");
        let rounds = [2, 5, 40];
        for (round, law) in rounds.into_iter().zip(chain.at_rounds(&rounds)) {
            assert!(law.lost < 1e-7, "the cap cuts off {:e}, visible in 10,000 samples", law.lost);
            let seed = 100 * index as u64 + round;
            for (form, samples) in [
                ("bins", bin_by_bin(&parameters, seed, 10_000, round)),
                ("profile", on_profiles(&parameters, seed, 10_000, round)),
            ] {
                let what = format!("{form}: n {n}, c {c}, lambda {lambda}, {arrivals:?}, round {round}");
                let pools = samples.iter().map(|sample| sample.pool);
                assert_law(&format!("{what}, pool"), &counts(pools, law.pool.len()), &law.pool);
                if c > 1 {
                    let max = samples.iter().map(|sample| sample.max_load);
                    assert_law(&format!("{what}, max load"), &counts(max, law.max_load.len()), &law.max_load);
                }
            }
        }
    }
}

/// What is left of a replica after some rounds.
struct Sample {
    pool: u64,
    max_load: u64,
    /// Waiting times of the balls accepted in the last round.
    waits: Vec<u64>,
}

fn waits(further: &Further) -> Vec<u64> {
    let mut tally = FurtherTally::default();
    tally.add(further);
    tally.histograms.first().map_or(Vec::new(), by_value)
}

fn bin_by_bin(parameters: &Parameters, seed: u64, replicas: u32, rounds: u64) -> Vec<Sample> {
    let process = Capped::new(parameters).expect("valid parameters");
    let schedule = Schedule { rounds, burn_in: rounds - 1, every: 1, loads_every: 0, measure: Measure::Post };
    let one = |replica| {
        let (mut state, mut record) = (vec![0; process.words()], Record::default());
        process.start(seed, replica, &mut state);
        process.runner().advance(seed, replica, &mut state, 0..rounds, &schedule, &mut record);
        let (loads, pool) = state.split_at(process.bins() as usize);
        let pool = pool.iter().map(|&balls| u64::from(balls)).sum();
        Sample { pool, max_load: loads.iter().copied().max().expect("a bin").into(), waits: waits(&record.further) }
    };
    (0..replicas).map(one).collect()
}

fn on_profiles(parameters: &Parameters, seed: u64, replicas: u32, rounds: u64) -> Vec<Sample> {
    let process = CappedProfile::new(parameters).expect("valid parameters");
    let one = |replica| {
        let draws = |round| Draws::new(seed, replica, round);
        let mut stream = Stream::new(&draws(0), Domain::Start);
        let (mut thrower, mut further) = (Thrower::default(), Further::default());
        let mut state = process.start(&mut stream, &mut thrower);
        for round in 0..rounds {
            stream.restart(&draws(round), Domain::Profile);
            let last = round + 1 == rounds;
            let mut watch = Watch { loads: &mut |_, _| (), further: last.then_some(&mut further) };
            process.round(&mut stream, &mut thrower, &mut state, &mut watch);
        }
        Sample { pool: state.elsewhere.iter().sum(), max_load: state.bins.max_load(), waits: waits(&further) }
    };
    (0..replicas).map(one).collect()
}

/// Mean and standard error.
fn estimate(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

fn assert_mean(what: &str, (mean, error): (f64, f64), samples: u32, meant: f64) {
    let law = StudentsT::new(0.0, 1.0, f64::from(samples) - 1.0).expect("degrees of freedom");
    let bound = law.inverse_cdf(1.0 - ALPHA / COMPARISONS / 2.0);
    let t = (mean - meant) / error;
    println!("{what}: {mean:.9} for {meant:.9}, t {t:.2}, bound {bound:.2}");
    assert!(t.abs() <= bound, "{what}: {mean} for {meant}, t {t:.2} exceeds {bound:.2}");
}

/// 10^12 bins on profiles, from the mean field and from far away: pool, waiting times and their tail. The bias of the
/// limit, of order 1/n, is a millionth of the fluctuations, of order 1/sqrt(n).
#[test]
fn many_bins_follow_the_limit() {
    let n = 1_000_000_000_000u64;
    for (index, (c, lambda, start, rounds)) in [
        (1, 0.75, Start::MeanField, 30),
        (2, 0.75, Start::MeanField, 30),
        (3, 0.9, Start::Each(4), 400),
        (5, 0.99, Start::MeanField, 60),
    ]
    .into_iter()
    .enumerate()
    {
        let parameters = Parameters { start, ..capped(n, c, lambda) };
        let law = MeanField::new(Some(c), lambda).expect("a law");
        let samples = 60;
        let seen = on_profiles(&parameters, 7000 + index as u64, samples, rounds);
        let of_bins = |pool: u64| pool as f64 / n as f64;
        let what = format!("c {c}, lambda {lambda}");
        assert_mean(&format!("{what}, pool"), estimate(seen.iter().map(|s| of_bins(s.pool))), samples, law.pool());
        for wait in 0..6usize {
            let of = |s: &Sample| of_bins(s.waits.iter().skip(wait).sum());
            let meant = lambda * law.waiting().exceedance(wait as u64);
            assert_mean(&format!("{what}, waiting {wait} or more"), estimate(seen.iter().map(of)), samples, meant);
        }
    }
}

/// A start with three balls a bin in the pool, which drain as the limit says.
#[test]
fn a_large_pool_drains_as_in_the_limit() {
    let n = 1_000_000_000_000u64;
    let parameters = Parameters { start: Start::Each(5), ..capped(n, 2, 0.75) };
    // In the first round every bin is full, and nothing is random.
    for rounds in [2, 5, 10] {
        let samples = 40;
        let seen = on_profiles(&parameters, 8000 + rounds, samples, rounds);
        let expected = trajectory(&parameters, &[rounds], f64::INFINITY).expect("a trajectory")[0].expect("in budget");
        let prediction = predict(&parameters, When::Round(rounds), Measure::Post).expect("a prediction");
        let pool = expected.mean_total / n as f64 - prediction.bins.mean_load();
        let of = seen.iter().map(|s| s.pool as f64 / n as f64);
        assert_mean(&format!("pool after {rounds}"), estimate(of), samples, pool);
    }
}
