//! Special functions against high-precision values, intervals against their promised coverage.
//!
//! Coverage of independent samples is computed exactly. Coverage of time averages is simulated with fixed seeds against
//! exact values; the chance that such a test would fail by bad luck with another seed is below ALPHA in all, and each
//! prints its coverage and bound.

#![allow(clippy::print_stdout, reason = "coverages and bounds belong to a test's output")]

use leakybins::backend::{Backend, Control, Host, Job, Work};
use leakybins::process::{Measure, leaky};
use leakybins::rng::{Domain, Draws};
use leakybins::run::Schedule;
use leakybins::stats::estimate::{Band, Method, Sampling, exceedance, exceedances, mean};
use leakybins::stats::interval::{Confidence, Interval, IntervalError};
use leakybins::stats::special::beta::{self, Tail};
use leakybins::stats::special::{gamma, normal, student};
use leakybins::stats::{LevelTally, Moments, PowerSums, Tally};
use proptest::prelude::*;
use rayon::prelude::*;
use serde_json::Value;
use statrs::distribution::{Beta, Binomial, ContinuousCDF, Discrete, DiscreteCDF, Normal, StudentsT};
use std::time::{Duration, Instant};

/// Chance of a false alarm of all simulated coverages of this file.
const ALPHA: f64 = 1e-6;
/// Upper bound of their number.
const COMPARISONS: f64 = 200.0;

fn confidence(level: f64) -> Confidence {
    Confidence::new(level).expect("a probability")
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_whitespace().collect())
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

fn from_bits(text: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(text, 16).expect("bits of a float"))
}

fn relative(value: f64, exact: f64) -> f64 {
    if value == exact { 0.0 } else { (value / exact - 1.0).abs() }
}

// Special functions.

#[test]
fn beta_tails_are_those_of_high_precision() {
    let (mut rows, mut worst) = (0, 0f64);
    for fields in lines(include_str!("kat/beta.txt")) {
        let [a, b, x, lower, upper] = fields.as_slice() else { panic!("five fields a line: {fields:?}") };
        let (a, b, x) = (number(a), number(b), from_bits(x));
        for (tail, exact) in [(Tail::Lower, number(lower)), (Tail::Upper, number(upper))] {
            let error = relative(beta::tail(a, b, x, tail), exact);
            // Near the centre the nodes of the integral are rounded to f64, which widens with the shapes.
            let bound = if a.min(b) <= 1e6 { 2e-13 } else { 1e-15 * a.min(b).sqrt() };
            assert!(error <= bound, "Beta({a}, {b}) at {x}, {tail:?}: off by {error:e}, {fields:?}");
            worst = worst.max(if a.min(b) <= 1e6 { error } else { 0.0 });
        }
        rows += 1;
    }
    println!("{rows} rows, worst relative error up to shapes of 1e6: {worst:e}");
    assert_eq!(rows, 102);
}

#[test]
fn gamma_tails_are_those_of_high_precision() {
    let (mut rows, mut worst, mut slowest) = (0, 0f64, Duration::ZERO);
    for fields in lines(include_str!("kat/gamma.txt")) {
        let [a, x, exact] = fields.as_slice() else { panic!("three fields a line: {fields:?}") };
        let (a, x, exact) = (number(a), from_bits(x), number(exact));
        let begun = Instant::now();
        let tail = gamma::upper_tail(a, x);
        if a <= 1e6 {
            slowest = slowest.max(begun.elapsed());
        }
        let error = relative(tail, exact);
        assert!(error < 2e-13, "Q({a}, {x}) = {tail:e}, off by {error:e}: {fields:?}");
        worst = worst.max(error);
        rows += 1;
    }
    println!("{rows} rows, worst relative error {worst:e}, slowest up to a = 1e6 {slowest:?}");
    assert_eq!(rows, 246);
}

