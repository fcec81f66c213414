//! The way back from a start, against exact chains, against plain rounds one by one, and against the speed of draining.
//!
//! Statistical tests use fixed seeds; the chance that one of this file would fail by bad luck with another seed is
//! below 1e-6 in all: ALPHA is shared out equally over the comparisons, and each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

#[path = "common/chi_square.rs"]
mod chi_square;

use chi_square::chi_square;
use leakybins::backend::Control;
use leakybins::process::ProcessSpec;
use leakybins::process::capped::{self, Capacity};
use leakybins::process::leaky::Parameters;
use leakybins::process::start::Start;
use leakybins::recover::{Outcome, Spec, run};
use leakybins::rng::Draws;
use leakybins::stats::Histogram;
use leakybins::theory::SmallChain;
use std::num::NonZeroU16;

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 40.0;

fn spec(parameters: Parameters, replicas: u64, rounds: u64, level: u64) -> Spec {
    of(ProcessSpec::Leaky(parameters), replicas, rounds, level)
}

fn of(process: ProcessSpec, replicas: u64, rounds: u64, level: u64) -> Spec {
    let points_per_decade = NonZeroU16::new(10).expect("not 0");
    Spec { process, seed: 11, replicas, rounds, points_per_decade, level }
}

fn follow(spec: &Spec) -> Outcome {
    run(spec, &Control::default()).expect("a valid run")
}

fn counts(histogram: &Histogram, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    histogram.iter().for_each(|(value, count)| counts[(value as usize).min(cells - 1)] += count as u64);
    counts
}

fn assert_law(what: &str, observed: &Histogram, probabilities: &[f64]) {
    let (statistic, bound) = chi_square(&counts(observed, probabilities.len()), probabilities, ALPHA / COMPARISONS);
    println!("{what}: chi-square {statistic:.1}, bound {bound:.1}, {} replicas", observed.total());
    assert!(statistic <= bound, "{what}: chi-square {statistic:.1} exceeds {bound:.1}");
}

#[test]
fn few_bins_have_the_exact_max_load_along_the_way() {
    for (n, lambda, d, start) in [
        (2, 0.75, 1, Start::OneBin(9)),
        (3, 0.75, 2, Start::OneBin(6)),
        (3, 0.5, 3, Start::Each(4)),
        (4, 0.75, 2, Start::Random(8)),
    ] {
        let parameters = Parameters { n, lambda, d, start, ..Parameters::default() };
        let chain = SmallChain::new(&parameters, 24).expect("a small chain");
        let outcome = follow(&spec(parameters.clone(), 50_000, 20, 0));
        for point in outcome.points.iter().filter(|point| [1, 2, 5, 10, 20].contains(&point.round)) {
            let law = &chain.at_rounds(&[point.round])[0];
            assert!(law.lost < 1e-9, "the cap is high enough");
            assert_law(&format!("{parameters:?}, round {}", point.round), &point.max_load, &law.max_load);
        }
    }
}

/// Law of the first round, 1, 2, .., after which two bins that start with `height` and 0 balls hold at most `level`
/// each: the chain of both loads with its recovered states removed. Binomial arrivals, loads up to 63.
fn two_bins_recover(lambda: f64, d: i32, height: usize, level: usize, rounds: usize) -> Vec<f64> {
    const CAP: usize = 64;
    let mut law = vec![[0.0; CAP]; CAP];
    law[height][0] = 1.0;
    let mut passages = vec![0.0];
    for _ in 0..rounds {
        let mut next = vec![[0.0; CAP]; CAP];
        let mut passed = 0.0;
        for (x, y) in (0..CAP).flat_map(|x| (0..CAP).map(move |y| (x, y))).filter(|&(x, y)| law[x][y] > 0.0) {
            // A ball joins the first bin if all its samples are there, or one is and that is the lower.
            let alone = 0.5f64.powi(d);
            let join = match x.cmp(&y) {
                std::cmp::Ordering::Less => 1.0 - alone,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => alone,
            };
            let (to_first, to_second) = (lambda * join, lambda * (1.0 - join));
            let none = 1.0 - lambda;
            for (a, b, p) in [
                (0, 0, none * none),
                (1, 0, 2.0 * none * to_first),
                (0, 1, 2.0 * none * to_second),
                (2, 0, to_first * to_first),
                (1, 1, 2.0 * to_first * to_second),
                (0, 2, to_second * to_second),
            ] {
                let (u, v) = ((x + a).saturating_sub(1), (y + b).saturating_sub(1));
                if u.max(v) <= level {
                    passed += law[x][y] * p;
                } else if u.max(v) < CAP {
                    next[u][v] += law[x][y] * p;
                }
            }
        }
        law = next;
        passages.push(passed);
    }
    passages
}

