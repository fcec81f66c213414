//! The theory against values that the program did not make (`oracles/`, `kat/theory.json`), against itself where two
//! ways lead to one number, and against its closed forms.

use assert_cmd::Command;
use leakybins::process::Measure;
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::process::start::Start;
use leakybins::theory::leaky::predict;
use leakybins::theory::{Basis, Prediction, When};
use leakybins::theory::{SmallChain, TheoryError, Transient, bounds};
use serde_json::Value;

fn oracles(kind: &str) -> Vec<Value> {
    cases(include_str!("oracles/leaky.json"), kind)
}

fn cases(text: &str, kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(text).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn parameters(n: u64, lambda: f64, d: u64, arrivals: Arrivals) -> Parameters {
    Parameters { n, lambda, d, arrivals, start: Start::Empty }
}

fn of_case(case: &Value, arrivals: Arrivals) -> Parameters {
    let whole = |name: &str, default| case.get(name).and_then(Value::as_u64).unwrap_or(default);
    parameters(whole("n", 1000), number(&case["lambda"]), whole("d", 1), arrivals)
}

fn stationary(parameters: &Parameters) -> Prediction {
    predict(parameters, When::Stationary, Measure::Post).expect("a prediction")
}

/// To 1e-10 relative, down to 1e-12 absolute.
fn assert_close(what: &str, value: f64, oracle: f64) {
    let bound = (1e-10 * oracle.abs()).max(1e-12);
    assert!((value - oracle).abs() <= bound, "{what}: {value:e} for {oracle:e}");
}

fn assert_relative(what: &str, value: f64, reference: f64, bound: f64) {
    assert!((value / reference - 1.0).abs() <= bound, "{what}: {value:e} for {reference:e}");
}

#[test]
fn one_choice_oracles_are_reproduced() {
    for case in oracles("one_choice_stationary") {
        let parameters = of_case(&case, Arrivals::Binomial);
        let bins = stationary(&parameters).bins;
        assert_close("mean", bins.mean_load(), number(&case["mean"]));
        for (k, oracle) in numbers(&case["p_load_ge"]).into_iter().enumerate() {
            assert_close(&format!("{parameters:?}, k {k}"), bins.load_exceedance(k as u64), oracle);
        }
    }
}

#[test]
fn mean_field_oracles_are_reproduced() {
    for case in oracles("mean_field") {
        let parameters = of_case(&case, Arrivals::Poisson);
        let bins = stationary(&parameters).bins;
        assert_close(&format!("{parameters:?}, mean"), bins.mean_load(), number(&case["mean"]));
        for (k, oracle) in numbers(&case["p_load_ge"]).into_iter().enumerate() {
            assert_close(&format!("{parameters:?}, k {k}"), bins.load_exceedance(k as u64), oracle);
        }
    }
}

#[test]
fn max_load_oracles_are_reproduced() {
    for case in oracles("one_choice_poisson_max") {
        let parameters = of_case(&case, Arrivals::Poisson);
        let prediction = stationary(&parameters);
        assert_eq!(prediction.max_basis, Basis::Exact);
        for (k, oracle) in numbers(&case["p_max_ge"]).into_iter().enumerate() {
            assert_close(&format!("{parameters:?}, k {k}"), prediction.bins.max_exceedance(k as u64), oracle);
        }
    }
}

#[test]
fn small_chain_oracles_are_reproduced() {
    for case in oracles("small_chain") {
        let parameters = of_case(&case, Arrivals::Binomial);
        let cap = case["cap"].as_u64().expect("a cap") as u32;
        let chain = SmallChain::new(&parameters, cap).expect("a small chain");
        let laws = case["max_load_at_round"].as_object().expect("laws by round");
        let rounds: Vec<u64> = laws.keys().map(|round| round.parse().expect("a round")).collect();
        for (law, (round, oracle)) in chain.at_rounds(&rounds).iter().zip(laws) {
            for (k, oracle) in numbers(oracle).into_iter().enumerate() {
                assert_close(&format!("{parameters:?}, round {round}, k {k}"), law.max_load[k], oracle);
            }
            assert!(law.lost < 1e-12, "lost {}", law.lost);
        }
        let law = chain.stationary().expect("stationary");
        for (k, oracle) in numbers(&case["stationary_max_load"]).into_iter().enumerate() {
            assert_close(&format!("{parameters:?}, stationary, k {k}"), law.max_load[k], oracle);
        }
        assert_close("mean", law.mean_load, number(&case["stationary_mean_load"]));
    }
}

/// 400-digit values, down to 1e-300 and up to lambda = 1 - 1e-9.
#[test]
fn one_choice_has_relative_precision_everywhere() {
    for case in cases(include_str!("kat/theory.json"), "one_choice") {
        let arrivals = match case["arrivals"].as_str() {
            Some("poisson") => Arrivals::Poisson,
            Some("binomial") => Arrivals::Binomial,
            _ => Arrivals::Fixed,
        };
        let mut parameters = of_case(&case, arrivals);
        parameters.n = parameters.n.max(1);
        let bins = stationary(&parameters).bins;
        assert_relative(&format!("{parameters:?}, empty"), bins.empty_fraction(), number(&case["empty"]), 1e-13);
        let rate = number(&case["rate"]);
        if let Some(tail) = bins.groups()[0].1.tail() {
            assert_relative(&format!("{parameters:?}, rate"), tail.rate, rate, 1e-14);
        }
        for (k, meant) in case["p_load_ge"].as_object().expect("levels") {
            let meant = number(meant);
            if meant < 1e-300 {
                continue;
            }
            let k: u64 = k.parse().expect("a level");
            // The exponent rate * k is good to some ulps.
            let bound = 2e-14 + 4.0 * f64::EPSILON * rate * k as f64;
            assert_relative(&format!("{parameters:?}, k {k}"), bins.load_exceedance(k), meant, bound);
        }
    }
}

#[test]
fn the_fixed_point_has_relative_precision_everywhere() {
    for case in cases(include_str!("kat/theory.json"), "mean_field") {
        let parameters = of_case(&case, Arrivals::Poisson);
        let bins = stationary(&parameters).bins;
        let what = format!("{parameters:?}");
        assert_relative(&what, bins.empty_fraction(), number(&case["empty"]), 1e-12);
        assert_relative(&what, bins.mean_load(), number(&case["mean"]), 1e-13);
        for (k, meant) in case["p_load_ge"].as_object().expect("levels") {
            let meant = number(meant);
            if meant < 1e-300 {
                continue;
            }
            let k: u64 = k.parse().expect("a level");
            assert_relative(&format!("{what}, k {k}"), bins.load_exceedance(k), meant, 1e-12);
        }
    }
}

/// Generating-function moments of one bin: the mean is A''/2 / (1 - lambda).
#[test]
fn one_choice_has_its_closed_forms() {
    for lambda in [0.1, 0.5, 0.75, 0.9, 0.99, 1.0 - 1e-6, 1.0 - 1e-9] {
        let gap = 1.0 - lambda;
        for n in [2u64, 3, 16, 1024, 1_000_000_000] {
            let bins = n as f64;
            let (second, third) = (1.0 - 1.0 / bins, (1.0 - 1.0 / bins) * (1.0 - 2.0 / bins));
            for (arrivals, a2, a3) in [
                (Arrivals::Binomial, lambda * lambda * second, lambda.powi(3) * third),
                (Arrivals::Poisson, lambda * lambda, lambda.powi(3)),
            ] {
                let what = format!("{arrivals:?}, n {n}, lambda {lambda}");
                let parameters = parameters(n, lambda, 1, arrivals);
                let post = stationary(&parameters).bins;
                let (m1, m2) = (a2 / (2.0 * gap), a3 / (6.0 * gap));
                assert_relative(&what, post.mean_load(), m1, 1e-12);
                assert_relative(&what, post.load_variance(), m1 * m1 + m1 + 2.0 * m2, 1e-12);
                let pre = predict(&parameters, When::Stationary, Measure::Pre).expect("a prediction").bins;
                assert_relative(&what, pre.mean_load(), m1 + lambda, 1e-12);
                let spread = if arrivals == Arrivals::Poisson { lambda } else { lambda * (1.0 - lambda / bins) };
                assert_relative(&what, pre.load_variance(), m1 * m1 + m1 + 2.0 * m2 + spread, 1e-12);
                assert_eq!((pre.empty_fraction(), pre.load_exceedance(1)), (gap, lambda));
                assert_eq!(pre.load_exceedance(7), post.load_exceedance(6));
            }
        }
        // n = 2: geometric with ratio (lambda / (2 - lambda))^2; n = 1: never more than the ball that arrives.
        let two = stationary(&parameters(2, lambda, 1, Arrivals::Binomial)).bins;
        for k in [1u64, 2, 10, 60] {
            let log_ratio =
                if lambda < 0.5 { (lambda / (2.0 - lambda)).ln() } else { (-2.0 * gap / (1.0 + gap)).ln_1p() };
            let exponent = 2.0 * log_ratio * k as f64;
            assert_relative("n = 2", two.load_exceedance(k), exponent.exp(), 1e-13 - 4.0 * f64::EPSILON * exponent);
        }
        let one = stationary(&parameters(1, lambda, 7, Arrivals::Binomial));
        assert_eq!((one.bins.load_exceedance(1), one.bins.mean_load(), one.load_basis), (0.0, 0.0, Basis::Exact));
    }
}

/// Nothing forces the recursion and its tail to sum to 1, or to have the mean that the generating function gives.
#[test]
fn one_choice_is_a_law_for_all_parameters() {
    let gaps = (0..=52).map(|e| 0.5f64.powi(e)).chain((1..40).map(|i| f64::from(i) / 40.0));
    for gap in gaps {
        let lambda = 1.0 - gap;
        for n in [1u64, 2, 3, 4, 5, 7, 16, 100, 1024, 1_000_000_007, 1 << 53] {
            let bins = n as f64;
            for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
                let what = format!("{arrivals:?}, n {n}, 1 - lambda = {gap}");
                let law = stationary(&parameters(n, lambda, 1, arrivals)).bins;
                let sum = law.empty_fraction() + law.load_exceedance(1);
                assert!((sum - 1.0).abs() < 5e-14, "{what}: sums to 1 + {:e}", sum - 1.0);
                let whole = (lambda * bins).floor();
                let pairs = match arrivals {
                    Arrivals::Binomial => lambda * lambda * (1.0 - 1.0 / bins) / 2.0,
                    Arrivals::Poisson => lambda * lambda / 2.0,
                    // floor(lambda n) balls, and one more with the probability that makes the mean lambda n.
                    Arrivals::Fixed => whole * (lambda - (whole + 1.0) / (2.0 * bins)) / bins,
                };
                let bound = 1e-13 * pairs / gap + 1e-15 / gap;
                assert!(
                    (law.mean_load() - pairs / gap).abs() <= bound,
                    "{what}: {} for {}",
                    law.mean_load(),
                    pairs / gap
                );
            }
        }
    }
}

