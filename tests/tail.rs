//! Rare max loads against exact laws, against plain runs, and the coverage of their intervals.
//!
//! Statistical tests use fixed seeds and compare at 4 standard errors (of the islands), so that a test with another seed
//! fails by bad luck with probability below 1e-4 a comparison; each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::backend::{Control, StreamKind};
use leakybins::process::leaky::{Arrivals, Leaky, LeakyProfile, Parameters};
use leakybins::process::repeated::{self, RepeatedProfile};
use leakybins::process::tetris::{self, TetrisProfile};
use leakybins::process::{Measure, start::Start};
use leakybins::process::{Process, ProcessSpec, TailBins, capped};
use leakybins::profile::{CountTail, Profile, ProfileChain, TailChain, Thrower, Watch};
use leakybins::rng::stream::Stream;
use leakybins::rng::{Domain, Draws};
use leakybins::stats::interval::Confidence;
use leakybins::stats::special::student;
use leakybins::tail::{Doubt, Estimate, Method, Outcome, Question, Spec, TailError, run};
use leakybins::theory::{self, SmallChain};

/// Standard errors that an estimate may be off by.
const BOUND: f64 = 4.0;

fn spec(parameters: Parameters, levels: impl IntoIterator<Item = u64>, islands: u64) -> Spec {
    Spec {
        question: Question::Stationary,
        process: ProcessSpec::Leaky(parameters),
        states: StreamKind::Profile,
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
    level.rel_err.unwrap_or_else(|| panic!("islands differ: {level:?}")) / student::upper_quantile(0.025, islands - 1)
}

/// Compares every level with its exact probability; returns the lowest probability.
fn assert_exact(what: &str, outcome: &Outcome, exact: impl Fn(u64) -> f64) -> f64 {
    let mut lowest = 1.0f64;
    for level in &outcome.levels {
        let p = exact(level.k);
        if p > 0.999 {
            // Nearly every look reached it: too few did not for a normal mean.
            assert!(level.probability > 0.99, "{what}, k {}: {} for {p}", level.k, level.probability);
            continue;
        }
        let error = relative_error(level, outcome.islands);
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
        (2, 0.5, 1, Arrivals::Binomial),
        (2, 0.75, 2, Arrivals::Binomial),
        (3, 0.5, 1, Arrivals::Poisson),
        (3, 0.75, 3, Arrivals::Poisson),
        (3, 0.8, 2, Arrivals::Fixed),
        (4, 0.5, 2, Arrivals::Binomial),
    ] {
        assert_small_chain(&Parameters { n, lambda, d, arrivals, ..Parameters::default() }, StreamKind::Profile);
    }
}

/// Few bins with various starts, and rounds to look at.
fn few_bins_from_a_start() -> Vec<(Parameters, u64)> {
    let of = |(n, lambda, d, arrivals, start, rounds)| (Parameters { n, lambda, d, arrivals, start }, rounds);
    [
        (2, 0.75, 2, Arrivals::Binomial, Start::Empty, 1),
        (2, 0.75, 1, Arrivals::Binomial, Start::Each(3), 12),
        (3, 0.8, 2, Arrivals::Poisson, Start::OneBin(3), 30),
        (3, 1.0, 2, Arrivals::Binomial, Start::Empty, 40),
        (3, 0.5, 1, Arrivals::Fixed, Start::Random(2), 30),
        (4, 0.5, 3, Arrivals::Binomial, Start::Each(1), 100),
    ]
    .map(of)
    .into()
}

#[test]
fn few_bins_have_the_exact_tail_at_a_round() {
    for (parameters, round) in few_bins_from_a_start() {
        let cap = if parameters.n == 2 { 60 } else { 30 };
        let law = &SmallChain::new(&parameters, cap).expect("a small chain").at_rounds(&[round])[0];
        let exceedance = |k: u64| law.max_load[k as usize..].iter().rev().sum::<f64>();
        let highest = (1..).take_while(|&k| exceedance(k) > 1e-10).last().expect("some level");
        let question = Question::AtRound(round);
        for states in [StreamKind::Profile, StreamKind::Bins] {
            let outcome = estimate(&Spec { question, states, ..spec(parameters.clone(), 1..=highest, 64) });
            println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
            let lowest = assert_exact(&format!("{parameters:?} {question}, {states}"), &outcome, exceedance);
            assert!(lowest < 1e-8 || round == 1, "the levels reach far: {lowest:e}");
        }
    }
}

#[test]
fn few_bins_have_the_exact_tail_within_a_horizon() {
    for (parameters, rounds) in few_bins_from_a_start() {
        // What leaves a chain with loads below k has reached k; the start itself does not count.
        let start = match parameters.start {
            Start::Each(load) | Start::OneBin(load) | Start::Random(load) => u64::from(load),
            _ => 0,
        };
        let reached = |k: u64| {
            let law = SmallChain::new(&parameters, k as u32 - 1).expect("a small chain").at_rounds(&[rounds]);
            1.0 - law[0].max_load.iter().sum::<f64>()
        };
        let levels: Vec<u64> = (start + 1..).take_while(|&k| reached(k) > 1e-10).collect();
        let question = Question::Within(rounds);
        let outcome = estimate(&Spec { question, ..spec(parameters.clone(), levels, 64) });
        println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        let lowest = assert_exact(&format!("{parameters:?} {question}"), &outcome, reached);
        assert!(lowest < 1e-8 || rounds == 1, "the levels reach far: {lowest:e}");
    }
}

#[test]
fn few_bins_have_it_bin_by_bin() {
    for (n, lambda, d, arrivals) in [
        (2, 0.5, 1, Arrivals::Binomial),
        (3, 0.75, 3, Arrivals::Poisson),
        (3, 0.8, 2, Arrivals::Fixed),
        (4, 0.5, 2, Arrivals::Binomial),
    ] {
        assert_small_chain(&Parameters { n, lambda, d, arrivals, ..Parameters::default() }, StreamKind::Bins);
    }
}

/// Compares all levels with the exact chain of few bins.
fn assert_small_chain(parameters: &Parameters, states: StreamKind) {
    let cap = if parameters.n == 2 { 60 } else { 30 };
    let law = SmallChain::new(parameters, cap).expect("a small chain").stationary().expect("it settles");
    let exceedance = |k: u64| law.max_load[k as usize..].iter().rev().sum::<f64>();
    let highest = (1..).take_while(|&k| exceedance(k) > 1e-13).last().expect("some level");
    let outcome = estimate(&Spec { states, ..spec(parameters.clone(), 1..=highest, 32) });
    println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
    let lowest = assert_exact(&format!("{parameters:?}, {states}"), &outcome, exceedance);
    assert!(lowest < 1e-11, "the levels reach far: {lowest:e}");
}

#[test]
fn single_bins_and_profiles_have_the_same_tail() {
    let asked = spec(Parameters { n: 100, ..Parameters::default() }, 6..=18, 64);
    let [bins, profiles] = [StreamKind::Bins, StreamKind::Profile].map(|states| {
        let outcome = estimate(&Spec { states, ..asked.clone() });
        println!("{states}: {:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        outcome
    });
    for (a, b) in bins.levels.iter().zip(&profiles.levels) {
        let error = relative_error(a, bins.islands).hypot(relative_error(b, profiles.islands));
        let z = (a.probability / b.probability - 1.0) / error;
        println!("k {}: {:.4e} and {:.4e}, z {z:.2}, bound {BOUND}", a.k, a.probability, b.probability);
        assert!(z.abs() < BOUND, "k {}: {} and {}", a.k, a.probability, b.probability);
    }
    let lowest = profiles.levels.last().expect("some level").probability;
    assert!(lowest < 1e-12, "the levels reach far: {lowest:e}");
}

#[test]
fn one_choice_has_the_exact_tail() {
    for (n, lambda, levels) in [
        (128, 0.75, [8, 16, 24, 40, 56, 73]),
        (1024, 0.95, [40, 80, 120, 200, 300, 410]),
        (100_000, 0.5, [8, 11, 14, 20, 29, 38]),
    ] {
        let parameters = Parameters { n, lambda, d: 1, arrivals: Arrivals::Poisson, ..Parameters::default() };
        let process = ProcessSpec::Leaky(parameters.clone());
        let law = theory::stationary(&process, Measure::Post).expect("an exact law");
        let outcome = estimate(&spec(parameters.clone(), levels, 32));
        println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        let lowest = assert_exact(&format!("{parameters:?}"), &outcome, |k| law.bins.max_exceedance(k));
        assert!(lowest < 1e-15, "the levels reach far: {lowest:e}");
        assert!(outcome.levels[4..].iter().all(|level| level.method == Method::OneBin));
    }
}

/// Rounds of the plain chain of `parameters` from the mean field, `every`-th only, after 500 rounds.
fn plain(parameters: &Parameters, rounds: u64, every: u64, mut look: impl FnMut(&LeakyProfile, &Profile)) {
    let chain = LeakyProfile::new(&Parameters { start: Start::MeanField, ..parameters.clone() }).expect("valid");
    let mut stream = Stream::new(&Draws::new(77, 0, 0), Domain::Start);
    let mut thrower = Thrower::default();
    let mut state = chain.start(&mut stream, &mut thrower);
    for round in 0..500 + rounds {
        stream.restart(&Draws::new(77, 0, round), Domain::Profile);
        let mut watch = Watch { loads: &mut |_, _| {}, further: None };
        chain.round(&mut stream, &mut thrower, &mut state, &mut watch);
        if round >= 500 && round % every == 0 {
            look(&chain, &state.bins);
        }
    }
}

#[test]
fn plain_runs_see_the_same_where_they_see_anything() {
    for (n, d, rounds, levels) in
        [(1000, 2, 200_000, 6..=10), (1000, 3, 200_000, 7..=11), (1_000_000, 2, 40_000, 9..=12)]
    {
        let parameters = Parameters { n, d, ..Parameters::default() };
        let outcome = estimate(&spec(parameters.clone(), levels, 64));
        // Max loads in blocks of rounds: independent enough for a standard error.
        const BLOCKS: u64 = 40;
        let mut hits = vec![[0u64; BLOCKS as usize]; outcome.levels.len()];
        let mut round = 0;
        plain(&parameters, rounds, 1, |_, profile| {
            for (hits, level) in hits.iter_mut().zip(&outcome.levels) {
                hits[(round * BLOCKS / rounds) as usize] += u64::from(profile.max_load() >= level.k);
            }
            round += 1;
        });
        let mut compared = 0;
        for (hits, level) in hits.iter().zip(&outcome.levels) {
            let per_block = rounds as f64 / BLOCKS as f64;
            let mean = hits.iter().sum::<u64>() as f64 / rounds as f64;
            let squares: f64 = hits.iter().map(|&h| (h as f64 / per_block - mean).powi(2)).sum();
            let own = (squares / (BLOCKS * (BLOCKS - 1)) as f64).sqrt();
            // Fewer than some 30 visits have no normal mean.
            if mean * (rounds as f64) < 60.0 || mean == 1.0 {
                continue;
            }
            compared += 1;
            let error = own.hypot(level.probability * relative_error(level, outcome.islands));
            let z = (level.probability - mean) / error;
            println!(
                "n {n}, d {d}, k {}: {:.4e}, plain {mean:.4e}, z {z:.2}, bound {BOUND}",
                level.k, level.probability
            );
            assert!(z.abs() < BOUND, "n {n}, d {d}, k {}: {} against {mean}", level.k, level.probability);
            let method = if level.probability > 0.2 { Method::Plain } else { level.method };
            assert_eq!(level.method, method);
        }
        assert!(compared >= 2, "{compared} levels compared");
        assert!(outcome.levels.iter().any(|level| level.method == Method::Stage && level.probability < 1e-2));
    }
}

/// Averaging the one-round probability over plain states leaves out the time that a level lasts and the states that are
/// themselves rare; these comparisons would notice.
#[test]
fn the_probability_of_one_round_is_not_that_of_the_level() {
    let parameters = Parameters { n: 1000, d: 2, arrivals: Arrivals::Poisson, ..Parameters::default() };
    let mut values = Vec::new();
    let (mut counts, mut expected) = (CountTail::default(), Vec::new());
    plain(&parameters, 60_000, 10, |chain, profile| {
        expected.clear();
        chain.expected_reaching(&mut counts, profile, &[12], &mut expected);
        values.push(expected[0]);
    });
    let one_round = values.iter().sum::<f64>() / values.len() as f64;
    // 0.2 % of 7.712e-6 by a prototype in another language.
    let outcome = estimate(&spec(parameters, [12], 64));
    let level = &outcome.levels[0];
    let error = relative_error(level, outcome.islands);
    let z = |p: f64| (p / 7.712e-6 - 1.0) / error.hypot(0.002);
    println!(
        "{:.4e}: z {:.2}; one round alone {one_round:.4e}: z {:.2}",
        level.probability,
        z(level.probability),
        z(one_round)
    );
    assert!(z(level.probability).abs() < BOUND && error < 0.02);
    assert!(z(one_round) < -BOUND, "the mutant is found");
}

/// The weights of forced entrances are exact: over all sources, E[S / N] is the probability that one round reaches the
/// level, for every law of arrivals.
#[test]
fn forced_entrances_are_unbiased() {
    const DRAWS: u32 = 40_000;
    for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
        for (n, lambda, d, level) in [(2, 0.9, 1, 1), (2, 0.9, 2, 1), (3, 0.8, 2, 1), (3, 0.5, 3, 1), (3, 0.9, 2, 2)] {
            let start = Start::Each(level as u32 - 1);
            let parameters = Parameters { n, lambda, d, arrivals, start: start.clone() };
            let law = &SmallChain::new(&parameters, 12).expect("a small chain").at_rounds(&[1])[0];
            let p: f64 = law.max_load[level as usize..].iter().rev().sum();
            if p == 0.0 {
                continue;
            }
            let chain = LeakyProfile::new(&parameters).expect("valid parameters");
            let mut stream = Stream::new(&Draws::new(3, 0, 0), Domain::Tail);
            let (mut thrower, mut counts, mut expected) = (Thrower::default(), CountTail::default(), Vec::new());
            let source = chain.start(&mut stream, &mut thrower).bins;
            chain.expected_reaching(&mut counts, &source, &[level], &mut expected);
            let reaching = (0..DRAWS).map(|_| {
                let mut next = source.clone();
                chain.force(&mut stream, &mut thrower, &mut counts, &mut next, level);
                assert_eq!(next.bins(), n);
                next.levels().iter().filter(|at| at.load >= level).map(|at| at.bins).sum()
            });
            assert_unbiased(&format!("{parameters:?}, level {level}"), expected[0], reaching, p);

            let process = Leaky::new(&parameters).expect("valid parameters");
            let mut source = vec![0; n as usize];
            process.start(3, 0, &mut source);
            let by_profile = expected[0];
            TailBins::expected_reaching(&process, &mut counts, &source, &[level], &mut expected);
            assert_eq!(expected, [by_profile; 2]);
            let reaching = (0..DRAWS).map(|_| {
                let mut next = source.clone();
                TailBins::force(&process, &mut stream, &mut thrower, &mut counts, &mut next, level);
                next.iter().filter(|load| u64::from(**load) >= level).count() as u64
            });
            assert_unbiased(&format!("{parameters:?}, level {level}, bin by bin"), expected[1], reaching, p);
        }
    }
}

/// Compares E[S / N], S expected bins that reach a level, of which N do, with the probability `p` that some bin does.
fn assert_unbiased(what: &str, expected: f64, reaching: impl ExactSizeIterator<Item = u64>, p: f64) {
    let draws = reaching.len() as f64;
    let (sum, squares) = reaching.fold((0.0, 0.0), |(sum, squares), reached| {
        let value = expected / reached as f64;
        (sum + value, squares + value * value)
    });
    let mean = sum / draws;
    let error = ((squares / draws - mean * mean).max(0.0) / draws).sqrt();
    // Where a single bin reaches the level in every draw there is no error but rounding.
    let z = (mean - p).abs() / (error + 1e-12);
    println!("{what}: {mean:.6} for {p:.6}, z {z:.2}, bound 5");
    assert!(z < 5.0, "{what}: {mean} for {p}");
}

/// A spec of another process.
fn spec_of(process: ProcessSpec, levels: impl IntoIterator<Item = u64>, islands: u64) -> Spec {
    Spec { process, ..spec(Parameters::default(), levels, islands) }
}

/// Levels from 1 on as long as their exact probability is above 1e-13.
fn levels_in_reach(exact: impl Fn(u64) -> f64) -> impl Iterator<Item = u64> {
    (1..).take_while(move |&k| exact(k) > 1e-13)
}

#[test]
fn repeated_has_the_exact_stationary_tail() {
    let mut lowest = 1.0f64;
    for (n, balls) in [(3u32, 20u32), (5, 12), (9, 9)] {
        let loads: Vec<u32> = (0..n).map(|bin| balls / n + u32::from(bin < balls % n)).collect();
        let law = theory::repeated::small_chain(&loads).expect("a small chain").stationary().expect("it settles");
        let exceedance = |k: u64| law.max_load.iter().skip(k as usize).rev().sum::<f64>();
        // However the balls begin.
        let start = Start::OneBin(balls);
        let process = ProcessSpec::Repeated(repeated::Parameters { n: n.into(), start });
        let levels = levels_in_reach(exceedance).skip_while(|&k| exceedance(k) > 0.999);
        let outcome = estimate(&spec_of(process.clone(), levels, 32));
        println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        lowest = lowest.min(assert_exact(&format!("{process:?}"), &outcome, exceedance));

        // From there the balls are thrown one a round, and then more.
        let mut loads = vec![0; n as usize];
        loads[0] = balls;
        let law = &theory::repeated::small_chain(&loads).expect("a small chain").at_rounds(&[6])[0];
        let exceedance = |k: u64| law.max_load.iter().skip(k as usize).rev().sum::<f64>();
        let levels = levels_in_reach(exceedance).skip_while(|&k| exceedance(k) > 0.999);
        let asked = Spec { question: Question::AtRound(6), ..spec_of(process.clone(), levels, 64) };
        assert_exact(&format!("{process:?}, {}", asked.question), &estimate(&asked), exceedance);
    }
    // Stationary laws of small chains reach no further; from one ball a bin it is a long way.
    let process = ProcessSpec::Repeated(repeated::Parameters { n: 9, start: Start::Each(1) });
    let law = &theory::repeated::small_chain(&[1; 9]).expect("a small chain").at_rounds(&[2])[0];
    let exceedance = |k: u64| law.max_load.iter().skip(k as usize).rev().sum::<f64>();
    let levels = levels_in_reach(exceedance).skip_while(|&k| exceedance(k) > 0.999);
    let asked = Spec { question: Question::AtRound(2), ..spec_of(process, levels, 64) };
    let furthest = assert_exact("9 balls after 2 rounds", &estimate(&asked), exceedance);
    assert!(lowest < 1e-5 && furthest < 1e-6, "the levels reach far: {lowest:e}, {furthest:e}");
}

/// The loads after a throw are those of the leaky bins before the deletions: one more, but for 0.
#[test]
fn tetris_has_the_exact_stationary_tail() {
    for (n, lambda, cap) in [(2, 0.7, 60), (3, 0.6, 50), (4, 0.5, 34)] {
        let parameters = tetris::Parameters { n, lambda, start: Start::Empty };
        let chain = SmallChain::new(&parameters.as_leaky(), cap).expect("a small chain");
        let law = chain.stationary().expect("it settles");
        let exceedance = |k: u64| law.max_load.iter().skip(k as usize - 1).rev().sum::<f64>();
        let levels: Vec<u64> = levels_in_reach(exceedance).skip(1).collect();
        let outcome = estimate(&spec_of(ProcessSpec::Tetris(parameters.clone()), levels, 32));
        println!("{:?}, {} rounds, {:?}", outcome.stages, outcome.rounds, outcome.elapsed);
        let lowest = assert_exact(&format!("{parameters:?}"), &outcome, exceedance);
        assert!(lowest < 1e-11, "the levels reach far: {lowest:e}");
    }
}

/// As [`forced_entrances_are_unbiased`], for rounds that begin with their deletions.
#[test]
fn throws_after_deletions_are_unbiased() {
    const DRAWS: u32 = 40_000;
    let check = |what: &str, chain: &dyn ProfileChain, level: u64, p: f64| {
        let mut stream = Stream::new(&Draws::new(4, 0, 0), Domain::Tail);
        let (mut thrower, mut counts, mut expected) = (Thrower::default(), CountTail::default(), Vec::new());
        let source = chain.start(&mut stream, &mut thrower).bins;
        let chain = chain.tail().expect("it has that form");
        chain.expected_reaching(&mut counts, &source, &[level], &mut expected);
        let reaching = (0..DRAWS).map(|_| {
            let mut next = source.clone();
            chain.force(&mut stream, &mut thrower, &mut counts, &mut next, level);
            assert_eq!(next.bins(), source.bins());
            next.levels().iter().filter(|at| at.load >= level).map(|at| at.bins).sum()
        });
        assert_unbiased(&format!("{what}, level {level}"), expected[0], reaching, p);
    };
    let reached = |law: &theory::ChainLaw, level: u64| law.max_load[level as usize..].iter().rev().sum::<f64>();
    for (n, each, level) in [(2, 1, 1), (2, 2, 3), (3, 1, 2), (3, 2, 3), (4, 3, 4)] {
        let start = Start::Each(each);
        let law = &theory::repeated::small_chain(&vec![each; n]).expect("a small chain").at_rounds(&[1])[0];
        let parameters = repeated::Parameters { n: n as u64, start };
        let chain = RepeatedProfile::new(&parameters).expect("valid");
        check(&format!("{parameters:?}"), &chain, level, reached(law, level));

        let parameters = tetris::Parameters { n: n as u64, lambda: 0.9, start: Start::Each(each) };
        let before = leaky_start(&parameters, each - 1);
        let law = &SmallChain::new(&before, 20).expect("a small chain").at_rounds(&[1])[0];
        // A leaky bin that is left with `level - 1` had one more.
        if level > 1 {
            let chain = TetrisProfile::new(&parameters).expect("valid");
            check(&format!("{parameters:?}"), &chain, level, reached(law, level - 1));
        }
    }
}

/// The leaky bins that begin with `each` balls in every bin.
fn leaky_start(parameters: &tetris::Parameters, each: u32) -> Parameters {
    Parameters { start: Start::Each(each), ..parameters.as_leaky() }
}

#[test]
fn any_number_of_threads_gives_the_same_outcome() {
    let spec = spec(Parameters { n: 100, ..Parameters::default() }, [5, 8, 12], 32);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        pool.install(|| Outcome { elapsed: Default::default(), ..estimate(&spec) })
    };
    let alone = on(1);
    assert!(on(2) == alone && on(5) == alone);
    let other = Spec { seed: 2, ..spec.clone() };
    assert_ne!(estimate(&other).levels, alone.levels);
}

