//! Leaky bins on profiles against exact laws, against the mean field, and against the process bin by bin.
//!
//! Fixed seeds, one independent sample a replica. The chance that a test of this file would fail by bad luck with other
//! seeds is below 1e-6 in all: ALPHA is shared out equally over the comparisons, and each prints its statistic and
//! bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::backend::{Backend, Choice, Control, Host, Job, Pool, ProfileJob, Profiles, StreamKind, Work};
use leakybins::process::leaky::{Arrivals, Leaky, LeakyProfile, Parameters};
use leakybins::process::start::Start;
use leakybins::process::{Measure, ParameterError, ProcessSpec};
use leakybins::profile::{Level, PROFILE_STREAM_VERSION, Profile, ProfileChain, Thrower, Watch};
use leakybins::rng::stream::Stream;
use leakybins::rng::{Domain, Draws};
use leakybins::run::{self, BurnIn, RunError, Schedule, Spec, SpecError};
use leakybins::stats::Tally;
use leakybins::theory::SmallChain;
use leakybins::theory::When;
use leakybins::theory::leaky::predict;
use rayon::prelude::*;
use serde_json::Value;
use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, StudentsT};
use std::collections::BTreeMap;
use std::io::Write;

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 1000.0;
const LAWS: [Arrivals; 3] = [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed];

/// The profile of each replica after `rounds` rounds, observed as `measure` says.
fn profiles(parameters: &Parameters, seed: u64, replicas: u64, rounds: u64, measure: Measure) -> Vec<Profile> {
    let process = LeakyProfile::new(parameters).expect("valid parameters");
    let one = |replica: u64| {
        let draws = |round| Draws::new(seed, replica as u32, round);
        let mut stream = Stream::new(&draws(0), Domain::Start);
        let mut thrower = Thrower::default();
        let mut state = process.start(&mut stream, &mut thrower);
        assert_eq!(state.bins.bins(), parameters.n);
        for round in 0..rounds {
            stream.restart(&draws(round), Domain::Profile);
            let mut observed = state.bins.clone();
            let mut loads = |at, profile: &Profile| {
                if at == measure {
                    observed = profile.clone();
                }
            };
            process.round(&mut stream, &mut thrower, &mut state, &mut Watch { loads: &mut loads, further: None });
            if round + 1 == rounds {
                return observed;
            }
        }
        state.bins
    };
    (0..replicas).into_par_iter().map(one).collect()
}

/// The same, simulated bin by bin.
fn bin_by_bin(parameters: &Parameters, seed: u64, replicas: u64, rounds: u64) -> Vec<Profile> {
    let process = Leaky::new(parameters).expect("valid parameters");
    let schedule = Schedule { rounds, burn_in: rounds - 1, every: 1, loads_every: 0, measure: Measure::Post };
    let work = Work::Bins(Job { process: &process, seed, schedule, keep_loads: true });
    let result = Host::cpu().run(&work, 0..replicas, &Control::default()).expect("a result");
    let profile = |loads: &[u32]| Profile::new(loads.iter().map(|&load| Level { load: load.into(), bins: 1 }));
    result.loads.chunks(parameters.n as usize).map(profile).collect()
}

fn counts(values: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    values.into_iter().for_each(|value| *counts.entry(value).or_insert(0) += 1);
    counts
}

fn critical(cells: usize) -> f64 {
    let law = ChiSquared::new((cells - 1).max(1) as f64).expect("degrees of freedom");
    law.inverse_cdf(1.0 - ALPHA / COMPARISONS)
}

/// Chi-square of values against P(0), P(1), ..: (statistic, bound). Cells are pooled in order until each expects at
/// least 10; what is left of the last one joins the one before.
fn against_law(values: impl IntoIterator<Item = u64>, probabilities: &[f64]) -> (f64, f64) {
    let observed = counts(values);
    let samples = observed.values().sum::<u64>() as f64;
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut pending = (0.0, 0.0);
    for (k, &p) in probabilities.iter().enumerate() {
        pending = (pending.0 + observed.get(&(k as u64)).copied().unwrap_or(0) as f64, pending.1 + p * samples);
        if pending.1 >= 10.0 {
            cells.push(std::mem::take(&mut pending));
        }
    }
    let last = cells.last_mut().expect("some cell expects 10");
    *last = (last.0 + pending.0, last.1 + pending.1);
    let beyond: u64 = observed.range(probabilities.len() as u64..).map(|(_, count)| count).sum();
    assert!(cells.len() > 1 || beyond == 0, "nothing to compare");
    let statistic = cells.iter().map(|(o, e)| (o - e) * (o - e) / e).sum::<f64>() + beyond as f64 * samples;
    (statistic, critical(cells.len()))
}