/// The tables of one choice and of the mean field as they are known to some digits.
#[test]
fn known_tables_are_reproduced() {
    let digits = |what: &str, value: f64, known: f64, unit: f64| {
        assert!((value - known).abs() <= 0.51 * unit, "{what}: {value} for {known}");
    };
    // lambda, n (0: Poisson), mean, variance, empty, P(>= 2), z0.
    for (lambda, n, mean, variance, empty, two, z0) in [
        (0.5, 2, 0.125000, 0.140625, 0.888889, 0.012346, 9.0000),
        (0.5, 0, 0.250000, 0.395833, 0.824361, 0.053039, 3.51286),
        (0.75, 16, 1.054688, 2.628479, 0.538942, 0.262251, 1.79256),
        (0.75, 1024, 1.123901, 2.947909, 0.529395, 0.276299, 1.73446),
        (0.75, 0, 1.125000, 2.953125, 0.529250, 0.276515, 1.73360),
        (0.9, 1024, 4.046045, 22.83941, 0.246058, 0.616203, 1.23040),
        (0.9, 0, 4.050000, 22.88250, 0.245960, 0.616400, 1.23016),
        (0.95, 0, 9.025000, 96.19146, 0.129285, 0.788526, 1.10708),
        (0.99, 0, 49.00500, 2482.838, 0.026912, 0.954216, 1.02027),
    ] {
        let arrivals = if n == 0 { Arrivals::Poisson } else { Arrivals::Binomial };
        let bins = stationary(&parameters(n.max(1), lambda, 1, arrivals)).bins;
        let what = format!("d 1, n {n}, lambda {lambda}");
        digits(&what, bins.mean_load(), mean, if mean > 40.0 { 1e-5 } else { 1e-6 });
        digits(&what, bins.load_variance(), variance, if variance > 1000.0 { 1e-3 } else { 1e-5 });
        digits(&what, bins.empty_fraction(), empty, 1e-6);
        digits(&what, bins.load_exceedance(2), two, 1e-6);
        digits(&what, bins.groups()[0].1.tail().expect("a tail").rate.exp(), z0, 1e-5);
    }
    // d, lambda, mean, x1 .. x4.
    for (d, lambda, mean, x) in [
        (2, 0.5, 0.146340, [0.123243, 0.0201648, 0.00262203, 2.8233e-4]),
        (2, 0.75, 0.429483, [0.324777, 0.0844304, 0.0168098, 0.00294176]),
        (2, 0.9, 0.878675, [0.583974, 0.224778, 0.0557429, 0.0115022]),
        (2, 0.95, 1.250510, [0.739094, 0.370831, 0.110566, 0.0241643]),
        (2, 0.99, 2.186246, [0.932270, 0.731794, 0.376522, 0.114554]),
        (3, 0.75, 0.399255, [0.295084, 0.081262, 0.0186409, 0.0035859]),
        (3, 0.9, 0.765552, [0.509000, 0.181327, 0.0553426, 0.0152327]),
        (3, 0.95, 1.028012, [0.645425, 0.261087, 0.0853317, 0.0263066]),
        (3, 0.99, 1.593134, [0.866536, 0.478541, 0.170873, 0.0544497]),
        (4, 0.9, 0.753479, [0.482261, 0.184943, 0.0623543, 0.0181288]),
    ] {
        let prediction = stationary(&parameters(1000, lambda, d, Arrivals::Binomial));
        assert_eq!((prediction.load_basis, prediction.max_basis), (Basis::MeanField, Basis::IndependentBins));
        digits("mean", prediction.bins.mean_load(), mean, 1e-6);
        for (k, known) in (1..).zip(x) {
            let unit = if known > 0.1 {
                1e-6
            } else if known > 0.01 {
                1e-7
            } else {
                1e-8
            };
            digits(&format!("d {d}, lambda {lambda}, k {k}"), prediction.bins.load_exceedance(k), known, unit);
        }
    }
    // Transients from empty: mean and x1 after rounds.
    for (lambda, d, round, mean, x1) in [
        (0.75, 1, 1, 0.222367, 0.173359),
        (0.75, 1, 5, 0.609834, 0.356744),
        (0.75, 1, 50, 1.103137, 0.468232),
        (0.75, 2, 1, 0.222367, 0.173359),
        (0.75, 2, 5, 0.406569, 0.308401),
        (0.75, 2, 50, 0.429483, 0.324777),
        (0.9, 1, 10, 1.418091, 0.576709),
        (0.9, 2, 2, 0.462484, 0.334568),
        (0.9, 2, 10, 0.811070, 0.548160),
        (0.9, 2, 50, 0.878638, 0.583955),
    ] {
        let parameters = parameters(1000, lambda, d, Arrivals::Poisson);
        let bins = predict(&parameters, When::Round(round), Measure::Post).expect("a prediction").bins;
        digits(&format!("lambda {lambda}, d {d}, round {round}"), bins.mean_load(), mean, 1e-6);
        digits(&format!("lambda {lambda}, d {d}, round {round}"), bins.load_exceedance(1), x1, 1e-6);
    }
    // n = 2, stationary: E max and mean.
    for (d, lambda, mean, max) in [
        (1, 0.5, 0.12500000, 0.24817155),
        (1, 0.75, 0.56250000, 1.06527756),
        (2, 0.9, 0.51622149, 0.93135317),
        (3, 0.75, 0.21634935, 0.42928296),
        (3, 0.9, 0.38602488, 0.74644954),
    ] {
        let chain = SmallChain::new(&parameters(2, lambda, d, Arrivals::Binomial), 70).expect("a small chain");
        let law = chain.stationary().expect("stationary");
        digits("mean", law.mean_load, mean, 1e-8);
        let mean_max = (0..).zip(&law.max_load).map(|(k, p)| f64::from(k) * p).sum::<f64>();
        digits("E max", mean_max, max, 1e-8);
    }
}

