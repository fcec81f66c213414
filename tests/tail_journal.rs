//! Journals of tails: no finished island is lost or counted twice, nothing damaged is believed, and how a run was divided
//! does not show.

#![allow(clippy::print_stdout, reason = "counts of flips belong to a test's output")]

#[path = "common/memory.rs"]
mod memory;

use leakybins::backend::{Control, StreamKind};
use leakybins::journal::{Contents, Entry, Journal, JournalError, Merged, Subject, merge};
use leakybins::process::ProcessSpec;
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::process::repeated;
use leakybins::process::start::Start;
use leakybins::profile::PROFILE_STREAM_VERSION;
use leakybins::report::{Format, Render};
use leakybins::run::Shard;
use leakybins::stats::interval::Confidence;
use leakybins::tail::TAIL_VERSION;
use leakybins::tail::report::Report;
use leakybins::tail::{Doubt, Findings, Header, Method, Outcome, Question, Reason, Seen, Share, Spec, TailError};
use leakybins::tail::{replay, run, run_journaled, verify};
use memory::Memory;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use std::time::Duration;

/// Three bins, four levels, 40 islands of a few milliseconds.
fn spec() -> Spec {
    let parameters = Parameters { n: 3, lambda: 0.75, d: 2, arrivals: Arrivals::Binomial, ..Parameters::default() };
    Spec {
        question: Question::Stationary,
        states: StreamKind::Profile,
        process: ProcessSpec::Leaky(parameters),
        seed: 7,
        levels: vec![1, 3, 5, 8],
        confidence: confidence(0.95),
        rel_err: None,
        max_islands: 40,
        max_time: None,
    }
}

fn confidence(level: f64) -> Confidence {
    Confidence::new(level).expect("a confidence")
}

/// Runs a shard of `spec` with its journal on `medium`.
fn journaled(spec: &Spec, medium: &Memory, shard: Shard) -> Result<Outcome, TailError> {
    let mut journal = Journal::on("memory", Box::new(medium.clone()))?;
    run_journaled(spec, &Control::default(), (&mut journal, shard))
}

/// The journal of the whole of `spec`.
fn whole(spec: &Spec) -> Vec<u8> {
    let medium = Memory::default();
    journaled(spec, &medium, Shard::WHOLE).expect("a valid run");
    medium.held()
}

/// The journal of the whole of [`spec`].
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| whole(&spec()));

fn read(bytes: &[u8]) -> Result<Contents<Header>, JournalError> {
    Contents::read_from("memory", &mut &*bytes)
}

fn json(spec: &Spec, outcome: &Outcome) -> String {
    String::from_utf8(Report::new(spec, outcome).render(Format::Json).expect("a report")).expect("UTF-8")
}

fn replayed(contents: &Contents<Header>) -> String {
    let spec = contents.header().spec();
    json(spec, &replay(contents, spec.confidence).expect("a journal"))
}

/// The report that every complete journal of [`spec`] has to give.
static EXPECTED: LazyLock<String> = LazyLock::new(|| replayed(&read(&WHOLE).expect("a journal")));

/// A journal of `spec` whose entries are made of those of its run.
fn made(spec: &Spec, findings: &Findings, entries: impl IntoIterator<Item = Entry<Share>>) -> Vec<u8> {
    let medium = Memory::default();
    let mut journal = Journal::on("memory", Box::new(medium.clone())).expect("empty");
    journal.begin(Header::new(spec, findings)).expect("room");
    entries.into_iter().for_each(|entry| journal.append(entry).expect("room"));
    medium.held()
}

fn entries() -> Vec<Entry<Share>> {
    read(&WHOLE).expect("a journal").entries().cloned().collect()
}

fn findings() -> Findings {
    read(&WHOLE).expect("a journal").header().findings().clone()
}

#[test]
fn a_journal_gives_the_result_of_a_plain_run() {
    let plain = run(&spec(), &Control::default()).expect("a valid run");
    assert!(plain.elapsed.is_some() && !plain.stages.is_empty());
    let outcome = journaled(&spec(), &Memory::default(), Shard::WHOLE).expect("a valid run");
    assert_eq!(outcome, Outcome { elapsed: None, ..plain.clone() });
    let contents = read(&WHOLE).expect("a journal");
    assert!(contents.missing().is_empty() && !contents.is_torn() && contents.entries().len() == 40);
    let without: String =
        json(&spec(), &plain).split_inclusive('\n').filter(|line| !line.contains("\"elapsed_s\":")).collect();
    assert_eq!(without, *EXPECTED);
    assert_eq!(json(&spec(), &outcome), *EXPECTED);
}