/// Chi-square of two samples: (statistic, bound). Values are pooled in order to at most 25 cells of at least 20.
fn two_samples(a: &BTreeMap<u64, u64>, b: &BTreeMap<u64, u64>) -> (f64, f64) {
    let [in_a, in_b] = [a, b].map(|sample| sample.values().sum::<u64>() as f64);
    let least = ((in_a + in_b) / 25.0).max(20.0);
    let mut values: Vec<u64> = a.keys().chain(b.keys()).copied().collect();
    values.sort_unstable();
    values.dedup();
    let mut cells = vec![(0.0, 0.0)];
    for value in values {
        if cells.last().is_some_and(|(a, b)| a + b >= least) {
            cells.push((0.0, 0.0));
        }
        let last: &mut (f64, f64) = cells.last_mut().expect("never empty");
        last.0 += a.get(&value).copied().unwrap_or(0) as f64;
        last.1 += b.get(&value).copied().unwrap_or(0) as f64;
    }
    if cells.len() > 1 && cells.last().is_some_and(|(a, b)| a + b < least) {
        let rest = cells.pop().expect("more than one");
        let last = cells.last_mut().expect("one is left");
        *last = (last.0 + rest.0, last.1 + rest.1);
    }
    let (weight_a, weight_b) = ((in_b / in_a).sqrt(), (in_a / in_b).sqrt());
    let statistic = cells.iter().map(|(a, b)| (weight_a * a - weight_b * b).powi(2) / (a + b)).sum();
    (statistic, critical(cells.len()))
}

fn assert_within(what: &str, (statistic, bound): (f64, f64)) {
    println!("{what}: chi-square {statistic:.1}, bound {bound:.1}");
    assert!(statistic <= bound, "{what}: chi-square {statistic:.1} exceeds {bound:.1}");
}

/// A number that a profile is compared by.
type Observable = (&'static str, fn(&Profile) -> u64);

const OBSERVABLES: [Observable; 5] = [
    ("max load", Profile::max_load),
    ("total load", |p| p.balls() as u64),
    ("empty bins", Profile::empty_bins),
    ("bins of load 1", |p| p.levels().iter().find(|l| l.load == 1).map_or(0, |l| l.bins)),
    ("bins of load 2 or 3", |p| p.levels().iter().filter(|l| l.load == 2 || l.load == 3).map(|l| l.bins).sum()),
];

#[test]
fn the_law_is_that_of_the_process_bin_by_bin() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"7 0 0 1 2 3 30 0 0 4 4 1 0 0 0 9").expect("room");
    let mut starts = [
        Start::Empty,
        Start::Each(3),
        Start::OneBin(40),
        Start::Random(50),
        Start::MeanField,
        Start::File(file.path().into()),
    ]
    .into_iter()
    .cycle();
    let mut rates = [0.5, 0.99, 0.9, 1.0, 0.75, 0.1, 0.95].into_iter().cycle();
    let mut times = [1u64, 4, 20].into_iter().cycle();
    let mut seed = 10_000;
    for n in [2, 3, 5, 16, 100, 1000, 10_000, 100_000] {
        for d in 1..=4 {
            for (law, arrivals) in LAWS.into_iter().enumerate() {
                // Many bins take long one by one: each d and each law once or twice.
                if n == 100_000 && !(d as usize + law).is_multiple_of(3) {
                    continue;
                }
                let start = match starts.next().expect("endless") {
                    Start::File(_) if n != 16 => Start::Random(2 * n as u32),
                    start => start,
                };
                let (rate, rounds) = (rates.next().expect("endless"), times.next().expect("endless"));
                // There is no stationary law to start from at 1.
                let lambda = if start == Start::MeanField && rate == 1.0 { 0.97 } else { rate };
                let parameters = Parameters { n, lambda, d, arrivals, start };
                let replicas = (80_000_000 / (n * rounds)).clamp(400, 20_000);
                seed += 1;
                let ours = profiles(&parameters, seed, replicas, rounds, Measure::Post);
                let theirs = bin_by_bin(&parameters, seed + 5000, replicas, rounds);
                for (name, of) in OBSERVABLES {
                    let what = format!("{parameters:?}, round {rounds}, {name}");
                    assert_within(&what, two_samples(&counts(ours.iter().map(of)), &counts(theirs.iter().map(of))));
                }
            }
        }
    }
}

