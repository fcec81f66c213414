//! Rules for stopping: where they end a run, and what they do to the error.

#![allow(clippy::print_stdout, reason = "coverages and bounds belong to a test's output")]

use leakybins::backend::{Control, Host, Pool};
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{Outcome, Reason, Schedule, Spec, Stopping, run, stopping};
use leakybins::stats::estimate::{Sampling, exceedance, mean};
use leakybins::stats::interval::Confidence;
use rayon::prelude::*;
use serde_json::Value;
use statrs::distribution::{Binomial, DiscreteCDF};

/// 4 bins, lambda 0.5, d = 2: case 5 of the small chains.
fn spec(seed: u64, rounds: u64, burn_in: u64, stopping: Stopping) -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n: 4, lambda: 0.5, d: 2, ..Parameters::default() });
    let schedule = Schedule { rounds, burn_in, every: 1, loads_every: 0, measure: Measure::Post };
    Spec { process, seed, replicas: 20_000, schedule, stopping: Some(stopping) }
}

fn rules() -> Stopping {
    Stopping { confidence: 0.95, ..Stopping::default() }
}

fn outcome(spec: &Spec, host: Host) -> Outcome {
    run(spec, &mut Pool::from(host), &Control::default(), None, &mut |_| ()).expect("a valid run")
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(work)
}

#[test]
fn a_run_ends_at_the_same_replica_everywhere_and_is_that_of_so_many_replicas() {
    let spec = spec(1, 40, 20, Stopping { at: Some(2), rel_err: Some(0.1), ..rules() });
    let stopped = on_threads(1, || outcome(&spec, Host::reference()));
    assert_eq!(stopped.reason, Reason::RelErr);
    let again = on_threads(3, || outcome(&spec, Host::cpu()));
    assert_eq!((&again.tally, again.reason), (&stopped.tally, stopped.reason));
    let replicas = stopped.tally.replicas;
    assert!(stopping::looks().any(|look| look == replicas), "{replicas}");
    let fixed = Spec { replicas, stopping: None, ..spec };
    assert_eq!(outcome(&fixed, Host::cpu()).tally, stopped.tally);
}

#[test]
fn a_rule_is_met_at_the_last_look_and_not_before() {
    for stopping in [
        Stopping { at: Some(2), rel_err: Some(0.15), ..rules() },
        Stopping { rel_err: Some(0.01), ..rules() },
        Stopping { at: Some(3), max_hits: Some(50), ..rules() },
    ] {
        let spec = spec(2, 30, 20, stopping);
        let ended = outcome(&spec, Host::cpu());
        assert_ne!(ended.reason, Reason::Replicas);
        let earlier = stopping::looks().take_while(|&look| look < ended.tally.replicas).last().expect("a look");
        let before = outcome(&Spec { replicas: earlier, ..spec.clone() }, Host::cpu());
        assert_eq!(before.reason, Reason::Replicas, "{stopping:?}");
        let is_met = |outcome: &Outcome| match stopping {
            Stopping { rel_err: Some(wanted), .. } => {
                stopping.reached(&outcome.tally, &spec.schedule).is_some_and(|error| error <= wanted)
            }
            Stopping { at: Some(k), max_hits: Some(most), .. } => outcome.tally.max_load.at(k).hits >= most.into(),
            _ => unreachable!("one of the two"),
        };
        assert!(is_met(&ended) && !is_met(&before), "{stopping:?}");
    }
}

#[test]
fn a_level_that_is_never_seen_is_unmet() {
    let ended = outcome(&spec(3, 20, 10, Stopping { at: Some(50), rel_err: Some(10.0), ..rules() }), Host::cpu());
    assert_eq!((ended.reason, ended.tally.replicas), (Reason::Replicas, 20_000));
}