#[test]
fn one_choice_has_journals_as_well() {
    let parameters = Parameters { n: 3, lambda: 0.75, d: 1, ..Parameters::default() };
    let one = Spec { process: ProcessSpec::Leaky(parameters), levels: vec![2, 6, 12, 20, 40], ..spec() };
    let plain = run(&one, &Control::default()).expect("a valid run");
    assert!(plain.levels.iter().any(|level| level.method == Method::OneBin));
    let shards = [0, 1].map(|index| {
        let medium = Memory::default();
        journaled(&one, &medium, Shard::new(index, 2).expect("a shard")).expect("a valid run");
        read(&medium.held()).expect("a journal")
    });
    let contents = merge(shards).expect("one run").expect("some").contents;
    assert_eq!(replayed(&contents), json(&one, &Outcome { elapsed: None, ..plain }));
    let verdict = verify(&contents, (1.0, 1), &Control::default()).expect("a verdict");
    assert_eq!((verdict.blocks, verdict.mismatches.len()), (40, 0));
}

#[test]
fn the_confidence_of_a_report_is_free() {
    let narrow = Spec { confidence: confidence(0.5), ..spec() };
    let plain = run(&narrow, &Control::default()).expect("a valid run");
    let replayed = replay(&read(&WHOLE).expect("a journal"), narrow.confidence).expect("a journal");
    assert_eq!(replayed.levels, plain.levels);
    // Nor does it keep a run from going on, where no rule is about it.
    let resumed = journaled(&narrow, &Memory::with(&WHOLE), Shard::WHOLE).expect("the same samples");
    assert_eq!(resumed.levels, plain.levels);
}

#[test]
fn a_disk_that_fills_at_any_byte_loses_no_finished_island() {
    let step = 1 + WHOLE.len() / 120;
    let mut failures = 0;
    for room in (0..WHOLE.len() + 4096).step_by(step) {
        let full = Memory { room: Some(room), ..Memory::default() };
        let ended = journaled(&spec(), &full, Shard::WHOLE);
        let written = full.held();
        match &ended {
            Ok(_) => break,
            Err(TailError::Journal(JournalError::Unwritable { .. } | JournalError::Broken(_))) => failures += 1,
            Err(other) => panic!("{room} bytes: {other}"),
        }
        let kept = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |i| i + 1);
        let lines = written.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(read(&written).map_or(0, |contents| contents.entries().len()), lines.saturating_sub(1));
        let again = full.again();
        let resumed = journaled(&spec(), &again, Shard::WHOLE).expect("the rest");
        assert_eq!(json(&spec(), &resumed), *EXPECTED, "{room} bytes");
        assert!(again.held().starts_with(&written[..kept]), "{room} bytes");
        assert_eq!(again.held().iter().filter(|byte| **byte == b'\n').count(), 41, "{room} bytes");
    }
    assert!(failures > 100, "{failures}");
}

#[test]
fn a_write_or_sync_that_fails_anywhere_ends_the_run_and_loses_no_island() {
    for syncs in 0..41 {
        let medium = Memory { syncs: Some(syncs), ..Memory::default() };
        let ended = journaled(&spec(), &medium, Shard::WHOLE);
        let is_unwritable =
            matches!(ended, Err(TailError::Journal(JournalError::Unwritable { .. } | JournalError::Broken(_))));
        assert!(is_unwritable, "{syncs}: {ended:?}");
        let again = medium.again();
        let resumed = journaled(&spec(), &again, Shard::WHOLE).expect("the rest");
        assert_eq!(json(&spec(), &resumed), *EXPECTED, "{syncs} syncs");
        // Each island once: the header and forty.
        assert_eq!(again.held().iter().filter(|byte| **byte == b'\n').count(), 41, "{syncs} syncs");
    }
}

#[test]
fn a_journal_cut_at_any_line_goes_on_to_the_same_report() {
    let ends: Vec<usize> = (0..WHOLE.len()).filter(|&i| WHOLE[i] == b'\n').map(|i| i + 1).collect();
    assert_eq!(ends.len(), 41);
    for (lines, end) in ends.iter().enumerate() {
        // Whole lines, then half of the next.
        for length in [*end, end + 30] {
            let length = length.min(WHOLE.len());
            let medium = Memory::with(&WHOLE[..length]);
            let outcome = journaled(&spec(), &medium, Shard::WHOLE).expect("a run that goes on");
            assert_eq!(json(&spec(), &outcome), *EXPECTED, "{length} bytes");
            assert!(medium.held().starts_with(&WHOLE[..*end]), "{length} bytes");
            let contents = read(&medium.held()).expect("a journal");
            assert_eq!((contents.entries().len(), contents.is_torn()), (40, false));
            assert_eq!(medium.held().iter().filter(|byte| **byte == b'\n').count(), 41, "after {lines} lines");
        }
    }
}