/// Largest difference between P(load >= k) of two populations.
fn distance(a: &leakybins::theory::Population, b: &leakybins::theory::Population) -> f64 {
    (0..200).map(|k| (a.load_exceedance(k) - b.load_exceedance(k)).abs()).fold(0.0, f64::max)
}

#[test]
fn iterating_the_rounds_leads_to_the_stationary_law() {
    for (lambda, d, rounds) in [
        (0.5, 1, 300),
        (0.9, 1, 8000),
        (0.5, 2, 100),
        (0.9, 2, 500),
        (0.99, 2, 6000),
        (0.99, 4, 6000),
        (0.95, 64, 1500),
    ] {
        for start in [Start::Empty, Start::Each(20)] {
            let parameters = Parameters { start, ..parameters(1000, lambda, d, Arrivals::Poisson) };
            for measure in [Measure::Post, Measure::Pre] {
                let limit = predict(&parameters, When::Stationary, measure).expect("a prediction").bins;
                let late = predict(&parameters, When::Round(rounds), measure).expect("a prediction").bins;
                let far = distance(&limit, &late);
                assert!(far < 2e-14, "{parameters:?}, {measure:?}: distance {far:e}");
            }
        }
    }
}

/// One round leaves the fixed point where it is, also where iterating towards it would take 10^10 rounds.
#[test]
fn the_fixed_point_is_one() {
    for d in [2, 3, 4, 16, 256] {
        for lambda in [0.0, 1e-9, 0.3, 0.9, 0.999, 1.0 - 1e-6, 1.0 - 1e-9, 1.0 - f64::EPSILON] {
            let parameters = parameters(1000, lambda, d, Arrivals::Poisson);
            let limit = stationary(&parameters).bins;
            let law: Vec<f64> = (0..400).map(|k| limit.groups()[0].1.probability(k)).collect();
            let sum: f64 = law.iter().sum();
            assert!((sum - 1.0).abs() < 1e-14, "d {d}, lambda {lambda}: the law sums to 1 + {:e}", sum - 1.0);
            let mut next = Transient::from_law(&parameters, &law).expect("a law");
            next.step();
            let next = next.after_deletions();
            let residual: f64 = (0..400).map(|k| (next.groups()[0].1.probability(k) - law[k as usize]).abs()).sum();
            assert!(residual < 1e-14, "d {d}, lambda {lambda}: residual {residual:e}");
        }
    }
}