#[test]
fn two_bins_recover_by_the_exact_law() {
    for (lambda, d, height, level) in [(0.75, 1, 12, 3), (0.75, 2, 12, 3), (0.5, 2, 9, 0), (0.9, 1, 6, 2)] {
        let start = Start::OneBin(height as u32);
        let parameters = Parameters { n: 2, lambda, d: d as u64, start, ..Parameters::default() };
        let rounds = 400;
        let outcome = follow(&spec(parameters.clone(), 50_000, rounds, level as u64));
        let mut law = two_bins_recover(lambda, d, height, level, rounds as usize);
        let mut observed = outcome.recovered.clone();
        observed.add(rounds + 1, outcome.censored.into());
        law.push(1.0 - law.iter().sum::<f64>());
        assert_law(&format!("{parameters:?}, level {level}"), &observed, &law);
    }
}

/// The same from nothing but [`Process::round`](leakybins::process::Process::round), looking after every round.
fn by_hand(spec: &Spec) -> Outcome {
    let process = spec.process.build().expect("valid parameters");
    let grid = spec.grid();
    let mut points: Vec<_> = grid.iter().map(|&round| (round, Histogram::default(), Histogram::default())).collect();
    let (mut recovered, mut censored) = (Histogram::default(), 0);
    for replica in 0..spec.replicas as u32 {
        let bins = process.bins() as usize;
        let mut loads = vec![0; process.words()];
        process.start(spec.seed, replica, &mut loads);
        let mut first = None;
        for round in 0..=spec.rounds {
            if round > 0 {
                process.round(&Draws::new(spec.seed, replica, round - 1), &mut loads, None);
            }
            let max = u64::from(*loads[..bins].iter().max().expect("there is a bin"));
            let elsewhere: u64 = loads[bins..].iter().map(|&balls| u64::from(balls)).sum();
            if max * bins as u64 + elsewhere <= spec.level * bins as u64 {
                first = first.or(Some(round));
            }
            if let Some((_, max_load, total_load)) = points.iter_mut().find(|point| point.0 == round) {
                max_load.add(max, 1);
                total_load.add(loads.iter().map(|&load| u64::from(load)).sum(), 1);
            }
        }
        match first {
            Some(round) => recovered.add(round, 1),
            None => censored += 1,
        }
    }
    let point = |(round, max_load, total_load)| leakybins::recover::Point { round, max_load, total_load };
    Outcome { points: points.into_iter().map(point).collect(), recovered, censored }
}

#[test]
fn the_outcome_is_that_of_plain_rounds_one_by_one() {
    for (n, lambda, d, start, rounds, level) in [
        (1, 0.9, 1, Start::OneBin(40), 700, 0),
        (2, 0.5, 2, Start::OneBin(300), 700, 1),
        (10, 0.9, 1, Start::OneBin(60), 1500, 12),
        (10, 0.9, 1, Start::OneBin(60), 50, 12),
        (64, 0.95, 2, Start::Each(9), 900, 5),
        (64, 0.95, 3, Start::MeanField, 100, 3),
        (100, 0.75, 2, Start::Random(2000), 137, 2),
        (64, 1.0, 1, Start::Empty, 300, 0),
        (7, 0.5, 2, Start::Empty, 20, 0),
        (7, 0.5, 2, Start::Each(3), 0, 2),
        (7, 0.0, 1, Start::Each(3), 9, 0),
        (5, 0.5, 2, Start::OneBin(70_000), 70_100, 20),
    ] {
        let spec = spec(Parameters { n, lambda, d, start, ..Parameters::default() }, 7, rounds, level);
        let (seen, meant) = (follow(&spec), by_hand(&spec));
        assert_eq!(seen.recovered.total() + u128::from(seen.censored), 7);
        assert!(seen == meant, "{spec:?}: {seen:?}\nagainst {meant:?}");
    }
}

