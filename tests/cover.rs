//! Balls with identities: cover times against exact small systems, single replicas against an independent program, loads
//! against the process without identities.
//!
//! Statistical tests use fixed seeds; the chance that one of this file would fail by bad luck with another seed is below
//! 1e-6 in all: ALPHA is shared out equally over the comparisons, and each prints its statistic and bound.

#![allow(clippy::print_stdout, reason = "statistics and bounds belong to a test's output")]

use leakybins::backend::Control;
use leakybins::cover::{Outcome, Queue, Spec, Traversal, run};
use leakybins::process::Process;
use leakybins::process::repeated::{Parameters, Repeated};
use leakybins::process::start::Start;
use leakybins::rng::{Domain, Draws, bounded};
use leakybins::stats::interval::{Confidence, Interval};
use leakybins::stats::{Histogram, PowerSums};
use serde::Deserialize;

/// Chance of a false alarm of this whole file.
const ALPHA: f64 = 1e-6;
/// Upper bound of the number of comparisons in this file.
const COMPARISONS: f64 = 50.0;
const DISCIPLINES: [Queue; 3] = [Queue::Fifo, Queue::Lifo, Queue::Random];

/// What `tests/oracles/make_cover.py` writes.
#[derive(Deserialize)]
struct Oracle {
    means: Vec<Means>,
    ways: Vec<Way>,
}

#[derive(Deserialize)]
struct Means {
    n: u64,
    start: Start,
    queue: Queue,
    cover: f64,
    first: f64,
}

#[derive(Deserialize)]
struct Way {
    n: u64,
    start: Start,
    queue: Queue,
    seed: u64,
    replica: u32,
    rounds: u64,
    queues: Vec<Vec<u32>>,
    cover: u64,
    first: u64,
    max_delay: u64,
    moves: u64,
}

fn oracle() -> Oracle {
    serde_json::from_str(include_str!("oracles/cover.json")).expect("what the script writes")
}

fn spec(n: u64, start: Start, queue: Queue, replicas: u64) -> Spec {
    Spec { parameters: Parameters { n, start }, queue, seed: 11, replicas, rounds: 1 << 48 }
}

fn follow(spec: &Spec) -> Outcome {
    run(spec, &Control::default()).expect("a valid run")
}

/// Mean and half of the t interval that misses with the share of one comparison.
fn estimate(values: &Histogram) -> (f64, f64) {
    let mut sums = PowerSums::default();
    values.iter().for_each(|(value, count)| sums.add_times(value.into(), count as u64));
    let confidence = Confidence::new(1.0 - ALPHA / COMPARISONS).expect("a probability");
    let interval = Interval::student(sums, confidence).expect("many different values");
    (0.5 * (interval.low + interval.high), 0.5 * (interval.high - interval.low))
}

fn queues(traversal: &Traversal, n: u64) -> Vec<Vec<u32>> {
    (0..n as u32).map(|bin| traversal.queue(bin).collect()).collect()
}

#[test]
fn small_systems_have_their_exact_mean_cover_times() {
    for Means { n, start, queue, cover, first } in oracle().means {
        let what = format!("n {n}, {start}, {}", queue.name());
        let outcome = follow(&spec(n, start, queue, 40_000));
        for (name, seen, exact) in [("all balls", &outcome.covered, cover), ("first ball", &outcome.first, first)] {
            let (mean, bound) = estimate(seen);
            println!("{what}, {name}: {mean:.4}, exactly {exact:.4}, off by {:.4}, bound {bound:.4}", mean - exact);
            assert!((mean - exact).abs() <= bound, "{what}, {name}: {mean} against {exact}");
        }
    }
}

/// The numbers of `wrong` are not those of `right`, so that the test above would tell them apart.
#[test]
fn disciplines_differ_by_more_than_the_bounds() {
    for (right, wrong) in [(Queue::Fifo, Queue::Lifo), (Queue::Lifo, Queue::Random)] {
        let exact = oracle().means.into_iter().find(|means| means.n == 3 && means.queue == right);
        let Means { n, start, cover, .. } = exact.expect("a system of three bins");
        let (mean, bound) = estimate(&follow(&spec(n, start, wrong, 40_000)).covered);
        println!("{} taken for {}: off by {:.4}, bound {bound:.4}", wrong.name(), right.name(), mean - cover);
        assert!((mean - cover).abs() > bound);
    }
}