#[test]
fn a_journal_cut_anywhere_keeps_its_whole_lines() {
    let all = entries();
    for length in 0..WHOLE.len() {
        let cut = &WHOLE[..length];
        let lines = cut.iter().filter(|byte| **byte == b'\n').count();
        match read(cut) {
            Ok(contents) => {
                assert_eq!(contents.is_torn(), cut.last() != Some(&b'\n'), "{length} bytes");
                assert_eq!(contents.entries().len(), lines - 1, "{length} bytes");
                assert!(contents.entries().all(|entry| all.contains(entry)), "{length} bytes");
            }
            Err(JournalError::NoJournal { .. }) => assert_eq!(lines, 0, "{length} bytes"),
            Err(other) => panic!("{length} bytes: {other}"),
        }
    }
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    // The header and three islands.
    let end = (0..WHOLE.len()).filter(|&i| WHOLE[i] == b'\n').nth(3).expect("four lines") + 1;
    let bytes = &WHOLE[..end];
    let truth: Vec<_> = read(bytes).expect("a journal").lines().map(str::to_owned).collect();
    let (mut found, mut harmless) = (0, 0);
    for i in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[i] ^= 1 << bit;
            match read(&flipped) {
                Err(JournalError::Damaged { line, .. }) => {
                    let expected = bytes[..i].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
                    assert_eq!(line, expected, "byte {i}, bit {bit}");
                    found += 1;
                }
                Err(JournalError::NoJournal { .. }) => found += 1,
                Err(other) => panic!("byte {i}, bit {bit}: {other}"),
                Ok(contents) => {
                    // The last line, which looks torn.
                    assert!(contents.is_torn(), "byte {i}, bit {bit}");
                    assert_eq!(contents.lines().filter(|line| truth.iter().any(|t| t == line)).count(), 3);
                    harmless += 1;
                }
            }
        }
    }
    println!("{found} flips found, {harmless} harmless");
    assert!(harmless <= 20 && found + harmless == 8 * bytes.len());
}

#[test]
fn an_island_written_twice_is_counted_once() {
    let lines: Vec<&str> = std::str::from_utf8(&WHOLE).expect("UTF-8").split_inclusive('\n').collect();
    let twice = [&lines[..], &lines[5..20]].concat().concat();
    assert_eq!(replayed(&read(twice.as_bytes()).expect("a journal")), *EXPECTED);
    let mut wrong = entries();
    wrong[3].tally.rounds += 1;
    let contradicting = [String::from_utf8(made(&spec(), &findings(), entries())).expect("UTF-8"), {
        let text = String::from_utf8(made(&spec(), &findings(), wrong)).expect("UTF-8");
        text.split_inclusive('\n').nth(4).expect("a line").to_owned()
    }];
    let error = read(contradicting.concat().as_bytes()).expect_err("a contradiction").to_string();
    assert!(error.contains("have different tallies of islands 3..4"), "{error}");
}

#[test]
fn another_run_is_refused_with_what_differs() {
    let medium = Memory::with(&WHOLE);
    let refused = |other: Spec| {
        let before = medium.held();
        let error = journaled(&other, &medium, Shard::WHOLE).expect_err("another run").to_string();
        assert_eq!(medium.held(), before);
        error
    };
    for (other, differs) in [
        (Spec { seed: 8, ..spec() }, "(seed: 7, now 8)"),
        (Spec { max_islands: 64, ..spec() }, "(max_islands: 40, now 64)"),
        (Spec { levels: vec![1, 3], ..spec() }, "(levels: [1,3,5,8], now [1,3])"),
        (Spec { max_time: Some(9.0), ..spec() }, "(max_time: none, now 9.0)"),
        (Spec { rel_err: Some(0.5), ..spec() }, "(confidence: none, now 0.95; rel_err: none, now 0.5)"),
    ] {
        let error = refused(other);
        assert!(error.contains("is of another run") && error.contains(differs), "{error}");
    }
    // A start that has no effect makes no other run.
    let started = Spec { process: spec().process.with_start(Start::MeanField), ..spec() };
    assert_eq!(json(&spec(), &journaled(&started, &medium, Shard::WHOLE).expect("the same run")), *EXPECTED);
}

#[test]
fn the_id_is_the_digest_of_all_that_changes_the_samples() {
    let none = Findings { stages: Vec::new(), methods: Vec::new(), neglects_pairs: Vec::new(), start_sha256: None };
    let lines = format!(
        "levels=[1,3,5,8]\nmax_islands=40\nparameters.arrivals=\"binomial\"\nparameters.d=2\nparameters.lambda=0.75\n\
         parameters.n=3\nparameters.start=\"empty\"\nprocess=\"leaky\"\nprofile_stream_version={PROFILE_STREAM_VERSION}\n\
         question=\"stationary\"\nseed=7\nstates=\"profile\"\ntail_version={TAIL_VERSION}\n"
    );
    let digest: String = Sha256::digest(lines).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(Header::new(&spec(), &none).id(), digest);
    assert_eq!(Header::new(&spec(), &findings()).id(), digest);
    assert_eq!(Header::new(&Spec { confidence: confidence(0.5), ..spec() }, &none).id(), digest);
    let ruled = |level| Header::new(&Spec { rel_err: Some(0.5), confidence: confidence(level), ..spec() }, &none).id();
    assert_ne!(ruled(0.5), ruled(0.95));
    // Of the start of a closed process the number of balls counts.
    let of_balls = |start| {
        let process = ProcessSpec::Repeated(repeated::Parameters { n: 4, start });
        Header::new(&Spec { process, ..spec() }, &none).id()
    };
    assert_eq!(of_balls(Start::OneBin(12)), of_balls(Start::Random(12)));
    assert_ne!(of_balls(Start::OneBin(12)), of_balls(Start::OneBin(13)));
}

