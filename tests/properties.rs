//! What holds for every specification, tried on random small ones.

use leakybins::backend::{Backend, BlockResult, Control, Host, Job, Pool, Work};
use leakybins::number;
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::run::{Schedule, Spec, Stopping, run};
use leakybins::stats::{Flow, Further, Histogram, Moments, Record, Tally};
use proptest::prelude::*;
use std::ops::Range;

/// Any rate in [0, 1], its ends and neighbours included.
fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..=1.0,
        1 => Just(0.0),
        1 => Just(1.0),
        1 => (1i32..60).prop_map(|k| 1.0 - 0.5f64.powi(k)),
    ]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let arrivals = prop_oneof![Just(Arrivals::Binomial), Just(Arrivals::Poisson), Just(Arrivals::Fixed)];
    let start = prop_oneof![
        Just(Start::Empty),
        (0u32..400).prop_map(Start::Each),
        (0u32..100_000).prop_map(Start::OneBin),
        (0u32..500).prop_map(Start::Random),
        Just(Start::MeanField),
    ];
    (1u64..200, rates(), 1u64..6, arrivals, start).prop_map(|(n, lambda, d, arrivals, start)| {
        // Nearer to 1 the law of a bin is too long for a table, at 1 there is none.
        let start = if start == Start::MeanField && lambda > 0.999 { Start::Empty } else { start };
        Parameters { n, lambda, d, arrivals, start }
    })
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let measure = prop_oneof![Just(Measure::Pre), Just(Measure::Post)];
    (1u64..60, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u64..5, measure).prop_map(
        |(rounds, burn_in, every, loads_every, measure)| {
            let burn_in = burn_in.index(rounds as usize) as u64;
            let every = 1 + every.index((rounds - burn_in) as usize) as u64;
            Schedule { rounds, burn_in, every, loads_every, measure }
        },
    )
}

fn specs() -> impl Strategy<Value = Spec> {
    (parameters(), any::<u64>(), 1u64..9, schedules()).prop_map(|(parameters, seed, replicas, schedule)| Spec {
        process: ProcessSpec::Leaky(parameters),
        seed,
        replicas,
        schedule,
        stopping: None,
    })
}

/// Histograms with some counts of `many`.
fn histograms(many: Range<u128>) -> impl Strategy<Value = Histogram> {
    let values = prop_oneof![0u64..50, 4090u64..4100, 0u64..1 << 31];
    prop::collection::vec((values, prop_oneof![0u128..1 << 20, many]), 0..12).prop_map(|counts| {
        let mut histogram = Histogram::default();
        counts.into_iter().for_each(|(value, count)| histogram.add(value, count));
        histogram
    })
}

fn moments() -> impl Strategy<Value = Moments> {
    prop::collection::vec(0u64..1 << 40, 0..12).prop_map(|values| {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    })
}

fn further() -> impl Strategy<Value = Further> {
    let numbers = prop::collection::vec(0u64..1 << 40, 0..4);
    let counts = prop::collection::vec((0usize..3, 0u64..50, 0u128..1 << 20), 0..8);
    (numbers, counts).prop_map(|(numbers, counts)| {
        let mut further = Further::default();
        numbers.into_iter().enumerate().for_each(|(place, value)| further.number(place, value));
        counts.into_iter().for_each(|(place, value, count)| further.count(place, value, count));
        further
    })
}

fn records() -> impl Strategy<Value = Record> {
    let counts = (0u128..1 << 100, 0u128..1 << 100);
    // A round is one sample of the max load, whose squares are summed, and many of the load of a bin, whose are not.
    let (rounds, bins) = (1 << 27..1 << 28, 1 << 64..1 << 100);
    (counts, histograms(rounds), moments(), moments(), histograms(bins), further()).prop_map(
        |((arrived, departed), max_load, total_load, empty_bins, load_per_bin, further)| {
            let flow = Flow { arrived, departed };
            Record { flow, max_load, total_load, empty_bins, load_per_bin, further }
        },
    )
}

fn tallies() -> impl Strategy<Value = Tally> {
    (prop::collection::vec(records(), 0..4), 0u128..1 << 80, 0u128..1 << 80).prop_map(
        |(records, initial_balls, final_balls)| {
            let mut tally = Tally { initial_balls, final_balls, ..Tally::default() };
            records.iter().for_each(|record| tally.add(record));
            tally
        },
    )
}

fn merged<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    let mut sum = Tally::default();
    tallies.into_iter().for_each(|tally| sum.merge(tally));
    sum
}