#[test]
fn quantiles_are_those_of_high_precision() {
    let (mut rows, mut worst) = (0, 0f64);
    for fields in lines(include_str!("kat/quantiles.txt")) {
        let (value, exact) = match fields.as_slice() {
            ["normal", q, z] => (normal::upper_quantile(from_bits(q)), number(z)),
            ["student", df, q, t] => {
                let (df, q) = (df.parse().expect("degrees of freedom"), from_bits(q));
                let back = student::upper_tail(number(t), df);
                assert!(relative(back, q) < 2e-13, "P(T > t) is {back}: {fields:?}");
                (student::upper_quantile(q, df), number(t))
            }
            _ => panic!("unknown law: {fields:?}"),
        };
        // Near the median a quantile is as ill-conditioned as 1/2 - q.
        let error = relative(value, exact);
        assert!(error < 1e-13 || (value - exact).abs() < 2e-16, "{value} for {exact}: {fields:?}");
        worst = worst.max(error);
        rows += 1;
    }
    println!("{rows} rows, worst relative error {worst:e}");
    assert_eq!(rows, 68);
}

#[test]
fn clopper_pearson_limits_are_those_of_high_precision() {
    let (mut rows, mut worst, mut slowest) = (0, 0f64, Duration::ZERO);
    for fields in lines(include_str!("kat/clopper_pearson.txt")) {
        let [hits, trials, level, low, high] = fields.as_slice() else { panic!("five fields a line: {fields:?}") };
        let (hits, trials) = (hits.parse().expect("hits"), trials.parse().expect("trials"));
        let level = confidence(from_bits(level));
        let begun = Instant::now();
        let interval = Interval::clopper_pearson(hits, trials, level).expect("possible counts");
        slowest = slowest.max(begun.elapsed());
        for (limit, exact) in [(interval.low, number(low)), (interval.high, number(high))] {
            let error = relative(limit, exact);
            assert!(error < 1e-13, "{limit} for {exact}, off by {error:e}: {fields:?}");
            worst = worst.max(error);
        }
        rows += 1;
    }
    println!("{rows} rows, worst relative error {worst:e}, slowest {slowest:?}");
    assert_eq!(rows, 84);
}

#[test]
fn outside_their_domain_functions_are_nan() {
    assert!(beta::tail(0.0, 1.0, 0.5, Tail::Lower).is_nan());
    assert!(beta::tail(1.0, 1.0, 1.5, Tail::Lower).is_nan());
    assert!(beta::tail(f64::INFINITY, 1.0, 0.5, Tail::Lower).is_nan());
    assert!(beta::quantile(1.0, 1.0, 0.0, Tail::Lower).is_nan());
    assert!(beta::quantile(1.0, f64::NAN, 0.5, Tail::Lower).is_nan());
    for (a, x) in [(0.49, 1.0), (1.1e8, 1.0), (f64::NAN, 1.0), (1.0, -1.0), (1.0, f64::NAN)] {
        assert!(gamma::upper_tail(a, x).is_nan(), "Q({a}, {x})");
    }
    assert!(gamma::chi_square_upper_tail(1.0, 0).is_nan());
    assert_eq!((gamma::upper_tail(0.5, 0.0), gamma::upper_tail(0.5, f64::INFINITY)), (1.0, 0.0));
    assert_eq!((gamma::upper_tail(1e8, f64::MIN_POSITIVE), gamma::upper_tail(1e8, f64::MAX)), (1.0, 0.0));
    assert!(normal::upper_quantile(1.0).is_nan());
    assert!(student::upper_quantile(0.1, 0).is_nan());
    assert!(student::upper_tail(f64::NAN, 3).is_nan());
    assert_eq!(beta::tail(2.0, 3.0, 0.0, Tail::Upper), 1.0);
    assert_eq!(beta::tail(2.0, 3.0, 1.0, Tail::Upper), 0.0);
}