fn oracles(kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("oracles/leaky.json")).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
}

#[test]
fn small_chains_have_the_exact_max_load_at_every_round_and_in_stationarity() {
    for (index, case) in oracles("small_chain").iter().enumerate() {
        let number = |key: &str| case[key].as_u64().expect("a number");
        let lambda = case["lambda"].as_f64().expect("a rate");
        let parameters = Parameters { n: number("n"), lambda, d: number("d"), ..Parameters::default() };
        let settled = (number("rounds_iterated").to_string(), case["stationary_max_load"].clone());
        let laws = case["max_load_at_round"].as_object().expect("laws by round").iter();
        for (round, law) in laws.map(|(r, l)| (r.clone(), l.clone())).chain([settled]) {
            let rounds: u64 = round.parse().expect("a round");
            let replicas = (4_000_000 / rounds).min(100_000);
            let seen = profiles(&parameters, 20_000 + 1000 * index as u64 + rounds, replicas, rounds, Measure::Post);
            let result = against_law(seen.iter().map(Profile::max_load), &numbers(&law));
            assert_within(&format!("{parameters:?}, round {rounds}"), result);
        }
    }
}

#[test]
fn small_chains_with_other_arrivals_and_starts_have_the_exact_max_load() {
    let starts = [Start::Each(1), Start::OneBin(4), Start::Random(3)];
    for (index, (arrivals, start)) in LAWS.into_iter().flat_map(|a| starts.clone().map(|s| (a, s))).enumerate() {
        let (n, d) = (2 + index as u64 % 3, 1 + index as u64 % 4);
        let parameters = Parameters { n, d, lambda: 0.5, arrivals, start };
        let chain = SmallChain::new(&parameters, 16).expect("a small chain");
        for (rounds, law) in [1u64, 3, 8].into_iter().zip(chain.at_rounds(&[1, 3, 8])) {
            assert!(law.lost < 1e-6, "the cap cuts off {:e}, visible in 60,000 samples", law.lost);
            let seen = profiles(&parameters, 30_000 + 10 * index as u64 + rounds, 60_000, rounds, Measure::Post);
            let result = against_law(seen.iter().map(Profile::max_load), &law.max_load);
            assert_within(&format!("{parameters:?}, round {rounds}"), result);
        }
    }
}

/// P(X = 0), P(X = 1), .. from P(X >= k), up to where it is far below what a sample shows.
fn law_of(exceedance: impl Fn(u64) -> f64) -> Vec<f64> {
    (0..).map_while(|k| (exceedance(k) > 1e-12).then(|| exceedance(k) - exceedance(k + 1))).collect()
}

#[test]
fn one_choice_has_the_exact_law_of_a_bin() {
    for (index, (n, lambda, arrivals, start, rounds)) in [
        (1, 0.7, Arrivals::Binomial, Start::Each(3), 5),
        (10, 0.9, Arrivals::Binomial, Start::Empty, 40),
        (1000, 0.95, Arrivals::Fixed, Start::Each(4), 30),
        (1000, 0.95, Arrivals::Poisson, Start::Empty, 60),
        (1_000_000_000, 0.9, Arrivals::Binomial, Start::Empty, 25),
        (1_000_000_000_000_000, 0.99, Arrivals::Fixed, Start::Each(2), 10),
    ]
    .into_iter()
    .enumerate()
    {
        let parameters = Parameters { n, lambda, d: 1, arrivals, start };
        let exact = predict(&parameters, When::Round(rounds), Measure::Post).expect("a law").bins;
        let seen = profiles(&parameters, 40_000 + index as u64, 4000, rounds, Measure::Post);
        // Bins of one replica depend on each other: one bin of each, chosen at random.
        let load = |(replica, profile): (usize, &Profile)| {
            let mut rank = Stream::new(&Draws::new(9, replica as u32, 0), Domain::Choices).below(n);
            let holds = |level: &&Level| {
                let found = rank < level.bins;
                rank = rank.wrapping_sub(level.bins);
                found
            };
            profile.levels().iter().find(holds).expect("a rank below n").load
        };
        let law = law_of(|k| exact.load_exceedance(k));
        assert_within(&format!("{parameters:?}, round {rounds}"), against_law(seen.iter().enumerate().map(load), &law));
    }
}