#[test]
fn more_choices_can_be_worse_far_out() {
    let law = |d| stationary(&parameters(1 << 20, 0.99, d, Arrivals::Binomial)).bins;
    let (two, four) = (law(2), law(4));
    assert!(four.mean_load() < two.mean_load());
    assert!(four.load_exceedance(3) < two.load_exceedance(3));
    for k in 8..40 {
        assert!(four.load_exceedance(k) > two.load_exceedance(k), "k = {k}");
    }
}

/// The first round from empty: 1 - lambda/n is the chance that a ball misses a bin or does not come.
#[test]
fn the_first_round_is_exact() {
    let (n, lambda) = (16u64, 0.75);
    let parameters = parameters(n, lambda, 1, Arrivals::Binomial);
    let bins = predict(&parameters, When::Round(1), Measure::Post).expect("a prediction").bins;
    let miss = (1.0 - lambda / n as f64).powi(n as i32);
    assert_relative("mean", bins.mean_load(), lambda - 1.0 + miss, 1e-13);
    let before = predict(&parameters, When::Round(1), Measure::Pre).expect("a prediction").bins;
    assert_relative("empty", before.empty_fraction(), miss, 1e-13);
    assert_relative("mean before", before.mean_load(), lambda, 1e-13);
}

/// For two bins the chain knows everything: one choice must agree with it in any round and from any start.
#[test]
fn one_choice_agrees_with_the_whole_chain() {
    for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
        for start in [Start::Empty, Start::Each(3), Start::OneBin(6), Start::Random(5), Start::MeanField] {
            let parameters = Parameters { start, ..parameters(3, 0.6, 1, arrivals) };
            let chain = SmallChain::new(&parameters, 24).expect("a small chain");
            for (law, round) in chain.at_rounds(&[0, 1, 4, 9]).iter().zip([0, 1, 4, 9]) {
                let prediction = predict(&parameters, When::Round(round), Measure::Post).expect("a prediction");
                let what = format!("{parameters:?}, round {round}");
                assert!((prediction.bins.mean_load() - law.mean_load).abs() < 1e-9 + 24.0 * law.lost, "{what}");
                if prediction.max_basis != Basis::Exact {
                    continue;
                }
                for k in 1..20 {
                    let exceedance: f64 = law.max_load[k..].iter().sum();
                    let far = (prediction.bins.max_exceedance(k as u64) - exceedance).abs();
                    assert!(far < 1e-12 + law.lost, "{what}, k {k}: differs by {far:e}, lost {:e}", law.lost);
                }
            }
        }
    }
}