#[test]
fn single_replicas_are_those_of_an_independent_program() {
    for way in oracle().ways {
        let spec = Spec { seed: way.seed, ..spec(way.n, way.start, way.queue, 1) };
        let mut traversal = Traversal::new(&spec).expect("a valid start");
        traversal.restart(way.replica);
        let what = format!("n {}, {}, replica {}", way.n, way.queue.name(), way.replica);
        let mut compared = 0;
        while traversal.covered().is_none() || traversal.rounds() < way.rounds {
            let before = traversal.covered();
            traversal.round();
            if traversal.rounds() == way.rounds {
                assert_eq!(queues(&traversal, way.n), way.queues, "{what}");
                compared += 1;
            }
            if before.is_none() && traversal.covered().is_some() {
                assert_eq!((traversal.max_delay(), traversal.moves()), (way.max_delay, way.moves), "{what}");
                compared += 1;
            }
        }
        assert_eq!((traversal.covered(), traversal.first()), (Some(way.cover), Some(way.first)), "{what}");
        assert_eq!(compared, 2, "{what}");
    }
}

/// Every ball is in exactly one queue, and the loads are those of the definition of the process, round by round.
#[test]
fn loads_are_those_of_the_process_and_no_ball_is_lost() {
    for (n, start) in [
        (1, Start::Each(3)),
        (2, Start::OneBin(7)),
        (64, Start::Each(1)),
        (100, Start::Random(350)),
        (1000, Start::OneBin(3000)),
        (3001, Start::Each(2)),
    ] {
        let parameters = Parameters { n, start: start.clone() };
        let process = Repeated::new(&parameters).expect("valid parameters");
        for queue in DISCIPLINES {
            let spec = spec(n, start.clone(), queue, 1);
            let mut traversal = Traversal::new(&spec).expect("valid parameters");
            for replica in [0, 5] {
                traversal.restart(replica);
                let mut loads = vec![0; n as usize];
                process.start(spec.seed, replica, &mut loads);
                for round in 0..60 {
                    let queues = queues(&traversal, n);
                    let seen: Vec<u32> = queues.iter().map(|queue| queue.len() as u32).collect();
                    assert_eq!(seen, loads, "n {n}, {}, round {round}", queue.name());
                    let mut balls = queues.concat();
                    balls.sort_unstable();
                    assert!(balls.into_iter().eq(0..traversal.balls()), "n {n}, {}, round {round}", queue.name());
                    process.round(&Draws::new(spec.seed, replica, round), &mut loads, None);
                    traversal.round();
                }
            }
        }
    }
}