/// Hits, trials up to 10^15 on a logarithmic scale, and a confidence anywhere, also very near 0 and 1.
fn counts() -> impl Strategy<Value = (u64, u64, f64)> {
    let trials = (0.0..15.0f64).prop_map(|e| 10f64.powf(e) as u64);
    let share = prop_oneof![(0.0..1.0f64), (-16.0..0.0f64).prop_map(|e| 10f64.powf(e))];
    let level = prop_oneof![
        (0.001..0.999f64),
        (-14.0..-1.0f64).prop_map(|e| 1.0 - 10f64.powf(e)),
        (-9.0..-1.0f64).prop_map(|e| 10f64.powf(e))
    ];
    (trials, share, any::<bool>(), level).prop_map(|(trials, share, mirror, level)| {
        let hits = (trials as f64 * share) as u64;
        (if mirror { trials - hits } else { hits }, trials, level)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clopper_pearson_is_quick_and_each_limit_is_missed_with_half_the_probability((hits, trials, level) in counts()) {
        let level = confidence(level);
        // The best of some calls, for on a busy machine any call may be interrupted.
        let mut best = Duration::MAX;
        let mut interval = None;
        for _ in 0..5 {
            let begun = Instant::now();
            interval = Some(Interval::clopper_pearson(hits, trials, level).expect("possible counts"));
            best = best.min(begun.elapsed());
        }
        let Interval { low, high, .. } = interval.expect("computed above");
        prop_assert!(best < Duration::from_millis(1), "{:?}", best);
        let share = hits as f64 / trials as f64;
        prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
        let (k, n) = (hits as f64, trials as f64);
        // A limit is known to one rounding, which moves its tail by this much in ln at most.
        let bound = |limit: f64, a: f64, b: f64| 1e-11 + 1e-15 * (a + b).sqrt() * 40.0 / (1.0 - limit).max(1e-3);
        if 0.0 < low && low < 0.999 {
            let tail = beta::tail(k, n - k + 1.0, low, Tail::Lower);
            prop_assert!((tail / level.miss() * 2.0).ln().abs() < bound(low, k, n - k + 1.0), "{} for {}", tail, level.miss());
        }
        if high < 0.999 {
            let tail = beta::tail(k + 1.0, n - k, high, Tail::Upper);
            prop_assert!((tail / level.miss() * 2.0).ln().abs() < bound(high, k + 1.0, n - k), "{} for {}", tail, level.miss());
        }
    }

    #[test]
    fn laws_agree_with_another_implementation(a in 0.5..60.0f64, b in 0.5..60.0f64, x in 0.01..0.99f64, df in 1u64..60) {
        let close = |ours: f64, theirs: f64| (ours - theirs).abs() < 1e-9;
        let law = Beta::new(a, b).expect("valid");
        prop_assert!(close(beta::tail(a, b, x, Tail::Lower), law.cdf(x)));
        let law = StudentsT::new(0.0, 1.0, df as f64).expect("valid");
        prop_assert!(close(student::upper_tail(6.0 * x - 3.0, df), law.sf(6.0 * x - 3.0)));
        let law = Normal::new(0.0, 1.0).expect("valid");
        prop_assert!(close(law.sf(normal::upper_quantile(x)), x));
    }
}

// Independent samples: exact coverage.

/// The probability that `covers(hits)` holds for hits of Binomial(trials, p).
fn coverage(trials: u64, p: f64, covers: impl Fn(u64) -> bool) -> f64 {
    let law = Binomial::new(p, trials).expect("valid");
    (0..=trials).filter(|&hits| covers(hits)).map(|hits| law.pmf(hits)).sum()
}

/// The least coverage over all p: it is attained beside a limit of an interval.
fn least_coverage(trials: u64, intervals: &[Interval]) -> f64 {
    let limits = intervals.iter().flat_map(|i| [i.low, i.high]);
    let beside = limits.flat_map(|limit| [limit * (1.0 - 1e-9), limit * (1.0 + 1e-9)]);
    let grid = (1..500).map(|i| f64::from(i) / 500.0);
    let probabilities = beside.chain(grid).filter(|p| 0.0 < *p && *p < 1.0);
    probabilities.map(|p| coverage(trials, p, |hits| intervals[hits as usize].contains(p))).fold(1.0, f64::min)
}

fn all_counts(trials: u64, interval: impl Fn(u64) -> Result<Interval, IntervalError>) -> Vec<Interval> {
    (0..=trials).map(|hits| interval(hits).expect("possible counts")).collect()
}

#[test]
fn clopper_pearson_covers_everywhere() {
    for trials in [1, 2, 3, 10, 37, 200] {
        for level in [0.5, 0.95, 0.999] {
            let two_sided = all_counts(trials, |hits| Interval::clopper_pearson(hits, trials, confidence(level)));
            let least = least_coverage(trials, &two_sided);
            println!("{trials} trials at {level}: least coverage {least:.6}");
            assert!(least >= level - 1e-12, "{trials} trials: {least} at {level}");
            let one_sided = all_counts(trials, |hits| Interval::at_most(hits, trials, confidence(level)));
            let least = least_coverage(trials, &one_sided);
            assert!((level - 1e-12..level + 1e-6).contains(&least), "{trials} trials: {least} at {level}");
        }
    }
}

/// Why no hit gives `3.7 / N` and not the rule of three: a bound chosen because there was no hit does not cover.
#[test]
fn choosing_the_rule_of_three_after_the_fact_undercovers() {
    let (trials, level) = (200, confidence(0.95));
    let mut mixture = all_counts(trials, |hits| Interval::clopper_pearson(hits, trials, level));
    assert!((mixture[0].high * trials as f64 - 3.655).abs() < 0.01);
    mixture[0] = Interval::at_most(0, trials, level).expect("possible counts");
    assert!((mixture[0].high * trials as f64 - 2.974).abs() < 0.01);
    let least = least_coverage(trials, &mixture);
    assert!((0.93..0.945).contains(&least), "{least}");
}

#[test]
fn a_simultaneous_band_shares_the_miss_probability_among_all_levels() {
    let each = confidence(0.95).bonferroni(20).expect("levels");
    assert!((each.miss() - 0.0025).abs() < 1e-15 && (each.level() - 0.9975).abs() < 1e-15);
    let counts = [(0, 1000), (1, 100), (2, 10), (7, 1), (8, 0)];
    let levels = counts.map(|(k, hits)| (k, LevelTally { hits, hits_squared: hits, replicas_hit: hits as u64 }));
    let sampling = Sampling { replicas: 1000, samples: 1 };
    let band = exceedances(&levels, sampling, confidence(0.95), Band::Simultaneous).expect("possible counts");
    assert_eq!((band[0].method, band[0].interval.low, band[0].interval.high), (Method::Certain, 1.0, 1.0));
    for (estimate, (k, hits)) in band.iter().zip(counts).skip(1) {
        let alone =
            Interval::clopper_pearson(hits as u64, 1000, confidence(0.95).bonferroni(k * (k + 1)).expect("a level"));
        assert_eq!(Ok(estimate.interval), alone);
        assert_eq!(estimate.method, Method::ClopperPearson);
    }
    let shares: f64 = (1..100_000u64).map(|k| confidence(0.95).bonferroni(k * (k + 1)).expect("a level").miss()).sum();
    assert!(shares <= 0.05 && shares > 0.0499, "{shares}");
}

#[test]
fn bad_input_is_refused_with_a_remedy() {
    for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        let error = Confidence::new(level).expect_err("not a confidence").to_string();
        assert!(error.contains("0.95"), "{error}");
    }
    let level = confidence(0.95);
    assert_eq!(Interval::clopper_pearson(0, 0, level), Err(IntervalError::Trials(0)));
    assert_eq!(Interval::clopper_pearson(0, u64::MAX, level), Err(IntervalError::Trials(u64::MAX)));
    assert_eq!(Interval::clopper_pearson(3, 2, level), Err(IntervalError::Hits { hits: 3, trials: 2 }));
    assert_eq!(level.bonferroni(0), Err(IntervalError::NoLevels));
    let one = PowerSums { count: 1, sum: 5, sum_squares: 25 };
    assert_eq!(Interval::student(one, level), Err(IntervalError::TooFewValues(1)));
    let equal = PowerSums { count: 3, sum: 15, sum_squares: 75 };
    assert_eq!(Interval::student(equal, level), Err(IntervalError::NoSpread(3)));
    let hit = LevelTally { hits: 5, hits_squared: 25, replicas_hit: 1 };
    let single = Sampling { replicas: 1, samples: 10 };
    assert_eq!(exceedance(&hit, single, level).map(|e| e.value), Err(IntervalError::TooFewValues(1)));
    let short = Sampling { replicas: 2, samples: 2 };
    assert!(matches!(exceedance(&hit, short, level), Err(IntervalError::Hits { .. })));
}

// Estimates from integers.

fn tallied(hits: &[u64]) -> LevelTally {
    let mut level = LevelTally::default();
    hits.iter().for_each(|&hits| level.add(hits));
    level
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_parts_give_the_same_estimate_to_the_last_bit(
        mut hits in prop::collection::vec(prop_oneof![Just(0), Just(1000), 0..=1000u64], 2..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = tallied(&hits);
        let sampling = Sampling { replicas: hits.len() as u64, samples: 1000 };
        hits.reverse();
        let (left, right) = hits.split_at(cut.index(hits.len()));
        let mut parts = tallied(right);
        parts.merge(&LevelTally::default());
        parts.merge(&tallied(left));
        prop_assert_eq!(parts, whole);
        let estimate = exceedance(&parts, sampling, confidence(0.95)).expect("possible counts");
        prop_assert_eq!(&estimate, &exceedance(&whole, sampling, confidence(0.95)).expect("possible counts"));
        let Interval { low, high, .. } = estimate.interval;
        prop_assert!(0.0 <= low && low <= estimate.value && estimate.value <= high && high <= 1.0);
        prop_assert!(low < high, "never x +- 0");
    }

    /// What is said of hits is said of misses.
    #[test]
    fn hits_and_misses_are_treated_alike(hits in prop::collection::vec(prop_oneof![Just(0), 0..=50u64], 2..40)) {
        let sampling = Sampling { replicas: hits.len() as u64, samples: 50 };
        let missed: Vec<u64> = hits.iter().map(|&h| 50 - h).collect();
        let [a, b] = [hits, missed].map(|h| exceedance(&tallied(&h), sampling, confidence(0.9)).expect("possible counts"));
        prop_assert!((a.interval.low - (1.0 - b.interval.high)).abs() < 1e-9, "{:?} {:?}", a, b);
        prop_assert!((a.interval.high - (1.0 - b.interval.low)).abs() < 1e-9, "{:?} {:?}", a, b);
    }

    #[test]
    fn independent_samples_have_no_autocorrelation(values in prop::collection::vec(0u64..1000, 3..50)) {
        prop_assume!(values.iter().any(|&v| v != values[0]));
        let mut moments = Moments::default();
        values.iter().for_each(|&v| moments.add(v));
        let sums = moments.power_sums();
        let estimate = mean(sums, sums, confidence(0.95)).expect("values that differ");
        let precision = estimate.precision.expect("values that differ");
        prop_assert!((precision.autocorrelation_time - 1.0).abs() < 1e-12);
        prop_assert!((precision.effective_samples / values.len() as f64 - 1.0).abs() < 1e-12);
        let t = StudentsT::new(0.0, 1.0, values.len() as f64 - 1.0).expect("valid").inverse_cdf(0.975);
        let half_width = (estimate.interval.high - estimate.interval.low) / 2.0;
        prop_assert!((half_width / precision.standard_error / t - 1.0).abs() < 1e-7);
    }
}

#[test]
fn far_and_near_equal_totals_lose_no_digit() {
    // All replicas at 2^50 + 1 but one at 2^50: the squared deviations sum to (R - 1) / R.
    let (count, far) = (1_000_003u64, 1u128 << 50);
    let sum = (far + 1) * u128::from(count) - 1;
    let sum_squares = (far + 1) * (far + 1) * u128::from(count - 1) + far * far;
    let exact = (count - 1) as f64 / count as f64;
    assert_eq!(PowerSums { count, sum, sum_squares }.centred_squares(), exact);
}

/// Samples that repeat an independent draw five times have an autocorrelation time of five.
#[test]
fn the_autocorrelation_time_is_that_of_a_known_chain() {
    let (replicas, blocks, repeats) = (4000u32, 20u32, 5u64);
    let (mut samples, mut totals, mut level) = (Moments::default(), Moments::default(), LevelTally::default());
    for replica in 0..replicas {
        let draws = Draws::new(5, replica, 0);
        let mut hits = 0;
        for block in 0..blocks {
            let hit = u64::from(draws.block(Domain::Start, 0, block)[0] < 1 << 30);
            (0..repeats).for_each(|_| samples.add(hit));
            hits += repeats * hit;
        }
        totals.add(hits);
        level.add(hits);
    }
    let of_mean = mean(samples.power_sums(), totals.power_sums(), confidence(0.95)).expect("a spread");
    let sampling = Sampling { replicas: replicas.into(), samples: u64::from(blocks) * repeats };
    let of_level = exceedance(&level, sampling, confidence(0.95)).expect("possible counts");
    assert_eq!(of_mean.precision, of_level.precision);
    let time = of_mean.precision.expect("a spread").autocorrelation_time;
    // Relative error of a variance from 4000 replicas: sqrt(2 / 4000) = 0.022.
    assert!((time / 5.0 - 1.0).abs() < 0.1, "{time}");
    // With hits in plenty the interval is the t interval.
    let difference = of_mean.interval.high - of_level.interval.high;
    assert!(difference.abs() < 0.02 * (of_mean.interval.high - of_mean.interval.low), "{difference}");
}

#[test]
fn unseen_levels_have_bounds_that_fall() {
    let mut levels: Vec<LevelTally> =
        [[100; 8].as_slice(), &[40, 3, 0, 7, 90, 0, 1, 2], &[2, 0, 0, 0, 0, 0, 1, 0], &[0; 8]].map(tallied).to_vec();
    levels.push(levels[3]);
    let levels: Vec<(u64, LevelTally)> = (1..).zip(levels).collect();
    let sampling = Sampling { replicas: 8, samples: 100 };
    let table = exceedances(&levels, sampling, confidence(0.95), Band::Pointwise).expect("possible counts");
    let methods: Vec<Method> = table.iter().map(|e| e.method).collect();
    use Method::{KornGraubard, Unseen};
    assert_eq!(methods, [Unseen, KornGraubard, KornGraubard, Unseen, Unseen]);
    assert_eq!((table[3].interval.low, table[3].precision), (0.0, None));
    assert!(table[3].interval.high > 0.0 && table[3].interval.high <= table[2].interval.high);
    let alone = exceedance(&levels[3].1, sampling, confidence(0.95)).expect("possible counts");
    assert_eq!(Ok(alone.interval), Interval::clopper_pearson(0, 8, confidence(0.95)));
    assert_eq!((table[0].value, table[0].interval.high), (1.0, 1.0));
    assert!(table[0].interval.low < 1.0 && table[0].interval.low >= table[1].interval.low);
}

// Time averages: coverage by simulation.

/// P(max load >= k) of two bins in stationarity, by iterating the exact chain on (larger, smaller) load.
fn two_bins(lambda: f64, d: i32) -> Vec<f64> {
    const SIDE: usize = 60;
    let arrivals = [(1.0 - lambda) * (1.0 - lambda), 2.0 * lambda * (1.0 - lambda), lambda * lambda];
    let mut law = vec![0.0; SIDE * SIDE];
    law[0] = 1.0;
    loop {
        let mut next = vec![0.0; SIDE * SIDE];
        for large in 0..SIDE {
            for small in 0..=large {
                let weight = law[large * SIDE + small];
                // A ball joins the larger load only if all its samples do.
                let up = if large == small { 0.5 } else { 0.5f64.powi(d) };
                let joins =
                    [[1.0, 0.0, 0.0], [1.0 - up, up, 0.0], [(1.0 - up) * (1.0 - up), 2.0 * up * (1.0 - up), up * up]];
                for (balls, &p) in arrivals.iter().enumerate() {
                    for (joined, &q) in joins[balls].iter().enumerate().take(balls + 1) {
                        let x = (large + joined).saturating_sub(1).min(SIDE - 1);
                        let y = (small + balls - joined).saturating_sub(1).min(SIDE - 1);
                        next[x.max(y) * SIDE + x.min(y)] += weight * p * q;
                    }
                }
            }
        }
        let change: f64 = law.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
        law = next;
        if change < 1e-13 {
            break;
        }
    }
    let mut exceedances: Vec<f64> = (0..SIDE).map(|large| law[large * SIDE..][..=large].iter().sum()).collect();
    for k in (1..SIDE).rev() {
        exceedances[k - 1] += exceedances[k];
    }
    exceedances[0] = 1.0;
    exceedances
}

fn oracles(kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("oracles/leaky.json")).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn exceedances_of(law: &[Value]) -> Vec<f64> {
    let mut sums: Vec<f64> = law.iter().map(|p| p.as_f64().expect("a probability")).collect();
    for k in (1..sums.len()).rev() {
        sums[k - 1] += sums[k];
    }
    sums[0] = 1.0;
    sums
}

/// One experiment: many runs of some replicas from the empty state.
struct Experiment {
    n: u64,
    lambda: f64,
    d: u64,
    runs: u64,
    sampling: Sampling,
    burn_in: u64,
}

impl Experiment {
    /// The judgement of each run on its tally.
    fn map<T: Send>(&self, seed: u64, judge: impl Fn(&Tally) -> T + Sync) -> Vec<T> {
        let &Experiment { n, lambda, d, runs, sampling: Sampling { replicas, samples }, burn_in } = self;
        let parameters = leaky::Parameters { n, lambda, d, ..Default::default() };
        let process = leaky::Leaky::new(&parameters).expect("valid parameters");
        let rounds = burn_in + samples;
        let schedule = Schedule { rounds, burn_in, every: 1, loads_every: 0, measure: Measure::Post };
        let work = Work::Bins(Job { process: &process, seed, schedule, keep_loads: false });
        let block = |run: u64| run * replicas..(run + 1) * replicas;
        let tally = |run: u64| Host::cpu().run(&work, block(run), &Control::default()).expect("a result").tally;
        (0..runs).into_par_iter().map(|run| judge(&tally(run))).collect()
    }

    /// In how many runs each level of the max load is covered, and in how many by a plain t interval.
    fn level_coverage(&self, seed: u64, exact: &[f64]) -> Vec<[u64; 2]> {
        let level = confidence(0.95);
        let outcomes = self.map(seed, |tally| {
            let levels: Vec<_> = (0..exact.len() as u64).map(|k| (k, tally.max_load.at(k))).collect();
            let table = exceedances(&levels, self.sampling, level, Band::Pointwise).expect("possible counts");
            let plain = |tally: &LevelTally, p: f64| {
                let Sampling { replicas, samples } = self.sampling;
                let totals = PowerSums { count: replicas, sum: tally.hits, sum_squares: tally.hits_squared };
                Interval::student(totals, level).is_ok_and(|interval| interval.contains(p * samples as f64))
            };
            let rows = exact.iter().zip(table.iter().zip(&levels));
            rows.map(|(&p, (e, (_, l)))| [e.interval.contains(p), plain(l, p)].map(u64::from)).collect::<Vec<_>>()
        });
        let mut sums = vec![[0; 2]; exact.len()];
        for outcome in outcomes {
            sums.iter_mut().zip(outcome).for_each(|(sum, o)| *sum = [sum[0] + o[0], sum[1] + o[1]]);
        }
        sums
    }

    /// Levels that some replica of some run can be expected to see.
    fn relevant<'a>(&self, exact: &'a [f64]) -> &'a [f64] {
        let samples = (self.sampling.replicas * self.sampling.samples) as f64;
        &exact[..exact.iter().take_while(|&&p| p * samples > 0.01).count()]
    }
}

