//! The samplers against exact probabilities (`kat/samplers.json`) and exact enumerations.
//!
//! Fixed seeds; the chance that a test of this file would fail by bad luck with other seeds is below 1e-6 in all: ALPHA
//! is shared out equally over the comparisons, and each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::profile::{Balls, Level, Profile, Thrower};
use leakybins::rng::samplers::{binomial, scatter};
use leakybins::rng::stream::Stream;
use leakybins::rng::{Domain, Draws};
use serde_json::Value;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::BTreeMap;

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 60.0;

fn stream(seed: u64) -> Stream {
    Stream::new(&Draws::new(seed, 0, 0), Domain::Profile)
}

/// Fails unless the counts follow the probabilities; cells are pooled in order until each expects at least 10.
fn assert_law(what: &str, cells: &[(u64, f64)]) {
    let (statistic, bound) = chi_square(cells);
    println!("{what}: chi-square {statistic:.1}, bound {bound:.1}");
    assert!(statistic <= bound, "{what}: chi-square {statistic:.1} exceeds {bound:.1}");
}

fn chi_square(cells: &[(u64, f64)]) -> (f64, f64) {
    let samples = cells.iter().map(|(count, _)| count).sum::<u64>() as f64;
    let mut pooled: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    for &(count, probability) in cells {
        if pooled.last().is_some_and(|cell| cell.1 >= 10.0) {
            pooled.push((0.0, 0.0));
        }
        let last = pooled.last_mut().expect("never empty");
        *last = (last.0 + count as f64, last.1 + probability * samples);
    }
    if pooled.len() > 1 && pooled.last().is_some_and(|cell| cell.1 < 10.0) {
        let rest = pooled.pop().expect("more than one");
        let last = pooled.last_mut().expect("one is left");
        *last = (last.0 + rest.0, last.1 + rest.1);
    }
    assert!(pooled.len() > 1, "nothing to compare");
    let statistic = pooled.iter().map(|(o, e)| (o - e) * (o - e) / e).sum();
    let law = ChiSquared::new((pooled.len() - 1) as f64).expect("degrees of freedom");
    (statistic, law.inverse_cdf(1.0 - ALPHA / COMPARISONS))
}

#[test]
fn binomial_numbers_follow_their_law_in_bulk_and_in_the_tails() {
    let all: Value = serde_json::from_str(include_str!("kat/samplers.json")).expect("valid JSON");
    for (index, case) in all["binomial_bulk"].as_array().expect("cases").iter().enumerate() {
        let (n, odds) = (case["n"].as_u64().expect("n"), case["odds"].as_f64().expect("odds"));
        let edges: Vec<u64> = case["edges"].as_array().expect("edges").iter().map(|e| e.as_u64().expect("k")).collect();
        let number = |v: &Value| v.as_str().expect("text").parse::<f64>().expect("a number");
        let at_most: Vec<f64> = case["at_most"].as_array().expect("P").iter().map(number).collect();
        let mut stream = stream(100 + index as u64);
        let mut counts = vec![0; edges.len() + 1];
        for _ in 0..1_000_000 {
            let k = binomial(&mut stream, n, odds);
            assert!(k <= n);
            counts[edges.partition_point(|&edge| edge < k)] += 1;
        }
        let below = [0.0].into_iter().chain(at_most.iter().copied());
        let upto = at_most.iter().copied().chain([1.0]);
        let cells: Vec<(u64, f64)> = counts.into_iter().zip(below.zip(upto).map(|(a, b)| b - a)).collect();
        assert_law(&format!("Binomial({n}, odds {odds})"), &cells);
    }
}

#[test]
fn certain_and_impossible_outcomes_take_no_chance() {
    let mut stream = stream(1);
    for n in [0, 1, 5, 1 << 53] {
        assert_eq!(binomial(&mut stream, n, 0.0), 0);
        assert_eq!(binomial(&mut stream, n, f64::INFINITY), n);
        assert_eq!(binomial(&mut stream, n, 1e-300), 0);
        assert_eq!(binomial(&mut stream, n, 1e300), n);
    }
}

/// P(t bins are hit), t = 0, 1, ..: a ball hits a new bin with probability (bins - t) / bins.
fn bins_hit(balls: u64, bins: u64) -> Vec<f64> {
    let mut law = vec![1.0];
    for _ in 0..balls {
        let mut next = vec![0.0; law.len() + 1];
        for (t, p) in law.iter().enumerate() {
            next[t] += p * t as f64 / bins as f64;
            next[t + 1] += p * (bins as f64 - t as f64) / bins as f64;
        }
        law = next;
    }
    law
}

#[test]
fn scattered_balls_hit_the_right_number_of_bins() {
    // Ball by ball (few balls, or few bins) and by collisions.
    for (balls, bins) in
        [(2, 2), (5, 3), (12, 7), (15, 1000), (16, 64), (40, 100), (100, 400), (200, 3000), (300, 100_000)]
    {
        let mut stream = stream(200 + balls);
        let law = bins_hit(balls, bins);
        let mut counts = vec![0; law.len()];
        for _ in 0..200_000 {
            let (mut thrown, mut hit) = (0, 0);
            scatter(&mut stream, balls, bins, &mut |k, many| {
                assert!(k > 0 && many > 0);
                thrown += k * many;
                hit += many;
            });
            assert_eq!(thrown, balls);
            counts[hit as usize] += 1;
        }
        let cells: Vec<(u64, f64)> = counts.into_iter().zip(law).collect();
        assert_law(&format!("{balls} balls in {bins} bins, bins hit"), &cells);
    }
}

