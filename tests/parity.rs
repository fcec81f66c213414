//! The reference, the fast CPU path and the GPU give the same loads and the same tallies, word for word.

mod common;

use common::{Case, assert_same, compare, gpu, reference, run_on_gpu, samples};
use leakybins::backend::Host;
use leakybins::backend::gpu::Tuning;
use leakybins::backend::gpu::compose::{Layout, Multiply};
use leakybins::process::leaky::Arrivals;
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec, capped, repeated, tetris};
use leakybins::rng::bounded::Packing;
use leakybins::rng::{Domain, Draws};
use libtest_mimic::Failed;
use std::io::Write;

fn main() {
    run_on_gpu(&[
        ("every_process", every_process),
        ("small_sizes", small_sizes),
        ("layouts_and_products", layouts_and_products),
        ("large_sizes", large_sizes),
        ("starts", starts),
        ("more_levels", more_levels),
        ("overflow_of_the_narrow_form", overflow_of_the_narrow_form),
        ("splits", splits),
        ("long_runs", long_runs),
        ("known_answers", known_answers),
        ("bounded_integers_where_rejection_is_common", bounded_integers),
        ("planted_errors_are_found", planted_errors_are_found),
    ]);
}

fn everywhere(case: &Case, tuning: Tuning) -> Result<(), Failed> {
    let expected = reference(case);
    compare(case, &case.run(&mut Host::cpu()), &expected)?;
    compare(case, &case.run(&mut gpu(tuning)), &expected).map_err(|e| format!("{tuning:?}: {e:?}").into())
}

/// The layouts that the process has: a pool needs the barriers of a workgroup.
fn layouts_of(case: &Case) -> impl Iterator<Item = Layout> + use<> {
    let process = case.process.build().expect("a valid case");
    let pool = process.kernel().pool.is_some();
    Layout::ALL.into_iter().filter(move |&layout| layout != Layout::Grid || !pool)
}

/// The samples of every process, in every layout that it has.
fn every_process() -> Result<(), Failed> {
    for process in ProcessSpec::all() {
        for sample in samples(process.name()) {
            let (rounds, replicas) = if sample.bins() > 50_000 { (8, 2) } else { (40, 3) };
            let mut case = Case::of(sample, rounds, replicas);
            for layout in layouts_of(&case) {
                let fits = case.process.bins() <= 4096 || layout != Layout::Workgroup;
                // Cut into submissions, between which a process must lose nothing.
                let most_rounds = Some(if layout == Layout::Storage { 40 } else { 7 });
                if fits {
                    everywhere(&case, Tuning { layout: Some(layout), most_rounds, ..Tuning::default() })?;
                }
            }
            case.schedule.every = 1;
            everywhere(&case, Tuning { subgroups: false, ..Tuning::default() })?;
        }
    }
    Ok(())
}

/// Every size with every d and law, in the automatic layout, at varying rates and measuring points.
fn small_sizes() -> Result<(), Failed> {
    let mut rates = [0.5, 0.95, 1.0, 0.99, 0.0].into_iter().cycle();
    let mut measures = [Measure::Post, Measure::Pre].into_iter().cycle();
    for n in [1, 2, 63, 64, 1000, 1024, 4096] {
        for d in [1, 2, 3, 5] {
            for law in [Arrivals::Binomial, Arrivals::Poisson, Arrivals::Fixed] {
                let (rate, measure) = (rates.next().expect("endless"), measures.next().expect("endless"));
                let case = Case::new(n, d, 24, 3).lambda(rate).arrivals(law).measure(measure);
                everywhere(&case, Tuning { checked: measure == Measure::Pre, ..Tuning::default() })?;
            }
        }
    }
    // A ball with many blocks of its own, and one whose words serve many balls.
    everywhere(&Case::new(100, 256, 6, 2), Tuning::default())?;
    everywhere(&Case::new(3, 2, 100, 3).lambda(1.0), Tuning::default())
}

/// All layouts with both products, with and without subgroups, at sizes that are no multiple of the workgroup.
fn layouts_and_products() -> Result<(), Failed> {
    for (n, d) in [(1000, 2), (65, 1), (333, 3)] {
        let case = Case::new(n, d, 25, 7);
        let expected = reference(&case);
        for layout in Layout::ALL {
            for multiply in Multiply::ALL {
                for subgroups in [false, true] {
                    let workgroup = if subgroups { Some(64) } else { None };
                    let (layout, multiply) = (Some(layout), Some(multiply));
                    let tuning = Tuning { layout, multiply, subgroups, workgroup, ..Tuning::default() };
                    compare(&case, &case.run(&mut gpu(tuning)), &expected)
                        .map_err(|e| Failed::from(format!("{tuning:?}: {e:?}")))?;
                }
            }
        }
    }
    Ok(())
}