/// A mean-field start is the stationary state: one choice stays in it, and so does the limit of many bins.
#[test]
fn a_mean_field_start_stays_where_it_is() {
    for (n, lambda, d) in [(50, 0.5, 1), (1000, 0.9, 1), (1000, 0.75, 2), (1 << 20, 0.95, 3)] {
        let parameters = Parameters { start: Start::MeanField, ..parameters(n, lambda, d, Arrivals::Binomial) };
        let still = stationary(&parameters).bins;
        for round in [0, 1, 50] {
            let bins = predict(&parameters, When::Round(round), Measure::Post).expect("a prediction").bins;
            assert_relative("mean load", bins.mean_load(), still.mean_load(), 1e-11);
            // The start ends where exceedances are below 2^-64.
            for k in (1..1000).take_while(|&k| still.load_exceedance(k) > 1e-9) {
                assert_relative("exceedance", bins.load_exceedance(k), still.load_exceedance(k), 1e-9);
            }
        }
    }
}

/// A tower drains at speed 1 - lambda with one choice, and at speed 1 with two.
#[test]
fn an_overloaded_bin_is_followed_by_itself() {
    let at = |d, round| {
        let start = Start::OneBin(1000);
        let parameters = Parameters { start, ..parameters(1 << 20, 0.9, d, Arrivals::Binomial) };
        predict(&parameters, When::Round(round), Measure::Post).expect("a prediction").bins
    };
    let one = at(1, 500);
    assert!((one.groups()[1].1.mean() - 950.0).abs() < 1e-9, "{}", one.groups()[1].1.mean());
    assert!((one.mean_max() - 950.0).abs() < 1e-9);
    let two = at(2, 500);
    assert!((two.groups()[1].1.mean() - 500.0).abs() < 0.01, "{}", two.groups()[1].1.mean());
    assert!((two.max_quantile(0.5), two.max_exceedance(490)) == (500, 1.0));
    assert!(two.mean_load() < 1.0);
}