#[test]
fn islands_stop_where_the_error_is_small_enough() {
    let wanted = Spec {
        rel_err: Some(0.05),
        max_islands: 1 << 16,
        ..spec(Parameters { n: 100, ..Parameters::default() }, [1, 6, 9], 32)
    };
    let stopped = estimate(&wanted);
    assert!(stopped.islands < 1 << 16);
    // Every round reaches level 1, which holds nothing up.
    assert_eq!((stopped.levels[0].probability, stopped.levels[0].rel_err), (1.0, None));
    let others = &stopped.levels[1..];
    assert!(others.iter().all(|level| level.rel_err.is_some_and(|e| e <= 0.05) && level.doubts.is_empty()));
    // The same as asking for so many islands.
    let again = estimate(&Spec { rel_err: None, max_islands: stopped.islands, ..wanted });
    assert_eq!(again.levels, stopped.levels);
}

#[test]
fn estimates_that_rest_on_little_say_so() {
    // One choice: excursions far out come from few states of the plain chain.
    let parameters = Parameters { n: 16, lambda: 0.75, d: 1, ..Parameters::default() };
    let outcome = estimate(&spec(parameters, [8, 56], 32));
    let [near, far] = &outcome.levels[..] else { panic!("two levels") };
    println!("{near:?}\n{far:?}");
    assert!(near.doubts.is_empty() && near.ancestors > 1000);
    assert!(far.probability < 1e-12 && far.ancestors < near.ancestors);
    assert_eq!(far.doubts.contains(&Doubt::FewAncestors), far.ancestors < 100);
}