fn large_sizes() -> Result<(), Failed> {
    for (n, d, layout) in [
        (100_000, 1, None),
        (100_000, 2, Some(Layout::Storage)),
        (100_000, 3, Some(Layout::Grid)),
        (100_000, 5, None),
        (1_000_000, 2, None),
        (1_000_000, 3, None),
        (1_000_000, 5, None),
    ] {
        let (rounds, replicas) = if n > 500_000 { (5, 1) } else { (9, 2) };
        let case = Case::new(n, d, rounds, replicas);
        everywhere(&case, Tuning { layout, workgroup: Some(256), ..Tuning::default() })?;
    }
    // One workgroup of 64 more than a dimension of a dispatch holds.
    everywhere(&Case::new((1 << 22) + 1, 2, 5, 1), Tuning { workgroup: Some(64), ..Tuning::default() })?;
    everywhere(&Case::new(1_000_000, 1, 6, 1).lambda(0.7).arrivals(Arrivals::Poisson), Tuning::default())
}

fn starts() -> Result<(), Failed> {
    let mut file = tempfile::NamedTempFile::new()?;
    for bin in 0..200 {
        writeln!(file, "{}", (bin * 37) % 11)?;
    }
    let file = Start::File(file.path().to_owned());
    let wide = Start::OneBin(1_000_000);
    for start in [Start::Each(3), Start::OneBin(500), Start::Random(777), Start::MeanField, file, wide] {
        for layout in Layout::ALL {
            let case = Case::new(200, 2, 30, 3).start(start.clone()).measure(Measure::Pre);
            everywhere(&case, Tuning { layout: Some(layout), ..Tuning::default() })?;
        }
    }
    Ok(())
}

/// Max loads pass the 256 levels that many replicas begin with: the chunk is computed again with more.
fn more_levels() -> Result<(), Failed> {
    for layout in Layout::ALL {
        let mut case = Case::new(2, 1, 30, 16_384).start(Start::Each(245)).lambda(1.0).measure(Measure::Pre);
        case.schedule.every = 1;
        everywhere(&case, Tuning { layout: Some(layout), ..Tuning::default() })?;
    }
    Ok(())
}

/// A load passes 65,535 on the way: the chunk is computed again in the wide form.
fn overflow_of_the_narrow_form() -> Result<(), Failed> {
    for layout in Layout::ALL {
        for (n, load, d, measure) in [
            // Loads that grow by a few a round from just below the border, measured on either side of the deletions.
            (4, 65_533, 1, Measure::Post),
            (4, 65_533, 1, Measure::Pre),
            (64, 65_530, 2, Measure::Post),
        ] {
            let mut case = Case::new(n, d, 60, 3).start(Start::Each(load)).lambda(1.0).measure(measure);
            everywhere(&case, Tuning { layout: Some(layout), ..Tuning::default() })?;
            // The same where no sampled round sees it: the conservation of balls alone finds it.
            case.schedule.burn_in = 58;
            case.schedule.every = 2;
            everywhere(&case, Tuning { layout: Some(layout), ..Tuning::default() })?;
        }
    }
    Ok(())
}

/// Neither the cut into submissions, nor the range of replicas, nor the number of the round's words changes anything.
fn splits() -> Result<(), Failed> {
    let mut case = Case::new(100, 2, 50, 9);
    let whole = reference(&case);
    for layout in Layout::ALL {
        for (most_rounds, most_counted) in [(1, None), (7, None), (50, None), (1, Some(1)), (7, Some(20))] {
            let most_rounds = Some(most_rounds);
            let tuning = Tuning { layout: Some(layout), most_rounds, most_counted, ..Tuning::default() };
            compare(&case, &case.run(&mut gpu(tuning)), &whole)?;
        }
    }
    case.replicas = (1 << 32) - 3..1 << 32;
    everywhere(&case, Tuning::default())?;
    // More workgroups than one dimension of a dispatch holds.
    everywhere(&Case::new(1, 1, 6, 70_000), Tuning { workgroup: Some(32), ..Tuning::default() })?;
    everywhere(
        &Case::new(3, 1, 6, 70_000),
        Tuning { layout: Some(Layout::Grid), workgroup: Some(32), ..Tuning::default() },
    )
}

/// More loop iterations than llvmpipe grants one dispatch: 3000 rounds of 4 workgroup strides and more.
fn long_runs() -> Result<(), Failed> {
    for (layout, workgroup) in [(Layout::Workgroup, 32), (Layout::Storage, 64), (Layout::Grid, 64)] {
        let rounds = if layout == Layout::Grid { 1500 } else { 3000 };
        let mut case = Case::new(512, 2, rounds, 2);
        case.schedule.every = 1;
        let tuning = Tuning { layout: Some(layout), workgroup: Some(workgroup), ..Tuning::default() };
        assert_same(&case, &mut gpu(tuning), &mut Host::cpu())?;
    }
    Ok(())
}

fn known_answers() -> Result<(), Failed> {
    let text = include_str!("kat/philox4x32.txt");
    let rows: Vec<Vec<u32>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().map(|w| u32::from_str_radix(w, 16).expect("a hexadecimal word")).collect())
        .collect();
    let questions: Vec<_> = rows.iter().map(|r| ([r[0], r[1], r[2], r[3]], [r[4], r[5]])).collect();
    let gpu = gpu(Tuning::default());
    for multiply in Multiply::ALL {
        for (row, answer) in rows.iter().zip(gpu.philox(&questions, multiply)?) {
            if row[6..] != answer {
                return Err(format!("{multiply:?}: {answer:08x?} for {row:08x?}").into());
            }
        }
    }
    Ok(())
}