#[test]
fn a_rule_ends_a_resumed_run_where_it_ends_a_plain_one() {
    let ruled = Spec { rel_err: Some(0.05), max_islands: 4000, ..spec() };
    let plain = run(&ruled, &Control::default()).expect("a valid run");
    println!("{} islands", plain.islands);
    assert!(plain.reason == Reason::RelErr && (33..4000).contains(&plain.islands), "{}", plain.islands);
    let (expected, bytes) = (json(&ruled, &Outcome { elapsed: None, ..plain.clone() }), whole(&ruled));
    assert_eq!(replayed(&read(&bytes).expect("a journal")), expected);
    for line in [0, 1, 20, 31, 32, 33, 40] {
        let end = (0..bytes.len()).filter(|&i| bytes[i] == b'\n').nth(line).expect("a line") + 1;
        let medium = Memory::with(&bytes[..end]);
        let resumed = journaled(&ruled, &medium, Shard::WHOLE).expect("the rest");
        assert_eq!(json(&ruled, &resumed), expected, "after line {line}");
        assert_eq!(replayed(&read(&medium.held()).expect("a journal")), expected, "after line {line}");
    }
    // Islands beyond the end are not counted.
    let longer = read(&whole(&Spec { rel_err: None, max_islands: 2 * plain.islands, ..ruled.clone() }));
    let longer = longer.expect("a journal");
    let beyond = made(&ruled, longer.header().findings(), longer.entries().cloned());
    assert_eq!(replayed(&read(&beyond).expect("a journal")), expected);
}

#[test]
fn the_time_of_all_sittings_counts_for_a_time_limit() {
    let limited = Spec { max_time: Some(1000.0), max_islands: 64, ..spec() };
    let slow = |(i, entry): (usize, Entry<Share>)| Entry {
        elapsed: Duration::from_secs(if i == 0 { 900 } else { 0 }),
        ..entry
    };
    let medium = Memory::with(&made(&limited, &findings(), entries().into_iter().take(5).enumerate().map(slow)));
    let outcome = journaled(&limited, &medium, Shard::WHOLE).expect("a run without time");
    assert_eq!((outcome.reason, outcome.islands), (Reason::MaxTime, 32));
}

#[test]
fn shards_merged_are_the_run() {
    for count in [1, 2, 3, 7, 50] {
        let shards = (0..count).map(|index| {
            let (medium, shard) = (Memory::default(), Shard::new(index, count).expect("a shard"));
            let outcome = journaled(&spec(), &medium, shard).expect("a valid run");
            let owned = (0..40).filter(|&island| shard.owns(island)).count() as u64;
            assert_eq!(outcome.islands, owned);
            assert_eq!(outcome.reason == Reason::Incomplete, count > 1);
            // Too few for an interval, which says so.
            let is_doubted =
                |doubts: &[Doubt]| doubts.contains(&Doubt::FewIslands) || doubts.contains(&Doubt::NeverReached);
            assert_eq!(outcome.levels.iter().all(|level| is_doubted(&level.doubts)), owned < 32);
            read(&medium.held()).expect("a journal")
        });
        let mut shards: Vec<_> = shards.collect();
        shards.reverse();
        let Merged { contents, repeated } = merge(shards).expect("one run").expect("some");
        assert_eq!((repeated, contents.missing().len()), (0, 0));
        assert_eq!(replayed(&contents), *EXPECTED, "{count} shards");
    }
}

#[test]
fn an_incomplete_run_says_what_is_missing() {
    let all = entries();
    let contents =
        read(&made(&spec(), &findings(), [all[0].clone(), all[1].clone(), all[5].clone()])).expect("a journal");
    assert_eq!(contents.missing(), [2..5, 6..40]);
    let outcome = replay(&contents, spec().confidence).expect("a journal");
    assert_eq!((outcome.reason, outcome.islands), (Reason::Incomplete, 3));
    let warnings = Report::new(&spec(), &outcome).warnings();
    assert!(warnings[0].contains("the run is incomplete: this is the result of 3 of 40 islands"), "{warnings:?}");
    let none =
        replay(&read(&made(&spec(), &findings(), [])).expect("a journal"), spec().confidence).expect("a journal");
    assert!(none.levels.iter().all(|level| level.probability == 0.0 && level.doubts == [Doubt::NeverReached]));
}