/// Means of 64 bins with a ball each, of another program: 969, 965 and 964 with errors of 8 for all balls, that is of some
/// 290 replicas; 290 for the first ball, in whose time so many replicas have an error of 1.5.
#[test]
fn sixty_four_bins_have_the_known_cover_times() {
    for (queue, cover) in [(Queue::Random, 969.0), (Queue::Fifo, 965.0), (Queue::Lifo, 964.0)] {
        let outcome = follow(&spec(64, Start::Each(1), queue, 512));
        let errors = f64::sqrt(-2.0 * f64::ln(0.5 * ALPHA / COMPARISONS));
        for (name, seen, known, error) in
            [("all balls", &outcome.covered, cover, 8.0), ("first ball", &outcome.first, 290.0, 1.5)]
        {
            let (mean, half) = estimate(seen);
            // A normal number is this many errors off with a smaller chance than the share of a comparison.
            let bound = half.hypot(errors * error);
            println!("{}, {name}: {mean:.1}, known {known}, bound {bound:.1}", queue.name());
            assert!((mean - known).abs() <= bound, "{}, {name}: {mean} against {known}", queue.name());
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_outcome() {
    for queue in DISCIPLINES {
        let spec = Spec { rounds: 280, ..spec(20, Start::Random(25), queue, 50) };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
            pool.install(|| follow(&spec))
        };
        let alone = on(1);
        assert!(alone.covered.total() > 0 && alone.covered.total() < 50, "some are censored: {:?}", alone.covered);
        assert!(on(2) == alone && on(7) == alone);
        // And no replica leaves a trace in the next one.
        let mut traversal = Traversal::new(&spec).expect("a valid start");
        let mut covered = Histogram::default();
        for replica in (0..50).rev() {
            traversal.restart(replica);
            (0..280).for_each(|_| traversal.round());
            traversal.covered().into_iter().for_each(|round| covered.add(round, 1));
        }
        assert_eq!(covered, alone.covered);
    }
}

#[test]
fn what_is_covered_at_the_start_and_what_never_is() {
    let alone = follow(&spec(1, Start::Each(4), Queue::Fifo, 3));
    assert_eq!((alone.covered.count(0), alone.first.count(0), alone.moves), (3, 3, 0));
    let short = follow(&Spec { rounds: 30, ..spec(64, Start::Each(1), Queue::Lifo, 3) });
    assert_eq!((short.covered.total(), short.first.total(), short.max_delay.total()), (0, 0, 3));
    assert_eq!(short.ball_rounds, 3 * 30 * 64);
    let none = follow(&Spec { rounds: 0, ..spec(2, Start::Each(1), Queue::Lifo, 3) });
    assert_eq!((none.covered.total(), none.max_delay.count(0)), (0, 3));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let good = spec(64, Start::Each(1), Queue::Fifo, 4);
    for (bad, message) in [
        (spec(0, Start::Each(1), Queue::Fifo, 4), "n = 0 is not allowed"),
        (spec(64, Start::Each(0), Queue::Fifo, 4), "start = each:0: there is no ball to follow; use each:1"),
        (spec(64, Start::Empty, Queue::Fifo, 4), "start = empty: there is no ball to follow"),
        (spec(64, Start::MeanField, Queue::Fifo, 4), "would be another in each replica"),
        (spec(64, Start::Each(1 << 31), Queue::Fifo, 4), "use fewer than 2^32 balls"),
        (spec(1 << 24, Start::Each(1), Queue::Fifo, 4), "balls through 16777216 bins at once needs "),
        (spec(1 << 31, Start::Each(1), Queue::Random, 1), "use fewer bins, fewer balls or fewer --threads"),
        (Spec { replicas: 0, ..good.clone() }, "use 1 <= replicas"),
        (Spec { rounds: (1 << 48) + 1, ..good }, "rounds = 281474976710657 is not allowed"),
    ] {
        let error = run(&bad, &Control::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    let stopped = Control::default();
    stopped.cancel();
    let error = run(&spec(64, Start::Each(1), Queue::Fifo, 4), &stopped).expect_err("cancelled");
    assert_eq!(error.to_string(), "the run was interrupted");
}

/// Of a bound for which nearly half of the words are rejected, each third comes as often, to within what chance allows
/// (Hoeffding's inequality at the share of a comparison).
#[test]
fn places_in_a_queue_are_equally_likely() {
    let (bound, draws) = ((1 << 31) + 2, 100_000);
    let mut thirds = [0u32; 3];
    for item in 0..draws {
        let place = bounded::below(&Draws::new(1, 2, 3), Domain::Queue, item, bound);
        assert!(place < bound);
        thirds[(u64::from(place) * 3 / u64::from(bound)) as usize] += 1;
    }
    let most = (0.5 * f64::from(draws) * f64::ln(2.0 * COMPARISONS / ALPHA)).sqrt();
    println!("{thirds:?}, at most {most:.0} off");
    assert!(thirds.iter().all(|&count| (f64::from(count) - f64::from(draws) / 3.0).abs() <= most), "{thirds:?}");
    assert_eq!(bounded::below(&Draws::new(1, 2, 3), Domain::Queue, 9, 1), 0);
}