fn bounded_integers() -> Result<(), Failed> {
    let gpu = gpu(Tuning::default());
    for (bins, choices) in [((1 << 31) + 1, 1), ((1 << 31) + 1, 3), (1000, 2), (1024, 5), (3, 1), (64, 1), (1, 2)] {
        let packing = Packing::new(bins, choices);
        let draws = Draws::new(0x9876_5432_10FE_DCBA, 77, 0xABCD_8765_4321);
        let expected: Vec<u32> = (0..5000)
            .map(|ball| {
                let mut first = None;
                packing.indices(&draws, Domain::Choices, ball, |bin| {
                    first.get_or_insert(bin);
                });
                first.expect("a ball has a choice")
            })
            .collect();
        for multiply in Multiply::ALL {
            if gpu.first_choices(&packing, &draws, 5000, multiply)? != expected {
                return Err(format!("{multiply:?}, n = {bins}, d = {choices}").into());
            }
        }
    }
    Ok(())
}

type Mutate = fn(&str) -> String;

/// A test of the tests: each of these mistakes makes the comparison fail.
fn planted_errors_are_found() -> Result<(), Failed> {
    let case = Case::new(1000, 2, 25, 3);
    let expected = reference(&case);
    let mutants: [(&str, Mutate); 4] = [
        ("the last of equal loads wins", |s| replace(s, "if (load < least)", "if (load <= least)")),
        ("the Philox multipliers are swapped", |s| {
            let (a, b) = ("multiply(PHILOX_M0, c.x)", "multiply(PHILOX_M1, c.z)");
            replace(&replace(s, a, "multiply(PHILOX_M1, c.x)"), b, "multiply(PHILOX_M0, c.z)")
        }),
        // What a missing barrier does: the joins of the running round show through.
        ("the choice sees the joins of its own round", |s| {
            replace(s, "return cell(bin) & 0xffffu;", "return (cell(bin) & 0xffffu) + (cell(bin) >> 16u);")
        }),
        ("max loads are counted for the wrong replica", |s| {
            replace(s, "peaks[slot * LEVELS + served", "peaks[(slot / 2u) * LEVELS + served")
        }),
    ];
    let deletions: [(&str, Mutate); 2] = [
        ("deletions see the joins", |s| {
            replace(s, "load - min(load, 1u) + joined", "load + joined - min(load + joined, 1u)")
        }),
        ("full bins give two balls", |s| {
            replace(s, "load - min(load, 1u) + joined", "load - min(load, 1u + load / 9u) + joined")
        }),
    ];
    let leaky = mutants.map(|(name, mutate)| (&case, &expected, name, mutate));
    let repeated = Case::of(ProcessSpec::Repeated(repeated::Parameters { n: 1000, start: Start::OneBin(1000) }), 25, 3);
    let tetris =
        Case::of(ProcessSpec::Tetris(tetris::Parameters { n: 1000, lambda: 0.75, start: Start::Each(9) }), 25, 3);
    let (of_repeated, of_tetris) = (reference(&repeated), reference(&tetris));
    let of_repeated = deletions.map(|(name, mutate)| (&repeated, &of_repeated, name, mutate));
    let of_tetris = deletions.map(|(name, mutate)| (&tetris, &of_tetris, name, mutate));
    let waiting: [(&str, Mutate); 3] = [
        ("a bin takes a ball too many", |s| replace(s, "const PLACES = 2u;", "const PLACES = 3u;")),
        ("waiting times forget the pool", |s| replace(s, "count_wait(age + place)", "count_wait(place)")),
        ("the pool counts as load", |s| replace(s, "let elsewhere = balls_elsewhere();", "let elsewhere = 0u;")),
    ];
    let pool = capped::Parameters { n: 1000, start: Start::Each(5), ..Default::default() };
    let pool = Case::of(ProcessSpec::Capped(pool), 25, 3);
    let of_pool = reference(&pool);
    let of_pool = waiting.map(|(name, mutate)| (&pool, &of_pool, name, mutate));
    for (case, expected, name, mutate) in leaky.into_iter().chain(of_repeated).chain(of_tetris).chain(of_pool) {
        for layout in layouts_of(case) {
            let tuning = Tuning { layout: Some(layout), mutate: Some(mutate), ..Tuning::default() };
            if compare(case, &case.run(&mut gpu(tuning)), expected).is_ok() {
                return Err(format!("{}: not found in the layout {layout:?}: {name}", case.process.name()).into());
            }
        }
    }
    Ok(())
}

fn replace(source: &str, from: &str, to: &str) -> String {
    assert_eq!(source.matches(from).count(), 1, "'{from}' occurs once in the shader");
    source.replace(from, to)
}