/// With one choice and Poisson arrivals the bins are independent: the max load of 10^12 of them has a known law.
#[test]
fn one_choice_with_poisson_arrivals_has_the_exact_max_load_of_any_number_of_bins() {
    let starts = [Start::Empty, Start::Each(3), Start::OneBin(9), Start::Empty, Start::OneBin(30)];
    for (index, (n, start)) in
        [10, 1000, 1_000_000, 1_000_000_000_000, 1_000_000_000_000_000].into_iter().zip(starts).enumerate()
    {
        let parameters = Parameters { n, lambda: 0.9, d: 1, arrivals: Arrivals::Poisson, start };
        for rounds in [1, 3, 12] {
            for measure in [Measure::Pre, Measure::Post] {
                let exact = predict(&parameters, When::Round(rounds), measure).expect("a law").bins;
                let seen = profiles(&parameters, 50_000 + 100 * index as u64 + rounds, 4000, rounds, measure);
                let law = law_of(|k| exact.max_exceedance(k));
                let result = against_law(seen.iter().map(Profile::max_load), &law);
                assert_within(&format!("{parameters:?}, {measure:?}, round {rounds}"), result);
            }
        }
    }
}

/// Mean and variance of the fraction of bins that satisfy `load >= k`, over the replicas.
fn fraction(profiles: &[Profile], n: u64, k: u64) -> (f64, f64) {
    let of = |p: &Profile| p.levels().iter().filter(|l| l.load >= k).map(|l| l.bins).sum::<u64>() as f64 / n as f64;
    let values: Vec<f64> = profiles.iter().map(of).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, squares / (values.len() - 1) as f64)
}

/// The bias against the mean field is of order 1/n, far below the errors here, and the fluctuations are of order
/// 1/sqrt(n) with the same factor for every large n.
#[test]
fn a_billion_bins_and_more_follow_the_mean_field_with_fluctuations_of_order_one_over_root_n() {
    const REPLICAS: u64 = 100;
    let t =
        StudentsT::new(0.0, 1.0, (REPLICAS - 1) as f64).expect("valid").inverse_cdf(1.0 - ALPHA / COMPARISONS / 2.0);
    let f = FisherSnedecor::new((REPLICAS - 1) as f64, (REPLICAS - 1) as f64).expect("valid");
    let f = f.inverse_cdf(1.0 - ALPHA / COMPARISONS / 2.0);
    for (index, (d, lambda, arrivals)) in [
        (2, 0.95, Arrivals::Binomial),
        (3, 0.99, Arrivals::Poisson),
        (4, 0.5, Arrivals::Fixed),
        (1, 0.9, Arrivals::Binomial),
    ]
    .into_iter()
    .enumerate()
    {
        let mut scaled: Vec<[f64; 3]> = Vec::new();
        for n in [1_000_000_000, 1_000_000_000_000, 1_000_000_000_000_000] {
            let parameters = Parameters { n, lambda, d, arrivals, start: Start::Empty };
            let limit = predict(&parameters, When::Round(40), Measure::Post).expect("a law").bins;
            let seen = profiles(&parameters, 60_000 + index as u64, REPLICAS, 40, Measure::Post);
            for k in (1..).take_while(|&k| limit.load_exceedance(k) * n as f64 > 1e4) {
                let (mean, variance) = fraction(&seen, n, k);
                let statistic = (mean - limit.load_exceedance(k)) / (variance / REPLICAS as f64).sqrt();
                println!("{parameters:?}, P(load >= {k}): t {statistic:+.2}, bound {t:.2}");
                assert!(statistic.abs() <= t, "{parameters:?}, P(load >= {k}): {mean}");
            }
            scaled.push([1, 2, 3].map(|k| fraction(&seen, n, k).1 * n as f64));
        }
        for larger in &scaled[1..] {
            for k in 0..3 {
                let ratio = larger[k] / scaled[0][k];
                println!("d {d}, lambda {lambda}, n Var P(load >= {}): ratio {ratio:.3}, bound {f:.3}", k + 1);
                assert!((1.0 / f..=f).contains(&ratio));
            }
        }
    }
}