#[test]
fn a_run_without_time_ends_after_the_first_block() {
    let ended = outcome(&spec(4, 20, 10, Stopping { max_time: Some(1e-9), ..rules() }), Host::cpu());
    assert_eq!((ended.reason, ended.tally.replicas), (Reason::MaxTime, 32));
    // Blocks of many bins have fewer replicas.
    let mut large = spec(4, 1, 0, Stopping { max_time: Some(1e-9), ..rules() });
    large.process = ProcessSpec::Leaky(Parameters { n: 1 << 22, lambda: 0.01, d: 1, ..Parameters::default() });
    let ended = outcome(&large, Host::cpu());
    assert_eq!((ended.reason, ended.tally.replicas), (Reason::MaxTime, 16));
    let ended = outcome(&spec(4, 20, 10, Stopping { max_time: Some(1e9), ..rules() }), Host::cpu());
    assert_eq!((ended.reason, ended.tally.replicas), (Reason::Replicas, 20_000));
}

/// The exact P(max load >= k), of the state after 20 rounds and of the stationary state.
fn exact(law: &str, k: usize) -> f64 {
    let all: Value = serde_json::from_str(include_str!("oracles/leaky.json")).expect("valid JSON");
    let case = &all["small_chain"][5];
    assert_eq!((&case["n"], &case["lambda"], &case["d"]), (&4.into(), &0.5.into(), &2.into()));
    let law = if law == "20" { &case["max_load_at_round"]["20"] } else { &case["stationary_max_load"] };
    law.as_array().expect("a law")[k..].iter().map(|p| p.as_f64().expect("a probability")).sum()
}

/// Coverage of the intervals of stopped runs. Alpha 1e-6 a rule that they cover with at least 95 %.
#[test]
fn intervals_of_stopped_runs_cover() {
    const RUNS: u64 = 600;
    let law = Binomial::new(0.95, RUNS).expect("valid");
    let low = (0..=RUNS).find(|&k| law.cdf(k) > 1e-6).expect("the law ends at 1");
    let confidence = Confidence::new(0.95).expect("valid");
    let stationary_mean = (1..20).map(|k| exact("stationary", k)).sum::<f64>();
    for (name, rounds, burn_in, at, stopping) in [
        ("independent, rel-err", 20, 19, Some(2), Stopping { rel_err: Some(0.2), ..rules() }),
        ("independent, max-hits", 20, 19, Some(2), Stopping { max_hits: Some(40), ..rules() }),
        ("independent, rel-err of the mean", 30, 29, None, Stopping { rel_err: Some(0.05), ..rules() }),
        ("time averages, rel-err", 40, 30, Some(2), Stopping { rel_err: Some(0.2), ..rules() }),
        ("time averages, rel-err, rare", 40, 30, Some(3), Stopping { rel_err: Some(0.4), ..rules() }),
    ] {
        let stopping = Stopping { at, ..stopping };
        let covers = |seed: u64| {
            let spec = spec(1000 + seed, rounds, burn_in, stopping);
            let Outcome { tally, reason, .. } = outcome(&spec, Host::cpu());
            assert_ne!(reason, Reason::Replicas, "{name}");
            let sampling = Sampling { replicas: tally.replicas, samples: rounds - burn_in };
            match at {
                Some(k) => {
                    let truth = exact(if rounds == 20 { "20" } else { "stationary" }, k as usize);
                    let estimate = exceedance(&tally.max_load.at(k), sampling, confidence).expect("counts");
                    estimate.interval.contains(truth)
                }
                None => {
                    let estimate = mean(tally.max_load.samples(), tally.max_load.replicas, confidence).expect("spread");
                    estimate.interval.contains(stationary_mean)
                }
            }
        };
        let covered = (0..RUNS).into_par_iter().filter(|&seed| covers(seed)).count() as u64;
        println!("{name}: {covered} of {RUNS} cover ({:.1} %); bound {low}", 100.0 * covered as f64 / RUNS as f64);
        assert!(covered >= low, "{name}: {covered} of {RUNS}");
    }
}