#[test]
fn astronomical_loads_cost_nothing() {
    let parameters = parameters(1 << 40, 1.0 - 1e-9, 1, Arrivals::Binomial);
    let bins = stationary(&parameters).bins;
    // ln z0 is near 2 (1 - lambda), and the max near (ln n + Euler's constant) / ln z0.
    assert_relative("mean max", bins.mean_max(), (40.0 * 2f64.ln() + 0.577_215_664_901_532_9) / 2e-9, 1e-7);
    let median = bins.max_quantile(0.5);
    assert!((bins.max_exceedance(median) - 0.5).abs() < 1e-8);
    assert!(bins.load_exceedance(1_000_000_000_000) < 1e-300);
}

/// The plain iteration would take about 10^10 rounds here.
#[test]
fn the_fixed_point_near_one_is_quick() {
    let parameters = parameters(1 << 20, 1.0 - 1e-9, 2, Arrivals::Binomial);
    let times = (0..5).map(|_| {
        let begun = std::time::Instant::now();
        assert!(stationary(&parameters).bins.mean_load() > 12.0);
        begun.elapsed()
    });
    let best = times.min().expect("five times");
    assert!(best.as_secs_f64() < 0.1, "{best:?}");
}

#[test]
fn a_file_of_loads_starts_a_law() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("loads.txt");
    std::fs::write(&path, "3 0 0 1").expect("written");
    let parameters = Parameters { start: Start::File(path), ..parameters(4, 0.0, 2, Arrivals::Binomial) };
    let at = |round| predict(&parameters, When::Round(round), Measure::Post).expect("a prediction").bins;
    assert_eq!([0, 1, 2, 3].map(|round| at(round).mean_load()), [1.0, 0.5, 0.25, 0.0]);
    assert_eq!([1, 2, 3, 4].map(|k| at(0).load_exceedance(k)), [0.5, 0.25, 0.25, 0.0]);
}

fn leakybins(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leakybins"));
    command.args(arguments.split_whitespace());
    command
}

fn output(arguments: &str) -> String {
    let output = leakybins(arguments).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("results are UTF-8")
}