/// The replicas of `block`, final loads included.
fn block(spec: &Spec, mut host: Host, block: Range<u64>) -> BlockResult {
    let process = spec.process.build().expect("valid parameters");
    let job = Job { process: &*process, seed: spec.seed, schedule: spec.schedule, keep_loads: true };
    host.run(&Work::Bins(job), block, &Control::default()).expect("a block that conserves balls")
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_ball_is_lost_and_none_appears(spec in specs()) {
        for host in [Host::reference(), Host::cpu()] {
            let BlockResult { tally, loads } = block(&spec, host, 0..spec.replicas);
            prop_assert!(tally.conserves_balls());
            prop_assert_eq!(tally.final_balls, loads.iter().map(|&load| u128::from(load)).sum::<u128>());
            prop_assert_eq!(tally.replicas, spec.replicas);
        }
    }

    #[test]
    fn exactly_the_scheduled_rounds_are_sampled(spec in specs()) {
        let control = Control::default();
        let tally = run(&spec, &mut Pool::from(Host::cpu()), &control, None, &mut |_| {}).expect("a valid run").tally;
        let Schedule { rounds, burn_in, every, loads_every, .. } = spec.schedule;
        let ProcessSpec::Leaky(Parameters { n, .. }) = spec.process else { unreachable!("only leaky bins are drawn") };
        // Counted from the definition, round by round in the user's count 1, 2, ..
        let sampled: Vec<u64> = (burn_in + 1..=rounds).filter(|t| (t - burn_in) % every == 0).collect();
        let samples = sampled.len() as u64 * spec.replicas;
        let with_loads = (sampled.len() as u64).checked_div(loads_every).unwrap_or(0) * spec.replicas;
        prop_assert_eq!(tally.samples(), samples);
        prop_assert_eq!(tally.max_load.samples().count, samples);
        prop_assert_eq!(tally.max_load.replicas.count, spec.replicas);
        prop_assert_eq!(tally.empty_bins.samples.count, samples);
        prop_assert_eq!(tally.load_per_bin.total(), u128::from(with_loads * n));
        prop_assert_eq!(control.rounds(), rounds * spec.replicas);
    }

    #[test]
    fn the_observables_of_one_round_agree(mut spec in specs()) {
        spec.schedule.loads_every = 1;
        let tally = block(&spec, Host::cpu(), 0..spec.replicas).tally;
        prop_assert_eq!(tally.load_per_bin.sum(), tally.total_load.samples.sum);
        prop_assert_eq!(tally.load_per_bin.max(), tally.max_load.max());
        let empty = tally.load_per_bin.iter().next().filter(|level| level.0 == 0).map_or(0, |level| level.1);
        prop_assert_eq!(empty, tally.empty_bins.samples.sum);
    }

    #[test]
    fn results_do_not_depend_on_threads_blocks_or_path(spec in specs(), cut in any::<prop::sample::Index>()) {
        let whole = on_threads(1, || block(&spec, Host::reference(), 0..spec.replicas));
        prop_assert_eq!(&on_threads(3, || block(&spec, Host::cpu(), 0..spec.replicas)), &whole);
        let cut = cut.index(spec.replicas as usize + 1) as u64;
        let parts = [block(&spec, Host::cpu(), 0..cut), block(&spec, Host::cpu(), cut..spec.replicas)];
        prop_assert_eq!(merged(parts.iter().map(|part| &part.tally)), whole.tally);
        let loads: Vec<u32> = parts.into_iter().flat_map(|part| part.loads).collect();
        prop_assert_eq!(loads, whole.loads);
    }

    #[test]
    fn a_specification_survives_json(mut spec in specs(), rules in prop::option::of((1u64..99, 0.001f64..1.0))) {
        spec.stopping = rules.map(|(at, rel_err)| {
            Stopping { at: Some(at), rel_err: Some(rel_err), confidence: 0.95, ..Stopping::default() }
        });
        let json = serde_json::to_string(&spec).expect("a specification can be written");
        prop_assert_eq!(serde_json::from_str::<Spec>(&json).expect("what was written can be read"), spec);
    }

    #[test]
    fn merging_is_commutative_and_associative(a in tallies(), b in tallies(), c in tallies()) {
        prop_assert_eq!(merged([&a, &b]), merged([&b, &a]));
        prop_assert_eq!(merged([&merged([&a, &b]), &c]), merged([&a, &merged([&b, &c])]));
        prop_assert_eq!(merged([&a, &Tally::default()]), a);
    }

    #[test]
    fn variance_is_that_of_the_definition(values in prop::collection::vec(0u64..1 << 26, 1..40)) {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.add(value));
        let n = values.len() as f64;
        let mean = values.iter().sum::<u64>() as f64 / n;
        let expected = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum::<f64>() / n;
        let variance = moments.variance().expect("there are values");
        prop_assert!((variance - expected).abs() <= 1e-9 * (1.0 + expected), "{variance} for {expected}");
    }

    #[test]
    fn counts_read_back(value in any::<u64>(), digits in 0u32..20, bits in 0u32..64) {
        prop_assert_eq!(number::count(&value.to_string()), Ok(value));
        prop_assert_eq!(number::count(&format!("1e{digits}")), Ok(10u64.pow(digits)));
        prop_assert_eq!(number::count(&format!("2^{bits}")), Ok(1 << bits));
        prop_assert_eq!(number::count(&format!("{}k", value / 1000)), Ok(value / 1000 * 1000));
        let (high, low) = (value / 1000 % 1000, value % 1000);
        prop_assert_eq!(number::count(&format!("{high}.{low:03}e3")), Ok(high * 1000 + low));
    }

    #[test]
    fn rates_read_back(rate in rates()) {
        prop_assert_eq!(number::rate(&rate.to_string()), Ok(rate));
        prop_assert_eq!(number::rate(&format!("1-{rate}")), Ok(1.0 - rate));
    }

    #[test]
    fn no_text_breaks_a_number(text in "\\PC{0,12}|[0-9eE.^kMGi_+-]{0,24}") {
        let (_, _) = (number::count(&text), number::rate(&text));
    }
}