#[test]
fn contradicting_journals_do_not_merge() {
    let right = read(&WHOLE).expect("a journal");
    let mut wrong = entries();
    wrong[9].tally.levels[2].ancestors += 1;
    let wrong = read(&made(&spec(), &findings(), wrong)).expect("a journal that looks right");
    let error = merge([right.clone(), wrong]).expect_err("a contradiction").to_string();
    assert!(error.contains("different tallies of islands 9..10"), "{error}");
    let other = read(&whole(&Spec { seed: 8, ..spec() })).expect("a journal");
    let error = merge([right.clone(), other]).expect_err("two runs").to_string();
    assert!(error.contains("seed: 8, now 7"), "{error}");
    let mut other = findings();
    other.stages[0].1 += 1;
    let staged = made(&spec(), &other, []);
    let error = merge([right, read(&staged).expect("a journal")]).expect_err("two pilots").to_string();
    assert!(error.contains("computed wrongly") && error.contains("(stages: [["), "{error}");
    // Nor does a run go on with stages that its pilot does not find.
    let error = journaled(&spec(), &Memory::with(&staged), Shard::WHOLE).expect_err("other stages");
    assert!(matches!(error, TailError::Journal(JournalError::Computed { .. })), "{error}");
}

#[test]
fn verification_finds_one_wrong_bit() {
    let check = |bytes: &[u8], fraction| {
        let contents = read(bytes).expect("a journal that looks right");
        verify(&contents, (fraction, 1), &Control::default()).expect("a verdict")
    };
    let right = check(&WHOLE, 1.0);
    assert_eq!((right.blocks, right.mismatches.len()), (40, 0));
    assert_eq!(check(&WHOLE, 0.01).blocks, 1);
    type Change = fn(&mut Share);
    let changes: [(&str, Change); 5] = [
        ("rounds", |share| share.rounds ^= 1),
        ("levels.1.probability", |share| flip(&mut share.levels[1].probability)),
        ("levels.2.concentration", |share| flip(&mut share.levels[2].concentration)),
        ("levels.3.largest", |share| flip(&mut share.levels[3].largest)),
        ("levels.0.ancestors", |share| share.levels[0].ancestors ^= 1),
    ];
    for (field, change) in changes {
        let mut wrong = entries();
        let at = wrong.iter().position(|entry| entry.tally.levels.iter().all(|seen| seen.ancestors > 1));
        let at = at.expect("an island that reached all levels");
        change(&mut wrong[at].tally);
        let verdict = check(&made(&spec(), &findings(), wrong), 1.0);
        assert_eq!((verdict.blocks, verdict.mismatches.len()), (40, 1), "{field}");
        let mismatch = &verdict.mismatches[0];
        assert_eq!(mismatch.block, at as u64..at as u64 + 1, "{field}");
        let fields: Vec<_> = mismatch.differences.iter().map(|difference| difference.field.as_str()).collect();
        assert_eq!(fields, [field]);
    }
    let mut other = findings();
    other.stages[0].1 += 1;
    let verdict = check(&made(&spec(), &other, entries()), 1.0);
    assert_eq!((verdict.mismatches.len(), verdict.mismatches[0].differences[0].field.as_str()), (1, "stages"));
}

/// The last bit of its fraction.
fn flip(x: &mut f64) {
    *x = f64::from_bits(x.to_bits() ^ 1);
}