#[test]
fn the_command_says_what_is_exact_and_what_is_not() {
    let text = output("theory leaky --n 1024 --lambda 0.95 --d 2");
    for part in ["mean field", "approximate", "1.250510", "0.7390936", "198.5441"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let text = output("theory leaky --n 1024 --lambda 0.95 --d 1 --arrivals poisson --measure pre");
    for part in ["exact for these parameters", "9.975000", "before the deletions", "decay rate"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("approximate") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_command_speaks_json_and_csv() {
    let arguments = "theory leaky --n 1e6 --lambda 0.9 --d 2 --start one-bin:1000 --rounds 100";
    let json: Value = serde_json::from_str(&output(&format!("{arguments} --format json"))).expect("valid JSON");
    let names: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    let documented = [
        "schema",
        "kind",
        "version",
        "process",
        "parameters",
        "round",
        "measure",
        "load",
        "max_load",
        "bounds",
        "levels",
    ];
    assert_eq!(names, documented);
    assert_eq!((&json["round"], &json["load"]["basis"]), (&Value::from(100), &Value::from("mean-field")));
    assert!((number(&json["max_load"]["mean"]) - 900.0).abs() < 0.1);
    let levels = json["levels"].as_array().expect("levels");
    // The bulk and the tower, each level by level.
    let shown = |k: u64| levels.iter().any(|level| level["k"] == k);
    assert!([0, 1, 2, 3, 4, 5, 900, 901, 902].into_iter().all(shown) && !shown(500), "{levels:?}");
    let csv = output(&format!("{arguments} --format csv"));
    let mut lines = csv.lines();
    assert_eq!((lines.next(), lines.next()), (Some("k,load_exceedance,max_exceedance"), Some("0,1.0,1.0")));
    assert_eq!(csv.lines().count(), levels.len() + 1);
}

#[test]
fn the_command_refuses_with_reason_and_code() {
    for (arguments, part) in [
        ("theory leaky --lambda 1", "no stationary law"),
        ("theory leaky --lambda 2", "lambda = 2"),
        ("theory leaky --rounds 0 --measure pre", "round 0"),
        ("theory leaky --rounds 1 --start file:/no/such/file", "cannot be read"),
    ] {
        leakybins(arguments).assert().code(2).stdout("").stderr(predicates::str::contains(part));
    }
}

#[test]
fn bounds_have_their_shapes() {
    assert_relative("d = 1", bounds::one_choice(1000.0, 0.01), 100.0 * 1e5f64.ln(), 1e-14);
    assert_relative("d = 2", bounds::two_choices(1000.0, 0.01), 1e5f64.ln(), 1e-14);
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let refusal =
        |parameters: &Parameters, when, measure| predict(parameters, when, measure).expect_err("a refusal").to_string();
    let good = parameters(8, 0.5, 2, Arrivals::Binomial);
    for (bad, part) in [
        (Parameters { n: 0, ..good.clone() }, "n = 0"),
        (Parameters { n: u64::MAX, ..good.clone() }, "2^53"),
        (Parameters { lambda: 1.5, ..good.clone() }, "lambda = 1.5"),
        (Parameters { lambda: f64::NAN, ..good.clone() }, "lambda = NaN"),
        (Parameters { d: 0, ..good.clone() }, "d = 0"),
        (Parameters { d: 257, ..good.clone() }, "d <= 256"),
        (Parameters { lambda: 1.0, ..good.clone() }, "no stationary law"),
    ] {
        let message = refusal(&bad, When::Stationary, Measure::Post);
        assert!(message.contains(part), "{message}");
    }
    assert!(refusal(&good, When::Round(0), Measure::Pre).contains("round 0"));
    assert!(predict(&Parameters { lambda: 1.0, ..good.clone() }, When::Round(50), Measure::Pre).is_ok());
    let file = Parameters { start: Start::File("/no/such/file".into()), ..good.clone() };
    assert!(refusal(&file, When::Round(1), Measure::Post).contains("cannot be read"));
    let law = |p: &[f64]| Transient::from_law(&good, p).expect_err("a refusal").to_string();
    assert!(law(&[0.5, 0.4]).contains("sum to 0.9") && law(&[1.5, -0.5]).contains("probabilities"));
    assert!(matches!(
        SmallChain::new(&parameters(50, 0.5, 2, Arrivals::Binomial), 50),
        Err(TheoryError::ChainSize { .. })
    ));
    let tall = Parameters { start: Start::OneBin(9), ..good.clone() };
    assert!(matches!(SmallChain::new(&tall, 3), Err(TheoryError::ChainStart { load: 9, cap: 3 })));
}
