//! The simulation against exact values that no simulation produced (`oracles/`).
//!
//! Every test uses a fixed seed and independent samples, one a replica. The chance that a test of this file would fail
//! by bad luck with another seed is below 1e-6 in all: ALPHA is shared out equally over the comparisons, and each prints
//! its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

#[path = "common/chi_square.rs"]
mod chi_square;

use leakybins::backend::{Backend, BlockResult, Control, Host, Job, Profiles, StreamKind, Work};
use leakybins::process::start::Start;
use leakybins::process::{Measure, Process, ProcessSpec, capped, leaky, repeated, tetris};
use leakybins::run::{Schedule, Spec};
use leakybins::stats::Tally;
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 400.0;

fn oracles(kind: &str) -> Vec<Value> {
    cases(include_str!("oracles/leaky.json"), kind)
}

fn cases(document: &str, kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(document).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
}

/// Probabilities of the values 0, 1, .. from their exceedances P(X >= k); the last one is that of the rest.
fn differences(exceedances: &[f64]) -> Vec<f64> {
    let next = exceedances.iter().skip(1).copied().chain([0.0]);
    exceedances.iter().zip(next).map(|(a, b)| a - b).collect()
}

fn parameters(case: &Value, n: u64, d: u64, arrivals: leaky::Arrivals) -> leaky::Parameters {
    let lambda = case["lambda"].as_f64().expect("a rate");
    leaky::Parameters { n, lambda, d, arrivals, start: Default::default() }
}

/// Observes the last of `rounds` rounds in `replicas` replicas.
fn last_round(parameters: &leaky::Parameters, seed: u64, replicas: u64, rounds: u64, measure: Measure) -> BlockResult {
    let process = leaky::Leaky::new(parameters).expect("valid parameters");
    let schedule = Schedule { rounds, burn_in: rounds - 1, every: 1, loads_every: 1, measure };
    let job = Job { process: &process as &dyn Process, seed, schedule, keep_loads: true };
    Host::cpu().run(&Work::Bins(job), 0..replicas, &Control::default()).expect("a result")
}

fn counts(values: impl IntoIterator<Item = u64>, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    for value in values {
        counts[(value as usize).min(cells - 1)] += 1;
    }
    counts
}

/// Chi-square of observed counts against probabilities: (statistic, critical value at ALPHA / COMPARISONS).
fn chi_square(observed: &[u64], probabilities: &[f64]) -> (f64, f64) {
    chi_square::chi_square(observed, probabilities, ALPHA / COMPARISONS)
}

fn assert_law(what: &str, observed: &[u64], probabilities: &[f64]) {
    let (statistic, bound) = chi_square(observed, probabilities);
    println!("{what}: chi-square {statistic:.1}, bound {bound:.1}, {} samples", observed.iter().sum::<u64>());
    assert!(statistic <= bound, "{what}: chi-square {statistic:.1} exceeds {bound:.1}");
}

fn max_load_counts(result: &BlockResult, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    for (load, count) in result.tally.max_load.iter() {
        counts[(load as usize).min(cells - 1)] += count;
    }
    counts
}

#[test]
fn small_chains_have_the_exact_max_load_at_every_round_and_in_stationarity() {
    for (index, case) in oracles("small_chain").iter().enumerate() {
        let (n, d) = (case["n"].as_u64().expect("n"), case["d"].as_u64().expect("d"));
        let parameters = parameters(case, n, d, leaky::Arrivals::Binomial);
        let name = format!("n {n}, lambda {}, d {d}", parameters.lambda);
        for (round, law) in case["max_load_at_round"].as_object().expect("laws by round") {
            let rounds = round.parse().expect("a round");
            let seed = 1000 + 100 * index as u64 + rounds;
            let result = last_round(&parameters, seed, 200_000, rounds, Measure::Post);
            let law = numbers(law);
            assert_law(&format!("{name}, round {round}"), &max_load_counts(&result, law.len()), &law);
        }
        let rounds = case["rounds_iterated"].as_u64().expect("rounds to stationarity");
        let result = last_round(&parameters, 2000 + index as u64, 100_000, rounds, Measure::Post);
        let law = numbers(&case["stationary_max_load"]);
        assert_law(&format!("{name}, stationary"), &max_load_counts(&result, law.len()), &law);
    }
}