/// The law of the profile after a throw, by enumeration: bins with these loads, each hit in proportion to its weight.
fn thrown_profiles(loads: &[u64], weights: &[f64], balls: u64) -> BTreeMap<Vec<u64>, f64> {
    fn split(loads: &mut [u64], odds: &[f64], bin: usize, left: u64, p: f64, law: &mut BTreeMap<Vec<u64>, f64>) {
        if bin + 1 == loads.len() {
            loads[bin] += left;
            let mut sorted = loads.to_vec();
            sorted.sort_unstable();
            *law.entry(sorted).or_insert(0.0) += p;
            loads[bin] -= left;
            return;
        }
        // Binomial(left, odds / (1 + odds)).
        let q = odds[bin] / (1.0 + odds[bin]);
        let mut factor = (1.0 - q).powi(left as i32);
        for here in 0..=left {
            loads[bin] += here;
            split(loads, odds, bin + 1, left - here, p * factor, law);
            loads[bin] -= here;
            factor *= (left - here) as f64 / (here + 1) as f64 * odds[bin];
        }
    }
    let odds: Vec<f64> = (0..weights.len()).map(|i| weights[i] / weights[i + 1..].iter().sum::<f64>()).collect();
    let mut law = BTreeMap::new();
    split(&mut loads.to_vec(), &odds, 0, balls, 1.0, &mut law);
    law
}

#[test]
fn throws_have_the_exact_law_of_the_profile() {
    // (loads, weight of a load, balls): few balls are divided at once, more go through the Poisson throw and its mend.
    type Case = (&'static [u64], fn(u64) -> f64, u64);
    let cases: [Case; 6] = [
        (&[0, 0], |_| 1.0, 3),
        (&[0, 0, 0], |_| 1.0, 12),
        (&[0, 0, 2], |load| if load == 0 { 2.0 } else { 0.5 }, 5),
        (&[0, 0, 2], |load| if load == 0 { 2.0 } else { 0.5 }, 14),
        (&[1, 1, 2, 9], |load| 1.0 / load as f64, 16),
        (&[0, 0, 0, 3], |load| if load == 0 { 1.0 } else { 0.02 }, 20),
    ];
    for (index, (loads, weight, balls)) in cases.into_iter().enumerate() {
        let weights: Vec<f64> = loads.iter().map(|&load| weight(load)).collect();
        let law = thrown_profiles(loads, &weights, balls);
        let start = Profile::new(loads.iter().map(|&load| Level { load, bins: 1 }));
        // The weight as a function of the bins that have at least a load names the load: it is that of rank x - 1.
        let of_rank = |at_least: u64, _| weights[loads.len() - at_least as usize];
        let (mut stream, mut thrower) = (stream(300 + index as u64), Thrower::default());
        let mut counts: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for _ in 0..200_000 {
            let mut profile = start.clone();
            assert_eq!(thrower.throw(&mut stream, &mut profile, Balls::Exactly(balls), of_rank), balls);
            let bins = profile.levels().iter().flat_map(|l| std::iter::repeat_n(l.load, l.bins as usize));
            *counts.entry(bins.collect()).or_insert(0) += 1;
        }
        assert!(counts.keys().all(|profile| law.contains_key(profile)), "case {index}: an impossible profile");
        let mut cells: Vec<(u64, f64)> = law.iter().map(|(p, &q)| (counts.get(p).copied().unwrap_or(0), q)).collect();
        cells.sort_by(|a, b| a.1.total_cmp(&b.1));
        assert_law(&format!("{balls} balls on {loads:?}"), &cells);
    }
}

#[test]
fn poisson_throws_are_independent_poisson_numbers() {
    // Two bins of weight 1 and one of weight 3, 2.5 balls on average: P(profile) by products.
    let poisson = |mean: f64, k: u64| (1..=k).fold((-mean).exp(), |p, i| p * mean / i as f64);
    let start = Profile::new([Level { load: 0, bins: 2 }, Level { load: 5, bins: 1 }]);
    let (mut stream, mut thrower) = (stream(400), Thrower::default());
    let mut counts: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for _ in 0..300_000 {
        let mut profile = start.clone();
        let weight = |at_least, _| if at_least == 3 { 1.0 } else { 3.0 };
        let thrown = thrower.throw(&mut stream, &mut profile, Balls::Poisson(2.5), weight);
        assert_eq!(u128::from(thrown) + 5, profile.balls());
        *counts.entry((profile.empty_bins(), thrown)).or_insert(0) += 1;
    }
    let mut cells = Vec::new();
    for total in 0..=12 {
        for empty in 0..=2 {
            let mut p = 0.0;
            for (i, j) in (0..=total).flat_map(|i| (0..=total - i).map(move |j| (i, j))) {
                if u64::from(i == 0) + u64::from(j == 0) == empty {
                    p += poisson(0.5, i) * poisson(0.5, j) * poisson(1.5, total - i - j);
                }
            }
            if p > 0.0 {
                cells.push((counts.remove(&(empty, total)).unwrap_or(0), p));
            }
        }
    }
    let rest = 1.0 - cells.iter().map(|cell| cell.1).sum::<f64>();
    cells.push((counts.values().sum(), rest));
    assert_law("empty bins and balls of a Poisson throw", &cells);
}

/// The comparisons have teeth: laws that are off by little are told apart with the same samples and bounds.
#[test]
fn wrong_laws_are_rejected() {
    let law = bins_hit(100, 400);
    let mut counts = vec![0; law.len()];
    let mut stream = stream(500);
    for _ in 0..200_000 {
        let mut hit = 0;
        // Three bins more than the law has.
        scatter(&mut stream, 100, 403, &mut |_, many| hit += many);
        counts[hit as usize] += 1;
    }
    let (statistic, bound) = chi_square(&counts.into_iter().zip(law).collect::<Vec<_>>());
    println!("three bins more: chi-square {statistic:.1}, bound {bound:.1}");
    assert!(statistic > bound);
}