/// The least and largest number of `runs` intervals that may cover if each does with 95 %.
fn band(runs: u64) -> [u64; 2] {
    let law = Binomial::new(0.95, runs).expect("valid");
    let alpha = ALPHA / COMPARISONS / 2.0;
    let low = (0..=runs).find(|&k| law.cdf(k) > alpha).expect("the law ends at 1");
    let high = (0..=runs).rev().find(|&k| k == 0 || law.sf(k - 1) > alpha).expect("the law starts at 0");
    [low, high]
}

fn assert_levels(name: &str, experiment: &Experiment, seed: u64, exact: &[f64]) -> Vec<[u64; 2]> {
    let exact = experiment.relevant(exact);
    let covered = experiment.level_coverage(seed, exact);
    let [low, _] = band(experiment.runs);
    for (k, (p, [ours, plain])) in exact.iter().zip(&covered).enumerate() {
        println!(
            "{name}, P(max >= {k}) = {p:.3e}: covered in {ours}, by t in {plain}, of {}; bound {low}",
            experiment.runs
        );
        assert!(*ours >= low, "{name}, P(max >= {k}) = {p}: covered in {ours} of {} runs", experiment.runs);
    }
    covered
}

#[test]
fn independent_samples_cover() {
    let case = &oracles("small_chain")[5];
    let exact = exceedances_of(case["max_load_at_round"]["20"].as_array().expect("a law"));
    let sampling = Sampling { replicas: 100, samples: 1 };
    let experiment = Experiment { n: 4, lambda: 0.5, d: 2, runs: 500, sampling, burn_in: 19 };
    assert_levels("4 bins, round 20", &experiment, 11, &exact);
}