/// Rounds after which a d = 1 chain from empty is stationary to far below what these samples resolve: its relaxation
/// time is near 2 / (1 - lambda)^2.
fn relaxed(lambda: f64) -> u64 {
    (24.0 / ((1.0 - lambda) * (1.0 - lambda))) as u64 + 20
}

#[test]
fn one_choice_has_the_exact_law_of_a_bin() {
    let mut compared = 0;
    for (index, case) in oracles("one_choice_stationary").iter().enumerate() {
        let n = case["n"].as_u64().expect("n");
        let parameters = parameters(case, n, 1, leaky::Arrivals::Binomial);
        let rounds = relaxed(parameters.lambda);
        // Bins of one replica depend on each other, so each replica gives one load, of bin 0.
        let budget = 1_000_000_000.0;
        let replicas = (budget / (rounds as f64 * n as f64)).min(20_000.0) as u64;
        if replicas < 400 {
            continue; // lambda = 0.99 and beyond: hours of simulation for a test with power
        }
        let result = last_round(&parameters, 3000 + index as u64, replicas, rounds, Measure::Post);
        let law = differences(&numbers(&case["p_load_ge"]));
        let loads = result.loads.chunks(n as usize).map(|bins| u64::from(bins[0]));
        assert_law(&format!("d 1, n {n}, lambda {}", parameters.lambda), &counts(loads, law.len()), &law);
        compared += 1;
    }
    assert!(compared >= 3, "only {compared} cases were compared");
}

#[test]
fn one_choice_with_poisson_arrivals_has_the_exact_max_load() {
    let mut compared = 0;
    for (index, case) in oracles("one_choice_poisson_max").iter().enumerate() {
        let n = case["n"].as_u64().expect("n");
        let parameters = parameters(case, n, 1, leaky::Arrivals::Poisson);
        let rounds = relaxed(parameters.lambda);
        let replicas = (1_500_000_000.0 / (rounds as f64 * n as f64)).min(20_000.0) as u64;
        if replicas < 100 {
            continue;
        }
        let result = last_round(&parameters, 4000 + index as u64, replicas, rounds, Measure::Post);
        let law = differences(&numbers(&case["p_max_ge"]));
        let observed = max_load_counts(&result, law.len());
        assert_law(&format!("Poisson, d 1, n {n}, lambda {}", parameters.lambda), &observed, &law);
        compared += 1;
    }
    assert!(compared >= 4, "only {compared} cases were compared");
}

/// The mean load of `replicas` replicas after `rounds` rounds against `meant`, in balls a bin.
fn assert_mean_load(parameters: &leaky::Parameters, seed: u64, replicas: u64, rounds: u64, meant: f64) {
    let totals = last_round(parameters, seed, replicas, rounds, Measure::Post).tally.total_load.samples;
    let error = (totals.variance().expect("samples") / (replicas - 1) as f64).sqrt();
    let t = (totals.mean().expect("samples") - meant * parameters.n as f64) / error;
    assert_t(&format!("d {}, lambda {}, round {rounds}", parameters.d, parameters.lambda), t, replicas);
}

#[test]
fn a_mean_field_start_has_the_stationary_law_and_needs_no_burn_in() {
    use leakybins::theory::When;
    use leakybins::theory::leaky::predict;
    for (index, (n, lambda, d, arrivals)) in [
        (3, 0.75, 1, leaky::Arrivals::Fixed),
        (64, 0.9, 1, leaky::Arrivals::Poisson),
        (64, 0.99, 1, leaky::Arrivals::Binomial),
        (100_000, 0.5, 2, leaky::Arrivals::Binomial),
        (100_000, 0.95, 3, leaky::Arrivals::Binomial),
    ]
    .into_iter()
    .enumerate()
    {
        let parameters = leaky::Parameters { n, lambda, d, arrivals, start: Start::MeanField };
        let law = predict(&parameters, When::Stationary, Measure::Post).expect("a law").bins;
        let process = leaky::Leaky::new(&parameters).expect("valid parameters");
        let (seed, mut loads) = (8000 + index as u64, vec![0; n as usize]);
        let cells = 1 + (1..).take_while(|&k| law.load_exceedance(k) > 1e-12).count();
        let mut observed = vec![0; cells];
        for replica in 0..1_000_000u64.div_ceil(n) {
            process.start(seed, replica as u32, &mut loads);
            loads.iter().for_each(|&load| observed[(load as usize).min(cells - 1)] += 1);
        }
        let probabilities = differences(&(0..cells as u64).map(|k| law.load_exceedance(k)).collect::<Vec<_>>());
        assert_law(&format!("mean-field start, d {d}, lambda {lambda}"), &observed, &probabilities);
        let replicas = if n > 1000 { 24 } else { 20_000 };
        for rounds in [1, 2, 20] {
            assert_mean_load(&parameters, seed, replicas, rounds, law.mean_load());
        }
    }
}