#[test]
fn questions_without_an_answer_are_refused() {
    let refused = |spec: Spec| run(&spec, &Control::default()).expect_err("refused").to_string();
    let small = || Parameters { n: 4, lambda: 0.5, ..Parameters::default() };
    for (spec, message) in [
        (spec(small(), [], 64), "the levels [] are not allowed"),
        (spec(small(), [3, 2], 64), "the levels [3, 2] are not allowed"),
        (spec(small(), [0], 64), "the levels [0] are not allowed"),
        (spec(small(), [3], 31), "max-islands = 31 is not allowed"),
        (Spec { rel_err: Some(0.0), ..spec(small(), [3], 64) }, "rel-err = 0 is not allowed"),
        (Spec { max_time: Some(-1.0), ..spec(small(), [3], 64) }, "max-time = -1 s is not allowed"),
        (spec(Parameters { lambda: 1.0, ..small() }, [3], 64), "there is no stationary state"),
        (Spec { question: Question::Within(0), ..spec(small(), [3], 64) }, "within 0 rounds is not allowed"),
        (Spec { question: Question::AtRound(1 << 41), ..spec(small(), [3], 64) }, "use 1 to 2^40 rounds"),
        (spec(Parameters { n: 0, ..small() }, [3], 64), "n = 0 is not allowed"),
        (spec(Parameters { lambda: 0.0, ..small() }, [3], 64), "a max load of 1 cannot be reached"),
        (spec(Parameters { n: 1, ..small() }, [3], 64), "a max load of 1 cannot be reached"),
        (
            spec_of(ProcessSpec::Tetris(tetris::Parameters { lambda: 1.0, ..Default::default() }), [3], 64),
            "there is no stationary state",
        ),
        (
            spec_of(ProcessSpec::Repeated(repeated::Parameters { n: 4, start: Start::Each(2) }), [9], 64),
            "a max load of 9 cannot be reached",
        ),
        (
            spec_of(ProcessSpec::Repeated(repeated::Parameters { n: 4, start: Start::MeanField }), [3], 64),
            "the number of balls follows from the start",
        ),
        (
            spec_of(ProcessSpec::Capped(capped::Parameters { n: 4, ..Default::default() }), [1], 64),
            "the process capped cannot be conditioned on rare max loads (it has no form",
        ),
        (
            Spec {
                states: StreamKind::Bins,
                ..spec_of(ProcessSpec::Repeated(repeated::Parameters::default()), [3], 64)
            },
            "the process repeated cannot be conditioned on rare max loads with --states bins",
        ),
        (spec(Parameters { lambda: 1.0 - 1e-9, ..small() }, [3], 64), "too many to wait for"),
        (spec(small(), [500], 64), "cannot be reached, or with a probability too small for an f64"),
    ] {
        let said = refused(spec);
        assert!(said.contains(message), "{said}");
    }
    let cancelled = Control::default();
    cancelled.cancel();
    assert!(matches!(run(&spec(small(), [3], 64), &cancelled), Err(TailError::Backend(_))));
}