#[test]
fn time_averages_of_small_chains_cover() {
    for (index, burn_in) in [(0, 300), (1, 300), (3, 300), (5, 150)] {
        let case = &oracles("small_chain")[index];
        let (n, d) = (case["n"].as_u64().expect("n"), case["d"].as_u64().expect("d"));
        let lambda = case["lambda"].as_f64().expect("a rate");
        let exact = exceedances_of(case["stationary_max_load"].as_array().expect("a law"));
        let sampling = Sampling { replicas: 10, samples: 300 };
        let experiment = Experiment { n, lambda, d, runs: 400, sampling, burn_in };
        assert_levels(&format!("{n} bins, lambda {lambda}, d {d}"), &experiment, 20 + index as u64, &exact);
    }
}

/// One choice at lambda = 0.9: long visits to high levels, so few replicas hit and their counts differ wildly.
#[test]
fn time_averages_of_rare_levels_cover_where_t_intervals_do_not() {
    let exact = two_bins(0.9, 1);
    let sampling = Sampling { replicas: 10, samples: 800 };
    let experiment = Experiment { n: 2, lambda: 0.9, d: 1, runs: 500, sampling, burn_in: 1500 };
    let covered = assert_levels("2 bins, lambda 0.9, d 1", &experiment, 31, &exact);
    // About four of the ten replicas see level 12.
    let plain = covered[12][1];
    assert!(plain < 500 * 85 / 100, "t intervals cover level 12 in {plain} of 500 runs: is the detour needed?");
}