/// At n = 10^5 the bias against the mean field is of order 1/n, far below the error of 24 replicas.
#[test]
fn loads_at_large_n_follow_the_mean_field() {
    let (n, replicas) = (100_000u64, 24u64);
    let mut compared = 0;
    for (index, case) in oracles("mean_field").iter().enumerate() {
        let d = case["d"].as_u64().expect("d");
        let parameters = parameters(case, n, d, leaky::Arrivals::Binomial);
        // From empty, d >= 2 relaxes within some 10 / (1 - lambda) rounds.
        let rounds = if d == 1 { relaxed(parameters.lambda) } else { (11.0 / (1.0 - parameters.lambda)) as u64 };
        if rounds > 1100 {
            continue; // d = 1 from lambda = 0.9 on, d >= 2 at 0.999: minutes of simulation each
        }
        compared += 1;
        let result = last_round(&parameters, 5000 + index as u64, replicas, rounds, Measure::Post);
        let bound = StudentsT::new(0.0, 1.0, (replicas - 1) as f64).expect("valid");
        let bound = bound.inverse_cdf(1.0 - ALPHA / COMPARISONS / 2.0);
        for (k, &exceedance) in numbers(&case["p_load_ge"]).iter().enumerate().skip(1).take(8) {
            if exceedance * (n as f64) < 20.0 {
                break;
            }
            let fraction = |bins: &[u32]| bins.iter().filter(|&&l| l as usize >= k).count() as f64 / n as f64;
            let fractions: Vec<f64> = result.loads.chunks(n as usize).map(fraction).collect();
            let mean = fractions.iter().sum::<f64>() / replicas as f64;
            let variance = fractions.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>() / (replicas - 1) as f64;
            let t = (mean - exceedance) / (variance / replicas as f64).sqrt();
            println!("d {d}, lambda {}, P(load >= {k}): t {t:+.2}, bound {bound:.2}", parameters.lambda);
            assert!(t.abs() <= bound, "d {d}, lambda {}, k {k}: {mean} for {exceedance}", parameters.lambda);
        }
    }
    assert_eq!(compared, 17, "d = 1 at two rates, d = 2 to 4 at five each");
}

/// Before the deletions a bin is non-empty with probability lambda exactly, and its mean load is lambda above the one
/// after them, for every d.
#[test]
fn measuring_before_the_deletions_sees_the_throughput() {
    for (n, d, lambda) in [(64, 1, 0.5), (64, 2, 0.75), (100, 3, 0.9)] {
        let parameters = leaky::Parameters { n, d, lambda, ..Default::default() };
        let pre = last_round(&parameters, 6, 20_000, 300, Measure::Pre).tally;
        let post = last_round(&parameters, 6, 20_000, 300, Measure::Post).tally;
        let busy = 1.0 - pre.empty_bins.samples.mean().expect("samples") / n as f64;
        let shift = (pre.total_load.samples.mean().expect("samples")
            - post.total_load.samples.mean().expect("samples"))
            / n as f64;
        // Both are the fraction of bins that delete a ball; its standard error is at most that of independent bins
        // times a factor of order 1, for which 2 stands.
        let error = 2.0 * (lambda * (1.0 - lambda) / (20_000.0 * n as f64)).sqrt();
        println!("n {n}, d {d}: busy {busy:.6}, lambda {lambda}, bound {:.6}", 6.0 * error);
        assert!((busy - lambda).abs() < 6.0 * error, "n {n}, d {d}: busy {busy} for {lambda}");
        assert!((shift - busy).abs() < 1e-12, "the same rounds: pre - post = busy bins");
    }
}

