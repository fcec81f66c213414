//! The fast path against the definition: the same loads and the same tally, in every shape.

use leakybins::process::leaky::{Arrivals, Leaky, Parameters};
use leakybins::process::start::Start;
use leakybins::process::{Measure, Process, Reference, Runner};
use leakybins::rng::MAX_ROUNDS;
use leakybins::run::Schedule;
use leakybins::stats::Record;

/// Runs replica 3 under both runners, `pieces` calls each, and compares after every call.
fn agree(parameters: &Parameters, schedule: &Schedule, pieces: u64) {
    let process = Leaky::new(parameters).expect("valid parameters");
    let seed = 0x1234_5678_9ABC_DEF0;
    let mut loads = [vec![0; process.bins() as usize], vec![0; process.bins() as usize]];
    let mut records = [Record::default(), Record::default()];
    let (mut fast, mut plain) = (process.runner(), Reference(&process));
    let runners: [&mut dyn Runner; 2] = [&mut *fast, &mut plain];
    for loads in &mut loads {
        process.start(seed, 3, loads);
    }
    for (runner, (loads, record)) in runners.into_iter().zip(loads.iter_mut().zip(&mut records)) {
        for piece in 0..pieces {
            let rounds = piece * schedule.rounds / pieces..(piece + 1) * schedule.rounds / pieces;
            runner.advance(seed, 3, loads, rounds, schedule, record);
        }
    }
    let [fast, plain] = records;
    assert_eq!(fast, plain, "record of {parameters:?}, {schedule:?}");
    assert_eq!(loads[0], loads[1], "loads of {parameters:?}, {schedule:?}");
}

fn schedule(rounds: u64) -> Schedule {
    Schedule { rounds, burn_in: 2, every: 1, loads_every: 2, measure: Measure::Post }
}

fn parameters(n: u64, lambda: f64, d: u64) -> Parameters {
    Parameters { n, lambda, d, ..Parameters::default() }
}

#[test]
fn every_packing_shape() {
    // Every number of indices a word (1 to 14 and more), words a ball (1, 2, 4, 8) and balls a word (1 to 4); n around
    // powers of two, where words are never rejected, and beside them.
    for n in
        [1, 2, 3, 5, 16, 17, 31, 32, 33, 64, 100, 255, 256, 257, 1000, 1023, 1024, 1025, 1626, 4096, 65_536, 70_000]
    {
        for d in [1, 2, 3, 4, 5, 7, 12] {
            agree(&parameters(n, 0.9, d), &schedule(if n > 5000 { 6 } else { 60 }), 3);
        }
    }
    agree(&parameters(10, 0.9, 256), &schedule(20), 1);
    agree(&parameters(1, 0.9, 256), &schedule(20), 1);
    agree(&parameters(50, 0.9, 100), &schedule(20), 1);
}

#[test]
fn every_arrival_law_and_schedule() {
    for arrivals in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
        for lambda in [0.0, 0.013, 0.5, 0.99, 1.0] {
            for measure in [Measure::Pre, Measure::Post] {
                for (burn_in, every, loads_every) in [(0, 1, 1), (0, 1, 0), (17, 3, 2), (199, 1, 1)] {
                    let schedule = Schedule { rounds: 200, burn_in, every, loads_every, measure };
                    agree(&Parameters { arrivals, ..parameters(100, lambda, 2) }, &schedule, 7);
                }
            }
        }
    }
}

#[test]
fn every_start() {
    for start in ["each:300", "each:255", "each:254", "one-bin:100", "one-bin:255", "one-bin:1000000", "random:5000"] {
        for d in [1, 2] {
            let start: Start = start.parse().expect("a valid start");
            agree(&Parameters { start, ..parameters(77, 0.95, d) }, &schedule(500), 4);
        }
    }
    for start in ["each:65535", "each:65536", "one-bin:2147483648"] {
        let start: Start = start.parse().expect("a valid start");
        agree(&Parameters { start, ..parameters(40, 1.0, 1) }, &schedule(300), 2);
    }
}

#[test]
fn rounds_beyond_thirty_two_bits() {
    let process = Leaky::new(&parameters(100, 0.95, 2)).expect("valid parameters");
    // Across the border of the counter word, and up to the last round there is.
    for (first, last) in [((1 << 32) - 3, (1 << 32) + 3), (MAX_ROUNDS - 3, MAX_ROUNDS)] {
        let schedule = schedule(last);
        let run = |runner: &mut dyn Runner| {
            let (mut loads, mut record) = (vec![0; 100], Record::default());
            runner.advance(9, u32::MAX, &mut loads, first..last, &schedule, &mut record);
            (loads, record)
        };
        assert_eq!(run(&mut *process.runner()), run(&mut Reference(&process)), "rounds {first} to {last}");
    }
}