/// The bits of a run on profiles, on every host: a change here raises `PROFILE_STREAM_VERSION`.
#[test]
fn the_stream_is_pinned() {
    assert_eq!(PROFILE_STREAM_VERSION, 1);
    for (n, d, arrivals, start, levels) in [
        (1000, 2, Arrivals::Binomial, Start::Random(3000), PINNED[0]),
        (1_000_000_000_000, 1, Arrivals::Fixed, Start::Empty, PINNED[1]),
        (1_000_000_000_000_000, 3, Arrivals::Poisson, Start::OneBin(100), PINNED[2]),
    ] {
        let parameters = Parameters { n, lambda: 0.9, d, arrivals, start };
        let seen = profiles(&parameters, 0x1234_5678_9ABC_DEF0, 3, 12, Measure::Post);
        let seen: Vec<(u64, u64)> = seen[2].levels().iter().map(|l| (l.load, l.bins)).collect();
        assert_eq!(seen, levels, "{parameters:?}");
    }
}

/// (load, bins) of replica 2 after 12 rounds.
const PINNED: [&[(u64, u64)]; 3] = [
    &[(0, 89), (1, 237), (2, 352), (3, 248), (4, 58), (5, 13), (6, 3)],
    &[
        (0, 402_298_915_288),
        (1, 203_691_019_611),
        (2, 148_304_077_426),
        (3, 99_497_538_797),
        (4, 63_030_860_961),
        (5, 37_900_314_861),
        (6, 21_672_200_736),
        (7, 11_806_025_202),
        (8, 6_138_054_314),
        (9, 3_050_850_975),
        (10, 1_452_306_838),
        (11, 663_140_453),
        (12, 290_864_953),
        (13, 122_762_417),
        (14, 49_908_299),
        (15, 19_576_658),
        (16, 7_409_912),
        (17, 2_716_734),
        (18, 963_567),
        (19, 330_774),
        (20, 109_661),
        (21, 35_480),
        (22, 11_295),
        (23, 3_437),
        (24, 944),
        (25, 300),
        (26, 79),
        (27, 17),
        (28, 7),
        (29, 2),
        (30, 2),
    ],
    &[
        (0, 502_062_544_474_139),
        (1, 321_768_269_547_964),
        (2, 122_686_642_937_072),
        (3, 38_919_245_932_905),
        (4, 11_087_220_928_697),
        (5, 2_746_708_266_690),
        (6, 593_420_082_296),
        (7, 113_196_018_138),
        (8, 19_300_140_981),
        (9, 2_973_079_634),
        (10, 417_521_741),
        (11, 53_852_640),
        (12, 6_421_926),
        (13, 713_403),
        (14, 73_802),
        (15, 7_239),
        (16, 661),
        (17, 66),
        (18, 5),
        (88, 1),
    ],
];

fn job(process: &LeakyProfile, measure: Measure) -> ProfileJob<'_> {
    let schedule = Schedule { rounds: 60, burn_in: 10, every: 3, loads_every: 2, measure };
    ProfileJob { process, seed: 77, replicas: 40, schedule }
}

fn with_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads").install(run)
}

#[test]
fn threads_and_blocks_change_nothing() {
    for (n, d) in [(7, 2), (1000, 1), (1_000_000_000_000, 3)] {
        let process = LeakyProfile::new(&Parameters { n, d, ..Parameters::default() }).expect("valid");
        let job = job(&process, Measure::Post);
        let control = Control::default();
        let whole = with_threads(1, || job.run(0..40, &control)).expect("a result");
        assert_eq!(whole, with_threads(4, || job.run(0..40, &control)).expect("a result"));
        let mut parts = Tally::default();
        for block in [33..40, 0..1, 1..33] {
            parts.merge(&with_threads(2, || job.run(block, &control)).expect("a result"));
        }
        assert_eq!(whole, parts);
        assert_eq!(control.rounds(), 3 * 40 * 60);
    }
}