/// Observes the last of `rounds` rounds of `process` in `replicas` replicas, as a backend of `stream` draws it.
fn last_round_of(process: &ProcessSpec, stream: StreamKind, seed: u64, replicas: u64, rounds: u64) -> Tally {
    let schedule = Schedule { rounds, burn_in: rounds - 1, every: 1, loads_every: 1, measure: Measure::Post };
    let spec = Spec { process: process.clone(), seed, replicas, schedule, stopping: None };
    let form = process.build_for(stream).expect("valid parameters");
    let mut backend: Box<dyn Backend> = match stream {
        StreamKind::Bins => Box::new(Host::cpu()),
        StreamKind::Profile => Box::new(Profiles),
    };
    backend.run(&spec.work(&form, false), 0..replicas, &Control::default()).expect("a result").tally
}

const STREAMS: [StreamKind; 2] = [StreamKind::Bins, StreamKind::Profile];

/// The max load of `process` at the rounds of a case, on both streams.
fn assert_way(case: &Value, process: &ProcessSpec, seed: u64) {
    for (round, law) in case["rounds"].as_object().expect("laws by round") {
        let (rounds, law) = (round.parse().expect("a round"), numbers(&law["max_load"]));
        for stream in STREAMS {
            let tally = last_round_of(process, stream, seed + rounds, 100_000, rounds);
            let observed = counts_of(&tally, law.len());
            assert_law(&format!("{} {stream:?}, round {round}", process.name()), &observed, &law);
        }
    }
}

fn counts_of(tally: &Tally, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    tally.max_load.iter().for_each(|(load, count)| counts[(load as usize).min(cells - 1)] += count);
    counts
}

fn start(text: &str) -> Start {
    text.parse().expect("a start")
}

#[test]
fn repeated_balls_into_bins_have_the_exact_laws_of_small_systems() {
    let of = |n, text: &str| ProcessSpec::Repeated(repeated::Parameters { n, start: start(text) });
    let document = include_str!("oracles/repeated.json");
    let mut seed = 10_000;
    for case in cases(document, "ways") {
        seed += 100;
        assert_way(&case, &of(case["n"].as_u64().expect("n"), case["start"].as_str().expect("a start")), seed);
    }
    for case in cases(document, "stationary") {
        let (n, m) = (case["n"].as_u64().expect("n"), case["m"].as_u64().expect("m"));
        let law = numbers(&case["max_load"]);
        for stream in STREAMS {
            seed += 100;
            // These chains forget their start within a few rounds: 60 are many.
            let tally = last_round_of(&of(n, &format!("one-bin:{m}")), stream, seed, 40_000, 60);
            let what = format!("repeated {stream:?}, n {n}, m {m}");
            assert_law(&format!("{what}, stationary"), &counts_of(&tally, law.len()), &law);
            let empty = tally.empty_bins.samples;
            let error = (empty.variance().expect("samples") / (empty.count - 1) as f64).sqrt();
            let meant = case["empty_fraction"].as_f64().expect("a fraction") * n as f64;
            assert_t(&format!("{what}, empty bins"), (empty.mean().expect("samples") - meant) / error, empty.count);
        }
    }
}

#[test]
fn tetris_has_the_exact_laws_of_small_systems_and_of_a_bin() {
    let of = |case: &Value, start| {
        let (n, lambda) = (case["n"].as_u64().expect("n"), case["lambda"].as_f64().expect("lambda"));
        ProcessSpec::Tetris(tetris::Parameters { n, lambda, start })
    };
    let document = include_str!("oracles/tetris.json");
    let mut seed = 20_000;
    for case in cases(document, "ways") {
        seed += 100;
        assert_way(&case, &of(&case, start(case["start"].as_str().expect("a start"))), seed);
    }
    for case in cases(document, "stationary_load") {
        let (n, law) = (case["n"].as_u64().expect("n"), numbers(&case["load"]));
        for (from, rounds) in [(Start::Empty, 200), (Start::MeanField, 3)] {
            for stream in STREAMS {
                seed += 100;
                let process = of(&case, from.clone());
                let tally = last_round_of(&process, stream, seed, 400_000 / n.max(100), rounds);
                let load = tally.total_load.samples;
                let error = (load.variance().expect("samples") / (load.count - 1) as f64).sqrt();
                let meant = case["mean"].as_f64().expect("a mean") * n as f64;
                let what = format!("tetris {stream:?}, n {n}, {from}, load");
                assert_t(&what, (load.mean().expect("samples") - meant) / error, load.count);
            }
        }
        // Bins of a replica depend on each other: one of each replica.
        let process = of(&case, Start::Empty).build().expect("valid parameters");
        let schedule = Schedule { rounds: 200, burn_in: 199, every: 1, loads_every: 0, measure: Measure::Post };
        let job = Job { process: &*process, seed: 31, schedule, keep_loads: true };
        let result = Host::cpu().run(&Work::Bins(job), 0..4000, &Control::default()).expect("a result");
        let loads = result.loads.chunks(n as usize).map(|bins| u64::from(bins[0]));
        assert_law(&format!("tetris, n {n}, one bin"), &counts(loads, law.len()), &law);
    }
}