/// Coverage of 95 % intervals, each of 32 islands, over 500 seeds; three standard errors are 3 %.
#[test]
fn intervals_cover_as_often_as_they_say() {
    const SETS: u64 = 500;
    let parameters = Parameters { n: 3, lambda: 0.75, d: 2, ..Parameters::default() };
    let law = SmallChain::new(&parameters, 30).expect("a small chain").stationary().expect("it settles");
    let exceedance = |k: u64| law.max_load[k as usize..].iter().rev().sum::<f64>();
    let levels = [1e-4, 1e-8, 1e-12].map(|p| (1..).find(|&k| exceedance(k) < p).expect("a level"));
    let mut covered = [0u64; 3];
    for seed in 0..SETS {
        let outcome = estimate(&Spec { seed, ..spec(parameters.clone(), levels, 32) });
        for (covered, level) in covered.iter_mut().zip(&outcome.levels) {
            let (low, high) = level.interval.expect("islands differ");
            *covered += u64::from((low..=high).contains(&exceedance(level.k)));
        }
    }
    for (covered, k) in covered.into_iter().zip(levels) {
        let share = covered as f64 / SETS as f64;
        println!("P(M >= {k}) = {:.3e}: {covered} of {SETS} intervals cover, bounds 92 % and 98 %", exceedance(k));
        assert!((0.92..=0.98).contains(&share), "level {k}: {share}");
    }
}