#[test]
fn shares_that_cannot_be_are_damage() {
    let changes: [fn(&mut Share); 7] = [
        |share| share.rounds = 0,
        |share| share.levels.truncate(3),
        |share| share.levels.push(Seen::default()),
        |share| share.levels[0].concentration = -0.5,
        |share| share.levels[0].probability = f64::NAN,
        |share| share.levels[0].largest = f64::INFINITY,
        |share| share.levels[0].ancestors = 0,
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut wrong = entries();
        change(&mut wrong[1].tally);
        let error = read(&made(&spec(), &findings(), wrong)).expect_err("an absurd share").to_string();
        assert!(error.contains("is damaged in line 3 ("), "{i}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_read_back_to_the_bit(bits in prop::collection::vec(any::<u64>(), 9), rounds in any::<u64>()) {
        let finite = |bits: u64| Some(f64::from_bits(bits)).filter(|x| x.is_finite()).unwrap_or(f64::MIN_POSITIVE);
        let mut values: Vec<f64> = bits.into_iter().map(finite).collect();
        values.extend([0.0, -0.0, f64::from_bits(1), f64::MAX, 0.1, 1.0 / 3.0]);
        let seen = |x: &[f64]| Seen { probability: x[0], concentration: x[1], largest: x[2], ancestors: rounds };
        let share = Share { rounds, levels: values.chunks(3).map(seen).collect() };
        let text = serde_json::to_string(&share).expect("plain values");
        let again: Share = serde_json::from_str(&text).expect("a share");
        let bits = |share: &Share| -> Vec<u64> {
            share.levels.iter().flat_map(|s| [s.probability, s.concentration, s.largest].map(f64::to_bits)).collect()
        };
        prop_assert_eq!(bits(&again), bits(&share));
        prop_assert_eq!((again.rounds, again.levels[0].ancestors), (rounds, rounds));
    }

    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        parts in prop::collection::vec(prop::collection::vec((0usize..40, 0u64..3), 0..30), 3..4),
    ) {
        let all = |parts: Vec<Contents<Header>>| merge(parts).expect("one run").expect("some").contents;
        let lines = |contents: &Contents<Header>| contents.lines().collect::<String>();
        let truth = entries();
        let part = |islands: &Vec<(usize, u64)>| {
            let timed = |&(island, us): &(usize, u64)| Entry { elapsed: Duration::from_micros(us), ..truth[island].clone() };
            // With whatever confidence they are begun: no sample depends on it.
            let spec = Spec { confidence: confidence(0.5 + islands.len() as f64 / 64.0), ..spec() };
            read(&made(&spec, &findings(), islands.iter().map(timed))).expect("a journal")
        };
        let [a, b, c]: [_; 3] = parts.iter().map(part).collect::<Vec<_>>().try_into().expect("three");
        let abc = lines(&all(vec![a.clone(), b.clone(), c.clone()]));
        prop_assert_eq!(&lines(&all(vec![c.clone(), b.clone(), a.clone()])), &abc);
        prop_assert_eq!(&lines(&all(vec![all(vec![a.clone(), b.clone()]), c.clone()])), &abc);
        prop_assert_eq!(&lines(&all(vec![a.clone(), all(vec![b.clone(), c.clone()])])), &abc);
        prop_assert_eq!(&lines(&all(vec![a.clone(), a, b, c.clone(), c])), &abc);
        let merged = read(abc.as_bytes()).expect("a journal");
        prop_assert_eq!(&lines(&all(vec![merged.clone(), merged])), &abc);
        let distinct: std::collections::BTreeSet<usize> = parts.iter().flatten().map(|(island, _)| *island).collect();
        prop_assert_eq!(abc.lines().count(), 1 + distinct.len());
    }
}

/// The command.
mod command {
    use super::*;
    use assert_cmd::Command;
    use predicates::prelude::*;
    use predicates::str::{contains, diff, is_empty};
    use std::fs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_leakybins");
    const TAIL: &str = "tail leaky --n 3 --lambda 0.75 --levels 3,5,8 --max-islands 40 --threads 2 --seed 3";
    const RUN: &str = "run leaky --n 4 --rounds 4 --burn-in 1 --every 2 --replicas 40 --seed 3 --backend cpu";

    /// A folder with paths in it.
    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn bytes(&self, name: &str) -> Vec<u8> {
            fs::read(self.path(name)).expect("a file")
        }

        /// `arguments`, in which `@NAME` is a file of the folder.
        fn words(&self, arguments: &str) -> Vec<String> {
            let text = arguments.replace('@', &format!("{}/", self.0.path().display()));
            text.split_whitespace().map(str::to_owned).collect()
        }

        fn leakybins(&self, arguments: &str) -> Command {
            let mut command = Command::new(PROGRAM);
            command.args(self.words(arguments));
            command
        }