/// Compares a t statistic of so many samples with its bound.
fn assert_t(what: &str, t: f64, samples: u64) {
    let bound = StudentsT::new(0.0, 1.0, (samples - 1) as f64).expect("valid");
    let bound = bound.inverse_cdf(1.0 - ALPHA / COMPARISONS / 2.0);
    println!("{what}: t {t:+.2}, bound {bound:.2}");
    assert!(t.abs() <= bound, "{what}: t {t:+.2} exceeds {bound:.2}");
}

/// The comparisons have teeth: neighbouring processes are told apart with the same samples and bounds.
#[test]
fn wrong_processes_are_rejected() {
    let case = &oracles("small_chain")[3];
    let right = parameters(case, 3, 2, leaky::Arrivals::Binomial);
    let law = numbers(&case["stationary_max_load"]);
    for (what, wrong) in [
        ("lambda too large by 1 %", leaky::Parameters { lambda: right.lambda * 1.01, ..right.clone() }),
        ("one choice more", leaky::Parameters { d: 3, ..right.clone() }),
        ("Poisson arrivals", leaky::Parameters { arrivals: leaky::Arrivals::Poisson, ..right.clone() }),
    ] {
        let result = last_round(&wrong, 7, 100_000, 150, Measure::Post);
        let (statistic, bound) = chi_square(&max_load_counts(&result, law.len()), &law);
        println!("{what}: chi-square {statistic:.1}, bound {bound:.1}");
        assert!(statistic > bound, "{what} passes for the right process");
    }
}

#[test]
fn capped_bins_have_the_exact_max_load_at_every_round_and_in_stationarity() {
    let all: Value = serde_json::from_str(include_str!("oracles/capped.json")).expect("valid JSON");
    for (index, case) in all["small_chain"].as_array().expect("a list of cases").iter().enumerate() {
        let (n, c) = (case["n"].as_u64().expect("n"), case["c"].as_u64().expect("c"));
        if c == 1 {
            continue; // every load is 0: the pool is compared in tests/capped.rs
        }
        let (lambda, c) = (case["lambda"].as_f64().expect("a rate"), capped::Capacity::Finite(c));
        let parameters = capped::Parameters { n, c, lambda, ..Default::default() };
        let process = capped::Capped::new(&parameters).expect("valid parameters");
        let at = case["at_round"].as_object().expect("laws by round").iter();
        let at = at.map(|(round, law)| (round.parse().expect("a round"), law));
        let iterated = case["rounds_iterated"].as_u64().expect("rounds to stationarity");
        for (rounds, law) in at.chain([(iterated, &case["stationary"])]) {
            let schedule = Schedule { rounds, burn_in: rounds - 1, every: 1, loads_every: 1, measure: Measure::Post };
            let seed = 9000 + 100 * index as u64 + rounds;
            let job = Job { process: &process as &dyn Process, seed, schedule, keep_loads: false };
            let result = Host::cpu().run(&Work::Bins(job), 0..20_000, &Control::default()).expect("a result");
            let law = numbers(&law["max_load"]);
            assert_law(
                &format!("capped: n {n}, c {c}, lambda {lambda}, round {rounds}"),
                &max_load_counts(&result, law.len()),
                &law,
            );
        }
    }
}