#[test]
fn time_averages_near_saturation_cover() {
    let exact = two_bins(0.99, 2);
    let sampling = Sampling { replicas: 12, samples: 1000 };
    let experiment = Experiment { n: 2, lambda: 0.99, d: 2, runs: 300, sampling, burn_in: 2500 };
    assert_levels("2 bins, lambda 0.99, d 2", &experiment, 41, &exact);
}

/// d = 1 has the mean load lambda^2 (1 - 1/n) / (2 (1 - lambda)) at every n.
#[test]
fn t_intervals_of_the_mean_load_cover() {
    for (n, lambda, samples, burn_in, runs) in
        [(16, 0.5, 300, 150, 800), (16, 0.75, 500, 500, 400), (16, 0.9, 1500, 2400, 150), (2, 0.95, 4000, 6000, 150)]
    {
        let sampling = Sampling { replicas: 8, samples };
        let experiment = Experiment { n, lambda, d: 1, runs, sampling, burn_in };
        let exact = lambda * lambda * (n as f64 - 1.0) / (2.0 * (1.0 - lambda));
        let outcomes = experiment.map(51, |tally| {
            let (all, replicas) = (tally.total_load.samples.power_sums(), tally.total_load.replicas);
            let estimate = mean(all, replicas, confidence(0.95)).expect("a spread");
            (estimate.interval.contains(exact), estimate.precision.expect("a spread").autocorrelation_time)
        });
        let covered = outcomes.iter().filter(|o| o.0).count() as u64;
        let time = outcomes.iter().map(|o| o.1).sum::<f64>() / runs as f64;
        let [low, high] = band(runs);
        println!("{n} bins, lambda {lambda}: covered in {covered} of {runs}; bounds {low} to {high}; tau {time:.1}");
        assert!((low..=high).contains(&covered), "{n} bins, lambda {lambda}: {covered} of {runs}");
    }
}