        /// Standard output of a command that succeeds.
        fn output(&self, arguments: &str) -> String {
            let output = self.leakybins(arguments).assert().success().get_output().stdout.clone();
            String::from_utf8(output).expect("UTF-8")
        }
    }

    #[test]
    fn a_finished_journal_is_reported_at_once_and_keeps_its_seed() {
        let folder = Folder::new();
        let tail = format!("{} --format json --out @a.jsonl", TAIL.replace(" --seed 3", ""));
        let first = folder.output(&tail);
        let bytes = folder.bytes("a.jsonl");
        let again = folder.leakybins(&tail).assert().success();
        again
            .stdout(diff(first.clone()))
            .stderr(contains("(of the journal)").and(contains("40 of 40 islands are there")))
            .stderr(contains("islands: 40 by profile; "));
        assert_eq!(folder.bytes("a.jsonl"), bytes);
        for form in ["table", "json", "csv"] {
            let shown =
                folder.output(&format!("{tail} --format {form} --plot @a.svg").replacen("--format json ", "", 1));
            assert_eq!(folder.output(&format!("report @a.jsonl --format {form} --plot @b.svg")), shown);
            assert_eq!(folder.bytes("a.svg"), folder.bytes("b.svg"));
        }
        assert_eq!(folder.output("report @a.jsonl --format json"), first);
        assert!(folder.output("report @a.jsonl --format json --confidence 0.9").contains("\"confidence\": 0.9,"));
        let seed = Contents::<Header>::read(&folder.path("a.jsonl")).expect("a journal").header().seed();
        assert!(first.contains(&format!("\"seed\": {seed},")));
        let spec = folder.output(&format!("{tail} --print-spec"));
        assert!(spec.contains(&format!("seed = {seed}\n")) && spec.contains("a.jsonl"), "{spec}");
        fs::write(folder.path("spec.toml"), spec).expect("a file");
        assert_eq!(folder.output("tail --spec @spec.toml"), first);
        assert_eq!(folder.bytes("a.jsonl"), bytes);
    }

    #[test]
    fn a_torn_line_is_dropped_and_damage_is_not() {
        let folder = Folder::new();
        let expected = folder.output(&format!("{TAIL} --out @a.jsonl"));
        let bytes = folder.bytes("a.jsonl");
        fs::write(folder.path("a.jsonl"), &bytes[..bytes.len() - 9]).expect("a file");
        let torn = contains("the last line of");
        folder.leakybins("report @a.jsonl").assert().success().stderr(torn.clone().and(contains("39 of 40 islands")));
        let again = folder.leakybins(&format!("{TAIL} --out @a.jsonl")).assert().success();
        again.stdout(diff(expected)).stderr(torn.and(contains("39 of 40 islands are there")));
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        fs::write(folder.path("a.jsonl"), &damaged).expect("a file");
        for command in [&format!("{TAIL} --out"), "report", "verify", "merge --check"] {
            let refused = folder.leakybins(&format!("{command} @a.jsonl")).assert().code(5);
            refused.stdout("").stderr(contains("damaged in line"));
        }
        assert_eq!(folder.bytes("a.jsonl"), damaged);
    }

    #[test]
    fn what_cannot_go_on_is_refused_and_touched_not() {
        let folder = Folder::new();
        folder.output(&format!("{TAIL} --out @t.jsonl"));
        folder.output(&format!("{RUN} --out @r.jsonl"));
        let before = (folder.bytes("t.jsonl"), folder.bytes("r.jsonl"));
        let tail = TAIL.replace(" --seed 3", "");
        for (arguments, reason) in [
            (format!("{tail} --seed 4 --out @t.jsonl"), "seed: 3, now 4"),
            (format!("{} --out @t.jsonl", TAIL.replace("0.75", "0.5")), "parameters.lambda: 0.75, now 0.5"),
            (format!("{TAIL} --out @r.jsonl"), "is a journal of `leakybins run`, not of `leakybins tail`"),
            (format!("{RUN} --out @t.jsonl"), "is a journal of `leakybins tail`, not of `leakybins run`"),
            (
                "merge @t.jsonl @r.jsonl --check".to_owned(),
                "r.jsonl is a journal of `leakybins run`, not of `leakybins tail`",
            ),
            (
                "merge @r.jsonl @t.jsonl --check".to_owned(),
                "t.jsonl is a journal of `leakybins tail`, not of `leakybins run`",
            ),
            ("merge @t.jsonl -o @r.jsonl".to_owned(), "is a journal of `leakybins run`"),
            (format!("{TAIL} --out @t.jsonl -o @t.jsonl"), "would be replaced by a result"),
            ("report @t.jsonl -o @t.jsonl".to_owned(), "would be replaced by a result"),
            (format!("{TAIL} --rel-err 0.1 --out @n.jsonl --shard 1/2"), "give --max-islands instead"),
            (format!("{TAIL} --max-time 9 --out @n.jsonl --shard 1/2"), "the first islands, and no shard has all"),
            (format!("{TAIL} --shard 1/2"), "add --out FILE"),
            (format!("{tail} --out @n.jsonl --shard 1/2"), "add --seed"),
            (format!("{TAIL} --out @n.jsonl --shard auto"), "JOB_COMPLETION_INDEX is not set"),
            ("report @t.jsonl --band simultaneous".to_owned(), "leave --band out"),
            ("verify @t.jsonl --backend cpu".to_owned(), "leave --backend out"),
        ] {
            folder.leakybins(&arguments).assert().code(2).stdout(is_empty()).stderr(contains(reason));
        }
        assert_eq!((folder.bytes("t.jsonl"), folder.bytes("r.jsonl")), before);
        let held = Journal::<Header>::open(&folder.path("t.jsonl")).expect("a journal");
        let locked = folder.leakybins(&format!("{TAIL} --out @t.jsonl")).assert().code(2);
        locked.stderr(contains("is being written by another process"));
        drop(held);
    }

    #[test]
    fn shards_of_several_processes_make_the_run() {
        let folder = Folder::new();
        folder.output(&format!("{TAIL} --out @whole.jsonl"));
        let kubernetes = [("JOB_COMPLETION_INDEX", "2"), ("JOB_COMPLETIONS", "3")];
        for (name, variables, shard) in
            [("a", &[][..], "1/3"), ("b", &[], "2/3"), ("c", &kubernetes, "auto"), ("d", &[], "50/50")]
        {
            let mut command = folder.leakybins(&format!("{TAIL} --out @{name}.jsonl --shard {shard}"));
            let said = command.envs(variables.iter().copied()).assert().success();
            said.stderr(contains(if name == "d" { "nothing to report" } else { "the run is incomplete" }));
        }
        let check = folder.leakybins("merge @a.jsonl @c.jsonl @d.jsonl --check").assert().code(3);
        check.stdout(predicates::str::starts_with("missing 1..2\nmissing 4..5\n"));
        let merged = folder.leakybins("merge @c.jsonl @a.jsonl @b.jsonl -o @all.jsonl --check").assert().code(0);
        merged.stdout("complete\n");
        folder.output("merge @all.jsonl @b.jsonl @a.jsonl -o @again.jsonl");
        assert_eq!(folder.bytes("all.jsonl"), folder.bytes("again.jsonl"));
        for form in ["table", "json", "csv"] {
            let report = |name| folder.output(&format!("report @{name}.jsonl --format {form} --plot @{name}.svg"));
            assert_eq!(report("all"), report("whole"));
            assert_eq!(folder.bytes("all.svg"), folder.bytes("whole.svg"));
        }
        folder.leakybins("report @d.jsonl").assert().code(2).stderr(contains("has no finished block yet"));
        // The merged journal is that of the run, which goes on with it.
        let again = folder.leakybins(&format!("{TAIL} --out @all.jsonl")).assert().success();
        again.stderr(contains("40 of 40 islands are there"));
    }

    #[test]
    fn verification_has_a_verdict() {
        let folder = Folder::new();
        folder.output(&format!("{TAIL} --out @a.jsonl"));
        let agreed = "40 of 40 islands computed again on profile agree; the journal has 40\n";
        folder.leakybins("verify @a.jsonl --fraction 1 --backend profile").assert().code(0).stdout(agreed);
        folder.leakybins("verify @a.jsonl --seed 1").assert().code(0).stdout(contains("1 of 1 islands"));
        let mut wrong = entries();
        wrong[3].tally.rounds += 1;
        let was = wrong[3].tally.rounds;
        fs::write(folder.path("w.jsonl"), made(&spec(), &findings(), wrong)).expect("a file");
        let found = folder.leakybins("verify @w.jsonl --fraction 1 --seed 1").assert().code(6);
        found.stdout(format!(
            "39 of 40 islands computed again on profile agree; the journal has 40\n\
             islands 3..4, by profile, adapter none, differ:\n  rounds: {was} in the journal, {} now\n",
            was - 1
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_keeps_the_finished_islands() {
        use std::process::{Command, Stdio};
        use std::time::Instant;
        let folder = Folder::new();
        // Islands of some tenths of a second, hours of them; and a pilot of minutes.
        let islands = "tail leaky --n 64 --lambda 0.9 --levels 8..20 --max-islands 1e6 --seed 3 --out @a.jsonl";
        let pilot = "tail leaky --n 1000 --lambda 0.9999 --levels 20 --max-islands 1e6 --seed 3 --out @b.jsonl";
        let done = |name: &str| Contents::<Header>::read(&folder.path(name)).map_or(0, |all| all.entries().len());
        for (run, signal, name, said_of) in [
            (islands, "TERM", "a.jsonl", "of 1000000 islands are in"),
            (islands, "INT", "a.jsonl", "of 1000000 islands are in"),
            (pilot, "TERM", "b.jsonl", "no island is begun; run the same command to continue"),
        ] {
            let child = Command::new(PROGRAM).args(folder.words(run)).stderr(Stdio::piped()).spawn();
            let child = child.expect("the program starts");
            let (before, patience) = (done(name), Instant::now());
            while name == "a.jsonl" && done(name) <= before && patience.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
            }
            if name == "b.jsonl" {
                std::thread::sleep(Duration::from_millis(300));
            }
            let kill = ["-s", signal, &child.id().to_string()].map(str::to_owned);
            assert!(Command::new("kill").args(kill).status().expect("kill runs").success());
            let begun = Instant::now();
            let output = child.wait_with_output().expect("a child of ours");
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            let said = String::from_utf8(output.stderr).expect("UTF-8");
            assert_eq!(output.status.code(), Some(75), "{said}");
            assert!(output.stdout.is_empty() && said.contains(said_of), "{said}");
            assert!(done(name) > before || name == "b.jsonl");
        }
    }
}