#[test]
fn tallies_are_those_of_the_profiles() {
    for (index, measure) in [Measure::Pre, Measure::Post].into_iter().enumerate() {
        let parameters = Parameters { n: 500, d: 2, start: Start::OneBin(1_000_000), ..Parameters::default() };
        let process = LeakyProfile::new(&parameters).expect("valid");
        let mut job = job(&process, measure);
        job.schedule = Schedule { rounds: 9, burn_in: 8, every: 1, loads_every: 1, measure };
        let tally = job.run(0..40, &Control::default()).expect("a result");
        let seen = profiles(&parameters, 77, 40, 9, measure);
        let loads = seen.iter().flat_map(Profile::levels).flat_map(|l| std::iter::repeat_n(l.load, l.bins as usize));
        let counted: BTreeMap<_, _> = tally.load_per_bin.iter().map(|(load, bins)| (load, bins as u64)).collect();
        assert_eq!(counted, counts(loads));
        assert_eq!(tally.max_load.iter().collect::<BTreeMap<_, _>>(), counts(seen.iter().map(Profile::max_load)));
        assert_eq!(tally.total_load.samples.sum, seen.iter().map(Profile::balls).sum::<u128>());
        assert_eq!(tally.empty_bins.samples.sum, seen.iter().map(|p| u128::from(p.empty_bins())).sum::<u128>());
        assert!(tally.conserves_balls() && tally.replicas == 40 && tally.samples() == 40);
        // A bin this full is hit by a ball in 500^2 with two choices: it drains by one a round.
        let drained = 1_000_000 - 9 + [1, 0][index];
        assert!(tally.max_load.iter().all(|(max, _)| (drained..drained + 3).contains(&max)));
    }
}

fn leaky(n: u64, d: u64, lambda: f64, start: Start) -> ProcessSpec {
    ProcessSpec::Leaky(Parameters { n, d, lambda, start, ..Parameters::default() })
}

fn spec(process: ProcessSpec, replicas: u64) -> Spec {
    let schedule = Schedule { rounds: 30, burn_in: 10, every: 5, loads_every: 1, measure: Measure::Post };
    Spec { process, seed: 5, replicas, schedule, stopping: None }
}

/// What a run gives is what the replicas give, whatever the block they are in.
#[test]
fn a_run_of_the_largest_n_counts_beyond_64_bits() {
    const N: u64 = 1_000_000_000_000_000;
    let mut spec = spec(leaky(N, 2, 0.9, Start::Empty), 1000);
    (spec.schedule.rounds, spec.schedule.every) = (60, 1);
    let mut pool = Pool::from(Profiles);
    let outcome = run::run(&spec, &mut pool, &Control::default(), None, &mut |_| {}).expect("a result");
    let name = outcome.machine.as_ref().map(|machine| machine.backend.as_str());
    assert_eq!((outcome.stream, name), (StreamKind::Profile, Some("profile")));
    let Tally { flow, load_per_bin, replicas, .. } = &outcome.tally;
    assert!(outcome.tally.conserves_balls() && *replicas == 1000);
    assert_eq!(load_per_bin.total(), u128::from(N) * 1000 * 50);
    // 6e19 generators emit a ball with probability 0.9: a standard deviation of 2.3e9, and six of them.
    assert!(flow.arrived.abs_diff(54_000_000_000_000_000_000) < 14_000_000_000, "{flow:?}");
    let form = spec.process.build_for(StreamKind::Profile).expect("valid");
    assert_eq!(spec.blocks(&form).collect::<Vec<_>>(), std::slice::from_ref(&(0..1000)), "replicas share the threads");
    let mut parts = Tally::default();
    for block in [0..1, 1..400, 400..1000] {
        parts.merge(&Profiles.run(&spec.work(&form, false), block, &Control::default()).expect("a result").tally);
    }
    assert_eq!(parts, outcome.tally);
}