/// A pool that waits is a part of the way, and of what has to come back.
#[test]
fn balls_outside_of_the_bins_come_back_too() {
    for (n, c, start, level) in [
        (64, Capacity::Finite(2), Start::OneBin(1000), 2),
        (64, Capacity::Finite(1), Start::Each(9), 3),
        (10, Capacity::Infinite, Start::OneBin(60), 12),
    ] {
        let parameters = capped::Parameters { n, c, lambda: 0.75, start, ..capped::Parameters::default() };
        let spec = of(ProcessSpec::Capped(parameters), 7, 400, level);
        let (seen, meant) = (follow(&spec), by_hand(&spec));
        assert!(seen.censored == 0 && seen.recovered.iter().all(|(round, _)| round > 10), "{seen:?}");
        assert!(seen == meant, "{spec:?}: {seen:?}\nagainst {meant:?}");
    }
}

/// Between two points of this grid lie more rounds than are watched at once.
#[test]
fn long_ways_between_points_are_no_different() {
    let parameters = Parameters { n: 2, lambda: 0.5, start: Start::OneBin(150_000), ..Parameters::default() };
    let sparse = NonZeroU16::new(1).expect("not 0");
    let spec = Spec { points_per_decade: sparse, ..spec(parameters, 2, 220_000, 1) };
    let seen = follow(&spec);
    // The watched stretches end at rounds 165,536 and 220,000.
    assert!(seen.recovered.iter().all(|(round, _)| round > 165_536) && seen.censored == 0, "{seen:?}");
    assert!(seen == by_hand(&spec));
}

#[test]
fn a_start_below_the_level_has_recovered_at_round_0() {
    for (start, level, rounds) in [(Start::Empty, 0, 0), (Start::OneBin(5), 5, 30), (Start::MeanField, 1 << 40, 1)] {
        let outcome = follow(&spec(Parameters { start, ..Parameters::default() }, 3, rounds, level));
        assert_eq!((outcome.recovered.iter().collect::<Vec<_>>(), outcome.censored), (vec![(0, 3)], 0));
    }
    let never = follow(&spec(Parameters { start: Start::Each(1), lambda: 1.0, ..Parameters::default() }, 3, 40, 0));
    assert_eq!((never.recovered.total(), never.censored), (0, 3));
}

#[test]
fn any_number_of_threads_gives_the_same_outcome() {
    let parameters = Parameters { n: 50, lambda: 0.9, start: Start::OneBin(500), ..Parameters::default() };
    let spec = spec(parameters, 40, 700, 5);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        pool.install(|| follow(&spec))
    };
    let alone = on(1);
    assert!(alone.censored < 40);
    assert!(on(2) == alone && on(7) == alone);
}

/// A tower of H balls comes down to level L after (H - L) / speed rounds. With one choice a round brings a bin lambda
/// balls in the mean, with about that variance: the speed is 1 - lambda, and the time has standard deviation sqrt((H -
/// L) lambda / speed^3). With two choices it brings a tower lambda / n balls, those that sample it twice.
#[test]
fn towers_drain_at_the_speed_of_theory() {
    let (n, lambda, height, level, replicas) = (100u32, 0.9, 10_000u32, 100u32, 64);
    for d in [1, 2] {
        let parameters = Parameters { n: n.into(), lambda, d, start: Start::OneBin(height), ..Parameters::default() };
        let joins = if d == 1 { lambda } else { lambda / f64::from(n) };
        let (speed, balls) = (1.0 - joins, f64::from(height - level));
        let (time, spread) = (balls / speed, (balls * joins / speed.powi(3)).sqrt());
        let outcome = follow(&spec(parameters, replicas, (1.2 * time) as u64, level.into()));
        assert_eq!(outcome.censored, 0);
        let error = (outcome.recovered.mean().expect("all recovered") - time).abs();
        // Five standard errors, and the round that the first passage overshoots by in units of the speed.
        let bound = 5.0 * spread / f64::from(replicas as u32).sqrt() + 2.0 / speed;
        println!("d {d}: {time:.0} rounds, off by {error:.1}, bound {bound:.1}");
        assert!(error <= bound, "d {d}: off by {error} of {time}");
    }
}