#[test]
fn each_backend_takes_the_form_that_it_is_for() {
    let spec = spec(leaky(100, 2, 0.9, Start::Empty), 3);
    let [bins, profile] =
        [StreamKind::Bins, StreamKind::Profile].map(|kind| spec.process.build_for(kind).expect("valid"));
    for (mut backend, wrong, remedy) in [
        (Box::new(Host::cpu()) as Box<dyn Backend>, &profile, "use --backend profile"),
        (Box::new(Host::reference()), &profile, "use --backend profile"),
        (Box::new(Profiles), &bins, "use --backend cpu"),
    ] {
        let refused =
            backend.run(&spec.work(wrong, false), 0..3, &Control::default()).expect_err("refused").to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
}

#[test]
fn what_needs_single_bins_is_refused_with_a_remedy() {
    let large = spec(leaky(1 << 32, 2, 0.9, Start::Empty), 1);
    let refused = |mut pool: Pool, dump: bool| {
        let mut loads = Vec::new();
        let dump = dump.then_some(&mut loads as &mut (dyn Write + Send));
        run::run(&large, &mut pool, &Control::default(), dump, &mut |_| {}).expect_err("refused").to_string()
    };
    assert!(refused(Host::cpu().into(), false).contains("use n <= 2^31, or `leakybins run` with --backend profile"));
    assert!(refused(Profiles.into(), true).contains("no loads of single bins to dump; use --backend cpu"));
    let pilot = BurnIn::find(&large, &Control::default());
    assert!(matches!(pilot, Err(RunError::Spec(SpecError::PilotBins(n))) if n == 1 << 32), "{pilot:?}");
}

/// The rule is a part of what a seed means: a change of it is a change of results.
#[test]
fn auto_is_profiles_by_a_rule_that_reads_the_specification_alone() {
    const MANY: u64 = 1 << 22;
    let file = || Start::File("loads.txt".into());
    for (process, profile) in [
        (leaky(MANY, 2, 0.95, Start::Empty), true),
        (leaky(MANY - 1, 2, 0.95, Start::Empty), false),
        (leaky(MANY, 2, 1.0, Start::OneBin(1 << 31)), true),
        (leaky(MANY, 2, 0.95, file()), false),
        // With one choice the drift (1 - lambda) n must be 2^10.
        (leaky(MANY, 1, 1.0 - 1.0 / 4096.0, Start::Empty), true),
        (leaky(MANY, 1, 1.0 - 1.0 / 4097.0, Start::Empty), false),
        (leaky(1 << 30, 1, 1.0 - 1.0 / 4097.0, Start::Empty), true),
        (leaky(1 << 31, 1, 1.0, Start::Empty), false),
        (leaky((1 << 31) + 1, 1, 1.0, Start::Empty), true),
    ] {
        let choice = Choice::Auto.resolve(&process, false);
        assert_eq!(choice, if profile { Choice::Profile } else { Choice::Auto }, "{process:?}");
        assert_eq!(choice.stream() == StreamKind::Profile, profile);
        assert_eq!(Choice::Auto.resolve(&process, true), Choice::Auto, "final loads are those of single bins");
        for named in [Choice::Cpu, Choice::Gpu, Choice::Reference, Choice::Profile] {
            assert_eq!(named.resolve(&process, false), named);
        }
    }
}

/// The largest and the oddest: every start, rates at both ends, the largest n and d.
#[test]
fn extreme_parameters_run_and_conserve_balls() {
    for n in [1, 2, 1_000_003, 1_000_000_000_000_000] {
        for start in [Start::Empty, Start::Each(4000), Start::OneBin(1 << 31), Start::Random(1 << 31)] {
            for (d, lambda, arrivals) in [
                (1, 1.0, Arrivals::Binomial),
                (2, 1e-15, Arrivals::Poisson),
                (256, 1.0, Arrivals::Fixed),
                (3, 0.0, Arrivals::Binomial),
                (5, 1.0 - 1e-12, Arrivals::Poisson),
            ] {
                let parameters = Parameters { n, lambda, d, arrivals, start: start.clone() };
                let process = LeakyProfile::new(&parameters).expect("valid");
                let mut job = job(&process, Measure::Post);
                (job.replicas, job.schedule.rounds) = (2, 20);
                let tally = job.run(0..2, &Control::default()).unwrap_or_else(|e| panic!("{parameters:?}: {e}"));
                assert_eq!(tally.samples(), 6, "{parameters:?}");
            }
        }
    }
}

#[test]
fn more_than_64_bits_of_balls_and_wrong_parameters_are_refused() {
    let refused = |parameters: Parameters| LeakyProfile::new(&parameters).expect_err("refused").to_string();
    let n = 1_000_000_000_000_000;
    assert!(refused(Parameters { n: n + 1, ..Parameters::default() }).contains("10^15"));
    assert!(refused(Parameters { n: 0, ..Parameters::default() }).contains("use 1 <= n"));
    assert!(refused(Parameters { lambda: f64::NAN, ..Parameters::default() }).contains("lambda"));
    assert!(refused(Parameters { d: 257, ..Parameters::default() }).contains("use 1 <= d <= 256"));
    assert!(refused(Parameters { n, start: Start::Each(1 << 31), ..Parameters::default() }).contains("2^62 balls"));
    let file = Parameters { n, start: Start::File("loads.txt".into()), ..Parameters::default() };
    assert!(matches!(LeakyProfile::new(&file), Err(ParameterError::Start { .. })));
}
