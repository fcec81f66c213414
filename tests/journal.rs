//! Journals: nothing that was finished is lost, nothing damaged is believed, and how a run was divided does not show.

#![allow(clippy::print_stdout, reason = "counts of kills and times belong to a test's output")]

#[path = "common/memory.rs"]
mod memory;

use leakybins::backend::{Control, Host, Machine, Pool, StreamKind};
use leakybins::journal::{Contents, Entry, Header, Journal, JournalError, Merged, merge, verify};
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::report::{Format, Render, Report};
use leakybins::run::{Outcome, Reason, RunError, Schedule, Shard, Spec, Stopping, replay, run, run_journaled};
use leakybins::stats::estimate::Band;
use leakybins::stats::interval::Confidence;
use leakybins::stats::{Record, Tally};
use memory::Memory;
use proptest::prelude::*;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// 8 bins, 20 rounds, a look at 32, 45, 64 and 90 replicas, none of which ends it: five small blocks.
fn looked_at() -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n: 8, ..Parameters::default() });
    let schedule = Schedule { rounds: 20, burn_in: 5, every: 3, loads_every: 1, measure: Measure::Post };
    let never = Stopping { at: Some(1000), max_hits: Some(1), confidence: 0.95, ..Stopping::default() };
    Spec { process, seed: 7, replicas: 100, schedule, stopping: Some(never) }
}

/// Seven blocks without a rule.
fn long() -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n: 4, ..Parameters::default() });
    let schedule = Schedule { rounds: 4, burn_in: 1, every: 2, loads_every: 1, measure: Measure::Post };
    Spec { process, seed: 5, replicas: 100_000, schedule, stopping: None }
}

fn header(spec: &Spec) -> Header {
    Header::new(spec, &spec.process.build_for(StreamKind::Bins).expect("valid parameters"))
}

/// Runs a shard of `spec` with its journal on `medium`.
fn journaled(spec: &Spec, medium: &Memory, shard: Shard) -> Result<Outcome, RunError> {
    let mut journal = Journal::on("memory", Box::new(medium.clone()))?;
    journal.begin(header(spec))?;
    run_journaled(spec, &mut Pool::from(Host::cpu()), &Control::default(), (&mut journal, shard), None, &mut |_| ())
}

/// The journal of the whole of `spec`.
fn whole(spec: &Spec) -> Vec<u8> {
    let medium = Memory::default();
    journaled(spec, &medium, Shard::WHOLE).expect("a valid run");
    medium.held()
}

fn read(bytes: &[u8]) -> Result<Contents, JournalError> {
    Contents::read_from("memory", &mut &*bytes)
}

fn report(spec: &Spec, outcome: &Outcome, format: Format) -> String {
    let bins = spec.process.build().expect("valid parameters").bins();
    let confidence = Confidence::new(0.95).expect("a confidence");
    let report = Report::new(spec, bins.into(), outcome, confidence, Band::Pointwise);
    String::from_utf8(report.render(format).expect("a report")).expect("UTF-8")
}

fn json(spec: &Spec, outcome: &Outcome) -> String {
    report(spec, outcome, Format::Json)
}

fn plain(spec: &Spec) -> Outcome {
    run(spec, &mut Pool::from(Host::cpu()), &Control::default(), None, &mut |_| ()).expect("valid")
}

#[test]
fn a_journal_gives_the_result_of_a_plain_run() {
    for spec in [looked_at(), long()] {
        let (plain, medium) = (plain(&spec), Memory::default());
        let outcome = journaled(&spec, &medium, Shard::WHOLE).expect("a valid run");
        assert_eq!((&outcome.tally, outcome.reason), (&plain.tally, plain.reason));
        let contents = read(&medium.held()).expect("a journal");
        assert!(contents.missing().is_empty() && !contents.is_torn());
        let replayed = replay(&contents).expect("small sums");
        assert_eq!(json(&spec, &replayed), json(&spec, &outcome));
        assert_eq!(replayed.elapsed, contents.entries().map(|entry| entry.elapsed).sum());
        // Only what computed it is missing.
        let without: String = (json(&spec, &plain).lines())
            .filter(|line| {
                !["backend", "adapter", "elapsed_s"].iter().any(|name| line.contains(&format!("  \"{name}\":")))
            })
            .map(|line| line.to_owned() + "\n")
            .collect();
        assert_eq!(without, json(&spec, &outcome));
        assert!(!report(&spec, &outcome, Format::Table).contains("backend"));
    }
}

#[test]
fn a_disk_that_fills_at_any_byte_loses_no_finished_block() {
    let spec = Spec { replicas: 45, ..looked_at() };
    let expected = json(&spec, &journaled(&spec, &Memory::default(), Shard::WHOLE).expect("room"));
    let mut failures = 0;
    for room in 0.. {
        let full = Memory { room: Some(room), ..Memory::default() };
        let ended = journaled(&spec, &full, Shard::WHOLE);
        let written = full.held();
        match &ended {
            Ok(_) => break,
            Err(RunError::Journal(JournalError::Unwritable { .. })) => failures += 1,
            Err(other) => panic!("{room} bytes: {other}"),
        }
        let lines = written.iter().filter(|byte| **byte == b'\n').count();
        let again = full.again();
        let before = read(&written).map_or(0, |contents| contents.entries().len());
        assert_eq!(before, lines.saturating_sub(1), "{room} bytes");
        let resumed = journaled(&spec, &again, Shard::WHOLE).expect("the rest");
        assert_eq!(json(&spec, &resumed), expected, "{room} bytes");
        assert!(again.held().starts_with(&written[..written.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1)]));
    }
    assert!(failures > 1900, "{failures}");
}

#[test]
fn a_sync_that_fails_ends_the_run() {
    let spec = looked_at();
    for syncs in 0..6 {
        let medium = Memory { syncs: Some(syncs), ..Memory::default() };
        let ended = journaled(&spec, &medium, Shard::WHOLE);
        assert!(matches!(ended, Err(RunError::Journal(JournalError::Unwritable { .. }))), "{syncs}: {ended:?}");
        let resumed = journaled(&spec, &medium.again(), Shard::WHOLE).expect("the rest");
        assert_eq!(resumed.tally, plain(&spec).tally);
    }
}

#[test]
fn nothing_is_added_after_a_write_that_failed() {
    let spec = looked_at();
    let entry = read(&whole(&spec)).expect("a journal").entries().next().expect("a block").clone();
    let mut journal = Journal::on("memory", Box::new(Memory { syncs: Some(1), ..Memory::default() })).expect("empty");
    journal.begin(header(&spec)).expect("the first sync");
    assert!(matches!(journal.append(entry.clone()), Err(JournalError::Unwritable { .. })));
    assert!(matches!(journal.append(entry), Err(JournalError::Broken(_))));
}

#[test]
fn a_journal_cut_anywhere_goes_on() {
    let spec = Spec { replicas: 64, ..looked_at() };
    let (bytes, expected) = (whole(&spec), plain(&spec).tally);
    for length in 0..bytes.len() {
        let medium = Memory::with(&bytes[..length]);
        let outcome = journaled(&spec, &medium, Shard::WHOLE).expect("a run that goes on");
        assert_eq!(outcome.tally, expected, "{length} bytes");
        let cut = bytes[..length].iter().rposition(|byte| *byte == b'\n').map_or(0, |i| i + 1);
        assert!(medium.held().starts_with(&bytes[..cut]), "{length} bytes");
        // Pages that did not reach the disk, in the middle of the last line.
        let mut holed = bytes[..length].to_vec();
        holed[cut..].iter_mut().skip(1).for_each(|byte| *byte = 0);
        let is_begun = cut > 0 || length < 2;
        assert_eq!(journaled(&spec, &Memory::with(&holed), Shard::WHOLE).is_ok(), is_begun, "{length} bytes");
    }
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let spec = Spec { replicas: 64, ..looked_at() };
    let bytes = whole(&spec);
    let truth: Vec<Entry> = read(&bytes).expect("a journal").entries().cloned().collect();
    let (mut found, mut harmless) = (0, 0);
    for i in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
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
                    assert!(contents.entries().eq(&truth[..truth.len() - 1]), "byte {i}, bit {bit}");
                    harmless += 1;
                }
            }
        }
    }
    println!("{found} flips found, {harmless} harmless");
    assert!(harmless <= 20 && found + harmless == 8 * bytes.len());
}

#[test]
fn a_damaged_line_is_named() {
    let spec = looked_at();
    let text = String::from_utf8(whole(&spec)).expect("UTF-8");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let error = |lines: &[&str]| read(lines.concat().as_bytes()).expect_err("damage").to_string();
    let other = String::from_utf8(whole(&Spec { seed: 8, ..spec.clone() })).expect("UTF-8");
    let foreign = other.split_inclusive('\n').nth(2).expect("a line");
    let damaged = lines[2].replace("\"first\":32", "\"first\":33");
    for (lines, line, reason) in [
        (vec![lines[0], lines[1], foreign], 3, "checksum"),
        (vec![lines[0], &damaged, lines[1]], 2, "checksum"),
        (vec![lines[0], lines[0], lines[1]], 2, "checksum"),
        (vec![lines[0], "\n", lines[1]], 2, "checksum"),
        (vec![lines[0], lines[1].trim_end(), lines[2]], 2, "checksum"),
    ] {
        let error = error(&lines);
        assert!(error.contains(&format!("line {line} (")) && error.contains(reason), "{error}");
    }
    assert!(error(&[lines[1], lines[0]]).contains("cannot be a journal"));
    assert!(error(&[]).contains("cannot be a journal"));
    // A line twice is no damage, as `cat` and `sort -u` make it.
    assert_eq!(read([lines[0], lines[1], lines[1]].concat().as_bytes()).expect("a journal").entries().len(), 1);
}

/// A block that was computed wrongly, with a checksum that is right.
fn with_wrong_tally(spec: &Spec, wrong: usize, change: impl Fn(&mut Tally)) -> Vec<u8> {
    let medium = Memory::default();
    let mut journal = Journal::on("memory", Box::new(medium.clone())).expect("empty");
    journal.begin(header(spec)).expect("room");
    for (i, entry) in read(&whole(spec)).expect("a journal").entries().enumerate() {
        let mut entry = entry.clone();
        if i == wrong {
            change(&mut entry.tally);
            entry.machine = Machine { backend: "gpu".to_owned(), adapter: Some("Hot Card".to_owned()) };
        }
        journal.append(entry).expect("room");
    }
    medium.held()
}

#[test]
fn verification_finds_a_wrong_tally() {
    let spec = looked_at();
    let check = |bytes: &[u8], fraction| {
        let contents = read(bytes).expect("a journal that looks right");
        verify(&contents, &mut Host::reference(), (fraction, 1), &Control::default()).expect("a verdict")
    };
    let right = check(&whole(&spec), 1.0);
    assert_eq!((right.blocks, right.mismatches.len()), (5, 0));
    assert_eq!(check(&whole(&spec), 0.01).blocks, 1);
    assert_eq!(check(&whole(&spec), 0.3).blocks, 2);

    let wrong = with_wrong_tally(&spec, 3, |tally| tally.empty_bins.samples.max += 1);
    let verdict = check(&wrong, 1.0);
    assert_eq!((verdict.blocks, verdict.mismatches.len()), (5, 1));
    let mismatch = &verdict.mismatches[0];
    assert_eq!((mismatch.block.clone(), mismatch.machine.adapter.as_deref()), (64..90, Some("Hot Card")));
    let fields: Vec<_> = mismatch.differences.iter().map(|difference| difference.field.as_str()).collect();
    assert_eq!(fields, ["empty_bins.max"]);
}

#[test]
fn tallies_that_cannot_be_are_damage() {
    let spec = looked_at();
    let changes: [fn(&mut Tally); 9] = [
        |tally| tally.replicas += 1,
        |tally| tally.final_balls += 1,
        |tally| tally.initial_balls = u128::MAX,
        |tally| tally.flow.departed = u128::MAX,
        |tally| tally.total_load.samples.count += 1,
        |tally| tally.total_load.samples.sum += 1,
        |tally| tally.max_load.replicas.sum = u128::MAX,
        |tally| tally.empty_bins.replicas.count = u64::MAX,
        |tally| tally.load_per_bin.add(u64::MAX, u128::MAX),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let error = read(&with_wrong_tally(&spec, 1, change)).expect_err("an absurd tally").to_string();
        assert!(error.contains("line 3 (this cannot be the tally of replicas 32..45)"), "{i}: {error}");
    }
    // Sums of squares are only known to fit: together they may not.
    let vast: fn(&mut Tally) = |tally| tally.total_load.samples.sum_squares = u128::MAX;
    let contents = read(&with_wrong_tally(&spec, 1, vast)).expect("a journal that looks right");
    assert!(matches!(replay(&contents), Err(RunError::TooLarge)));
}

#[test]
fn another_run_is_refused_with_what_differs() {
    let spec = looked_at();
    let medium = Memory::with(&whole(&spec));
    let other = Spec { seed: 8, replicas: 200, ..spec.clone() };
    let error = journaled(&other, &medium, Shard::WHOLE).expect_err("another run").to_string();
    assert!(error.contains("replicas: 100, now 200; seed: 7, now 8"), "{error}");
    let error =
        journaled(&Spec { stopping: None, ..spec }, &medium, Shard::WHOLE).expect_err("another run").to_string();
    assert!(error.contains("stopping.at: 1000, now none"), "{error}");
}

#[test]
fn a_rule_ends_a_resumed_run_where_it_ends_a_plain_one() {
    for stopping in [
        Stopping { at: Some(6), rel_err: Some(0.3), confidence: 0.95, ..Stopping::default() },
        Stopping { at: Some(6), max_hits: Some(50), confidence: 0.95, ..Stopping::default() },
    ] {
        let spec = Spec { replicas: 20_000, stopping: Some(stopping), ..looked_at() };
        let plain = plain(&spec);
        assert!(plain.tally.replicas < spec.replicas && plain.tally.replicas > 64, "{}", plain.tally.replicas);
        let bytes = whole(&spec);
        let ends: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] == b'\n').map(|i| i + 1).collect();
        for end in ends {
            let medium = Memory::with(&bytes[..end]);
            let resumed = journaled(&spec, &medium, Shard::WHOLE).expect("the rest");
            assert_eq!((&resumed.tally, resumed.reason), (&plain.tally, plain.reason));
            assert_eq!(
                json(&spec, &replay(&read(&medium.held()).expect("a journal")).expect("sums")),
                json(&spec, &resumed)
            );
        }
    }
}

#[test]
fn the_time_of_all_sittings_counts_for_a_time_limit() {
    let limit = Stopping { max_time: Some(1000.0), confidence: 0.95, ..Stopping::default() };
    let spec = Spec { stopping: Some(limit), ..looked_at() };
    let first = read(&whole(&spec)).expect("a journal").entries().next().expect("a block").clone();
    let medium = Memory::default();
    let mut journal = Journal::on("memory", Box::new(medium.clone())).expect("empty");
    journal.begin(header(&spec)).expect("room");
    journal.append(Entry { elapsed: Duration::from_secs(900), ..first }).expect("room");
    drop(journal);
    let outcome = journaled(&spec, &medium.again(), Shard::WHOLE).expect("a run without time");
    assert_eq!((outcome.reason, outcome.tally.replicas), (Reason::MaxTime, 32));
}

/// The journals of the shards of `spec`.
fn shards(spec: &Spec, count: u64) -> Vec<Contents> {
    let shard = |index| {
        let medium = Memory::default();
        let outcome = journaled(spec, &medium, Shard::new(index, count).expect("a shard")).expect("a valid run");
        assert_eq!(outcome.reason == Reason::Incomplete, count > 1);
        read(&medium.held()).expect("a journal")
    };
    (0..count).map(shard).collect()
}

#[test]
fn shards_merged_are_the_run() {
    let spec = long();
    let expected = json(&spec, &replay(&read(&whole(&spec)).expect("a journal")).expect("sums"));
    for count in [1, 2, 3, 4, 5, 9] {
        let mut shards = shards(&spec, count);
        shards.reverse();
        let Merged { contents, repeated } = merge(shards).expect("one run").expect("some");
        assert_eq!((repeated, contents.missing().len()), (0, 0));
        assert_eq!(json(&spec, &replay(&contents).expect("sums")), expected, "{count} shards");
    }
}

#[test]
fn an_incomplete_run_says_what_is_missing() {
    let spec = long();
    let [first, second, third] = shards(&spec, 3).try_into().expect("three");
    assert_eq!(second.missing(), [0..16_384, 32_768..65_536, 81_920..100_000]);
    let contents = merge([third, first]).expect("one run").expect("some").contents;
    assert_eq!(contents.missing(), [16_384..32_768, 65_536..81_920]);
    let outcome = replay(&contents).expect("sums");
    assert_eq!((outcome.reason, outcome.tally.replicas), (Reason::Incomplete, 100_000 - 2 * 16_384));
    let json = json(&spec, &outcome);
    assert!(json.contains("\"ended\": \"incomplete\",\n  \"replicas_done\": 67232,"), "{json}");
    assert!(json.contains("the run is incomplete: this is the result of 67232 of 100000 replicas"), "{json}");
}

#[test]
fn contradicting_and_foreign_journals_do_not_merge() {
    let spec = looked_at();
    let right = read(&whole(&spec)).expect("a journal");
    let wrong = with_wrong_tally(&spec, 3, |tally| tally.empty_bins.samples.max += 1);
    let wrong = Contents::read_from("wrong.jsonl", &mut &*wrong).expect("a journal that looks right");
    let error = merge([right.clone(), wrong]).expect_err("a contradiction").to_string();
    assert!(error.starts_with("memory and wrong.jsonl have different tallies of replicas 64..90"), "{error}");
    let other = read(&whole(&Spec { seed: 8, ..spec })).expect("a journal");
    let error = merge([right, other]).expect_err("two runs").to_string();
    assert!(error.contains("seed: 8, now 7"), "{error}");
}

#[test]
fn ten_thousand_blocks_merge_at_once() {
    // Blocks of one replica, of so many bins; made up, as no machine needs to fill 10^12 bins.
    let n = 1 << 27;
    let process = ProcessSpec::Leaky(Parameters { n, lambda: 0.0, ..Parameters::default() });
    let schedule = Schedule { rounds: 20, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
    let spec = Spec { process, seed: 1, replicas: 10_000, schedule, stopping: None };
    let halves = [Memory::default(), Memory::default()];
    let mut journals = halves.clone().map(|half| Journal::on("memory", Box::new(half)).expect("empty"));
    journals.iter_mut().for_each(|journal| journal.begin(header(&spec)).expect("room"));
    for replica in 0..spec.replicas {
        let mut record = Record::default();
        for level in 0..20 {
            record.sample(level, u64::from(u32::MAX) + replica, n - replica % 1000);
            record.load_per_bin.add(level, n.into());
        }
        let mut tally = Tally::default();
        tally.add(&record);
        let machine = Machine { backend: "cpu".to_owned(), adapter: None };
        let entry = Entry { block: replica..replica + 1, tally, elapsed: Duration::from_secs(replica), machine };
        journals[(replica % 2) as usize].append(entry).expect("room");
    }
    let bytes = halves.map(|half| half.held());
    let begun = Instant::now();
    let contents = bytes.each_ref().map(|half| read(half).expect("a journal"));
    let merged = merge(contents).expect("one run").expect("some").contents;
    let written: usize = merged.lines().map(str::len).sum();
    let elapsed = begun.elapsed();
    println!("10,000 blocks, {written} bytes, read and merged in {elapsed:?}; bound 2 s");
    assert!(merged.missing().is_empty());
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

/// The parts of a journal that hold the blocks chosen for each, and each block's wall time in each, in microseconds.
fn part(spec: &Spec, blocks: &[(usize, u64)]) -> Contents {
    let medium = Memory::default();
    let mut journal = Journal::on("memory", Box::new(medium.clone())).expect("empty");
    journal.begin(header(spec)).expect("room");
    let entries: Vec<Entry> = FULL.with(|full| full.entries().cloned().collect());
    for &(block, elapsed) in blocks {
        journal.append(Entry { elapsed: Duration::from_micros(elapsed), ..entries[block].clone() }).expect("room");
    }
    read(&medium.held()).expect("a journal")
}

thread_local! {
    static FULL: Contents = read(&whole(&long())).expect("a journal");
}

fn lines(contents: &Contents) -> String {
    contents.lines().collect()
}

fn all(parts: impl IntoIterator<Item = Contents>) -> Contents {
    merge(parts).expect("one run").expect("some").contents
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        blocks in prop::collection::vec(prop::collection::vec((0usize..7, 0u64..3), 0..9), 3..4),
    ) {
        let [a, b, c]: [Contents; 3] =
            blocks.iter().map(|blocks| part(&long(), blocks)).collect::<Vec<_>>().try_into().expect("three");
        let abc = lines(&all([a.clone(), b.clone(), c.clone()]));
        prop_assert_eq!(&lines(&all([c.clone(), b.clone(), a.clone()])), &abc);
        prop_assert_eq!(&lines(&all([b.clone(), a.clone(), c.clone()])), &abc);
        prop_assert_eq!(&lines(&all([all([a.clone(), b.clone()]), c.clone()])), &abc);
        prop_assert_eq!(&lines(&all([a.clone(), all([b.clone(), c.clone()])])), &abc);
        prop_assert_eq!(&lines(&all([a.clone(), a.clone(), b, c, a])), &abc);
        let merged = read(abc.as_bytes()).expect("a journal");
        prop_assert_eq!(&lines(&all([merged.clone(), merged])), &abc);
        let distinct: std::collections::BTreeSet<usize> = blocks.iter().flatten().map(|(block, _)| *block).collect();
        prop_assert_eq!(abc.lines().count(), 1 + distinct.len());
    }

    #[test]
    fn no_bytes_break_the_reader(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        kept in 0usize..6,
        at in any::<prop::sample::Index>(),
        ascii in "[\\x20-\\x7e\\n]{0,200}",
    ) {
        let bytes = FULL.with(lines).into_bytes();
        let cut = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(kept).map_or(0, |(i, _)| i + 1);
        for tail in [&noise[..], ascii.as_bytes()] {
            prop_assert!(read(tail).is_err());
            let mut spliced = bytes[..cut].to_vec();
            spliced.extend_from_slice(tail);
            if let Ok(contents) = read(&spliced) {
                prop_assert!(contents.entries().len() == kept && contents.is_torn() != tail.is_empty());
            }
            let at = at.index(bytes.len());
            let mut inserted = bytes.clone();
            inserted.splice(at..at, tail.iter().copied());
            if let Ok(contents) = read(&inserted) {
                prop_assert!(tail.is_empty() || contents.is_torn());
            }
        }
    }
}

/// Bytes without end and without a line feed.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

#[test]
fn a_line_without_end_is_not_read_to_its_end() {
    let text = FULL.with(|full| full.lines().next().expect("a header").to_owned());
    let mut endless = io::BufReader::with_capacity(1 << 20, text.as_bytes().chain(Endless));
    let error = Contents::<Header>::read_from("memory", &mut endless).expect_err("no journal").to_string();
    assert!(error.contains("line 2 (it is longer than 268435456 bytes)"), "{error}");
}

/// The command.
mod command {
    use super::*;
    use assert_cmd::Command;
    use predicates::prelude::*;
    use predicates::str::{contains, diff, is_empty};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use std::fs;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_leakybins");
    /// A tenth of a second in many blocks: a look at 32, 45, .. replicas, none of which ends it.
    const LOOKED_AT: &str = "run leaky --backend cpu --n 64 --rounds 100 --replicas 6000 --at 1000 --max-hits 1 --threads 2 \
                             --format json";
    /// Seven blocks without a rule.
    const LONG: &str = "run leaky --backend cpu --n 4 --rounds 4 --burn-in 1 --every 2 --replicas 1e5";

    fn leakybins(arguments: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split_whitespace());
        command
    }

    /// A folder with paths in it.
    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// `arguments`, in which `@NAME` is a file of the folder.
        fn leakybins(&self, arguments: &str) -> Command {
            leakybins(&arguments.replace('@', &format!("{}/", self.0.path().display())))
        }

        /// Standard output of a command that succeeds.
        fn output(&self, arguments: &str) -> String {
            let output = self.leakybins(arguments).assert().success().get_output().stdout.clone();
            String::from_utf8(output).expect("UTF-8")
        }
    }

    fn entries(path: &Path) -> usize {
        Contents::<Header>::read(path).map_or(0, |contents| contents.entries().len())
    }

    /// `LEAKYBINS_KILLS` says how many times, 40 by default.
    #[test]
    fn a_run_that_is_killed_at_any_moment_goes_on() {
        let kills = std::env::var("LEAKYBINS_KILLS").map_or(40, |kills| kills.parse().expect("a number"));
        let folder = Folder::new();
        let begun = Instant::now();
        let expected = folder.output(&format!("{LOOKED_AT} --seed 3 --out @whole.jsonl"));
        let time = begun.elapsed();
        let blocks = entries(&folder.path("whole.jsonl"));
        let mut random = StdRng::seed_from_u64(1);
        let (mut early, mut middle, mut late) = (0, 0, 0);
        for kill in 0..kills {
            let arguments = format!("{LOOKED_AT} --seed 3 --out @{kill}.jsonl");
            let path = folder.path(&format!("{kill}.jsonl"));
            let text = arguments.replace('@', &format!("{}/", folder.0.path().display()));
            let mut command = std::process::Command::new(PROGRAM);
            command.args(text.split_whitespace());
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            let mut child = command.spawn().expect("the program starts");
            // More of the moments early on, where blocks end one after another.
            std::thread::sleep(time.mul_f64(1.1 * random.random_range(0.0..1.0f64).powi(2)));
            child.kill().expect("a child of ours");
            child.wait().expect("a child of ours");
            match entries(&path) {
                0 => early += 1,
                done if done < blocks => middle += 1,
                _ => late += 1,
            }
            assert_eq!(folder.output(&arguments), expected, "kill {kill}");
        }
        println!("{kills} kills, {blocks} blocks: {early} before the first, {middle} between, {late} after the last");
        assert!(middle * 4 >= kills, "the kills miss the run");
    }

    #[test]
    fn a_finished_journal_is_reported_at_once_and_keeps_its_seed() {
        let folder = Folder::new();
        let first = folder.leakybins(&format!("{LOOKED_AT} --out @a.jsonl")).assert().success();
        let first = String::from_utf8(first.get_output().stdout.clone()).expect("UTF-8");
        let bytes = fs::read(folder.path("a.jsonl")).expect("the journal");
        let again = folder.leakybins(&format!("{LOOKED_AT} --out @a.jsonl")).assert().success();
        again
            .stdout(diff(first.clone()))
            .stderr(contains("(of the journal)").and(contains("17 of 17 blocks are there")).and(contains("17 by cpu")))
            .stderr(contains("backend:").not());
        assert_eq!(fs::read(folder.path("a.jsonl")).expect("the journal"), bytes);
        assert_eq!(folder.output("report @a.jsonl --format json"), first);
        let seed = Contents::read(&folder.path("a.jsonl")).expect("a journal").spec().seed;
        assert!(first.contains(&format!("\"seed\": {seed},")));
    }

    #[test]
    fn a_torn_line_is_dropped_and_damage_is_not() {
        let folder = Folder::new();
        let expected = folder.output(&format!("{LOOKED_AT} --seed 3 --out @a.jsonl"));
        let bytes = fs::read(folder.path("a.jsonl")).expect("the journal");
        fs::write(folder.path("a.jsonl"), &bytes[..bytes.len() - 9]).expect("a file");
        folder
            .leakybins("report @a.jsonl")
            .assert()
            .success()
            .stderr(contains("the last line of").and(contains("incomplete")));
        let again = folder.leakybins(&format!("{LOOKED_AT} --seed 3 --out @a.jsonl")).assert().success();
        again.stdout(diff(expected)).stderr(contains("the last line of").and(contains("16 of 17 blocks")));
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        fs::write(folder.path("a.jsonl"), &damaged).expect("a file");
        for command in [&format!("{LOOKED_AT} --seed 3 --out"), "report", "verify", "merge --check"] {
            folder
                .leakybins(&format!("{command} @a.jsonl"))
                .assert()
                .code(5)
                .stdout("")
                .stderr(contains("damaged in line"));
        }
        assert_eq!(fs::read(folder.path("a.jsonl")).expect("the journal"), damaged);
    }

    #[test]
    fn what_cannot_go_on_is_refused_and_touched_not() {
        let folder = Folder::new();
        folder.output(&format!("{LOOKED_AT} --seed 3 --out @a.jsonl"));
        folder.output(&format!("{LONG} --seed 3 --out @long.jsonl"));
        fs::write(folder.path("notes"), "mine\n").expect("a file");
        let mut read_only = fs::metadata(folder.path("notes")).expect("a file").permissions();
        fs::write(folder.path("fixed.jsonl"), "").expect("a file");
        read_only.set_readonly(true);
        fs::set_permissions(folder.path("fixed.jsonl"), read_only).expect("a file of ours");
        let before = fs::read(folder.path("a.jsonl")).expect("the journal");
        for (arguments, reason) in [
            (format!("{LOOKED_AT} --seed 4 --out @a.jsonl"), "seed: 3, now 4"),
            (format!("{LOOKED_AT} --seed 3 --lambda 0.5 --out @a.jsonl"), "parameters.lambda: 0.95, now 0.5"),
            (format!("{LOOKED_AT} --seed 3 --out @notes"), "does not begin like one of this version"),
            (format!("{LOOKED_AT} --seed 3 --out @fixed.jsonl"), "it is read-only"),
            (format!("{LOOKED_AT} --seed 3 --out @"), "it is not a regular file"),
            (format!("{LOOKED_AT} --seed 3 --out @no/folder"), "cannot be read"),
            (format!("{LOOKED_AT} --seed 3 --out @a.jsonl -o @a.jsonl"), "would be replaced by a result"),
            (format!("{LOOKED_AT} --seed 3 --out @new.jsonl --dump-loads @l"), "--dump-loads cannot go with --out"),
            (format!("{LOOKED_AT} --seed 3 --out @new.jsonl --shard 1/2"), "rules for stopping cannot go with --shard"),
            (format!("{LONG} --seed 3 --shard 1/2"), "add --out FILE"),
            (format!("{LONG} --out @new.jsonl --shard 1/2"), "add --seed"),
            (format!("{LONG} --seed 3 --out @new.jsonl --shard 3/2"), "'3/2' is not a shard"),
            (format!("{LONG} --seed 3 --out @new.jsonl --shard auto"), "JOB_COMPLETION_INDEX is not set"),
            ("report @a.jsonl -o @a.jsonl".to_owned(), "would be replaced by a result"),
            ("report @none.jsonl".to_owned(), "cannot be read"),
            ("verify @a.jsonl --fraction 0".to_owned(), "use 0 < fraction <= 1"),
            ("verify @a.jsonl --backend profile --seed 1".to_owned(), "stream: \"bins\", now \"profile\""),
            ("merge @a.jsonl @long.jsonl --check".to_owned(), "replicas: 100000, now 6000"),
            ("merge @a.jsonl".to_owned(), "--output <FILE>"),
        ] {
            folder.leakybins(&arguments).assert().code(2).stdout(is_empty()).stderr(contains(reason));
        }
        assert_eq!(fs::read(folder.path("a.jsonl")).expect("the journal"), before);
        assert_eq!(fs::read(folder.path("notes")).expect("a file"), b"mine\n");
    }

    #[test]
    fn a_second_process_is_locked_out() {
        let folder = Folder::new();
        let path = folder.path("a.jsonl");
        let held = Journal::<Header>::open(&path).expect("a new journal");
        let locked = contains("is being written by another process");
        folder.leakybins(&format!("{LONG} --seed 3 --out @a.jsonl")).assert().code(2).stderr(locked.clone());
        folder.output(&format!("{LONG} --seed 3 --out @b.jsonl"));
        folder.leakybins("merge @b.jsonl -o @a.jsonl").assert().code(2).stderr(locked);
        drop(held);
        folder.output("merge @b.jsonl -o @a.jsonl");
        assert_eq!(fs::read(path).expect("a journal"), fs::read(folder.path("b.jsonl")).expect("a journal"));
    }

    #[test]
    fn shards_of_several_processes_make_the_run() {
        let folder = Folder::new();
        folder.output(&format!("{LONG} --seed 3 --out @whole.jsonl"));
        let run = format!("{LONG} --seed 3");
        for (name, variables, shard) in [
            ("a", &[][..], "1/3"),
            (
                "b",
                &[("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "4"), ("SLURM_ARRAY_TASK_COUNT", "3")],
                "auto",
            ),
            ("c", &[("JOB_COMPLETION_INDEX", "2"), ("JOB_COMPLETIONS", "3")], "auto"),
            // More shards than blocks.
            ("d", &[], "9/9"),
        ] {
            let mut command = folder.leakybins(&format!("{run} --out @{name}.jsonl --shard {shard}"));
            let said = command.envs(variables.iter().copied()).assert().success();
            said.stderr(contains(if name == "d" { "nothing to report" } else { "the run is incomplete" }));
        }
        let check = folder.leakybins("merge @a.jsonl @c.jsonl @d.jsonl --check").assert().code(3);
        check.stdout("missing 16384..32768\nmissing 65536..81920\n");
        folder
            .leakybins("merge @a.jsonl @c.jsonl @b.jsonl -o @all.jsonl --check")
            .assert()
            .code(0)
            .stdout("complete\n");
        folder.output("merge @all.jsonl @b.jsonl @a.jsonl -o @again.jsonl");
        let read = |name| fs::read(folder.path(name)).expect("a file");
        assert_eq!(read("all.jsonl"), read("again.jsonl"));
        for form in ["table", "json", "csv"] {
            let report = |name| {
                folder.output(&format!("report @{name}.jsonl --format {form} --confidence 0.9 --plot @{name}.svg"))
            };
            assert_eq!(report("all"), report("whole"));
            assert_eq!(read("all.svg"), read("whole.svg"));
        }
        folder.leakybins("report @d.jsonl").assert().code(2).stderr(contains("has no finished block yet"));
    }

    #[test]
    fn verification_has_a_verdict() {
        let folder = Folder::new();
        folder.output(&format!("{LOOKED_AT} --seed 3 --out @a.jsonl"));
        let agreed = "17 of 17 blocks computed again on reference agree; the journal has 17\n";
        folder.leakybins("verify @a.jsonl --fraction 1").assert().code(0).stdout(agreed);
        folder.leakybins("verify @a.jsonl --backend cpu").assert().code(0).stdout(contains("1 of 1 blocks"));
        fs::write(folder.path("w.jsonl"), with_wrong_tally(&looked_at(), 3, |tally| tally.empty_bins.samples.max += 1))
            .expect("a file");
        let found = folder.leakybins("verify @w.jsonl --fraction 1 --seed 1").assert().code(6);
        found.stdout(
            "4 of 5 blocks computed again on reference agree; the journal has 5\n\
             replicas 64..90, by gpu, adapter Hot Card, differ:\n  empty_bins.max: 6 in the journal, 5 now\n",
        );
    }

    #[test]
    fn runs_on_profiles_have_their_own_journals() {
        let folder = Folder::new();
        let run = "run leaky --n 64 --rounds 40 --replicas 50 --seed 3 --out @a.jsonl";
        let first = folder.output(&format!("{run} --backend profile --format json"));
        assert!(first.contains("\"stream\": \"profile\","));
        let other = folder.leakybins(&format!("{run} --backend cpu")).assert().code(2);
        other.stderr(contains("stream: \"profile\", now \"bins\""));
        folder
            .leakybins("verify @a.jsonl")
            .assert()
            .code(0)
            .stdout(contains("1 of 1 blocks computed again on profile"));
        folder.leakybins("verify @a.jsonl --backend reference").assert().code(2);
    }

    #[test]
    fn the_loads_in_a_file_are_part_of_the_run() {
        let folder = Folder::new();
        fs::write(folder.path("loads"), "1 2 3 4").expect("a file");
        let run =
            format!("{LONG} --replicas 100 --seed 3 --out @a.jsonl --start file:@loads").replace("--replicas 1e5 ", "");
        let first = folder.output(&run);
        fs::write(folder.path("loads"), "1 2 3 5").expect("a file");
        folder.leakybins(&run).assert().code(2).stderr(contains("start_sha256"));
        folder.leakybins("verify @a.jsonl").assert().code(2).stderr(contains("start_sha256"));
        fs::remove_file(folder.path("loads")).expect("a file");
        assert_eq!(folder.output("report @a.jsonl"), first);
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_keeps_the_finished_blocks() {
        let folder = Folder::new();
        // Blocks that double: the first come soon, the last would take hours.
        let run =
            "run leaky --backend cpu --n 64 --rounds 1e5 --replicas 1e6 --at 1000 --max-hits 1 --seed 3 --out @a.jsonl";
        for signal in ["TERM", "INT"] {
            let text = run.replace('@', &format!("{}/", folder.0.path().display()));
            let mut command = std::process::Command::new(PROGRAM);
            let command = command.args(text.split_whitespace()).stderr(std::process::Stdio::piped());
            let child = command.spawn().expect("the program starts");
            let (before, patience) = (entries(&folder.path("a.jsonl")), Instant::now());
            while entries(&folder.path("a.jsonl")) <= before && patience.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let kill = ["-s", signal, &child.id().to_string()].map(str::to_owned);
            assert!(std::process::Command::new("kill").args(kill).status().expect("kill runs").success());
            let begun = Instant::now();
            let output = child.wait_with_output().expect("a child of ours");
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            let said = String::from_utf8(output.stderr).expect("UTF-8");
            assert_eq!(output.status.code(), Some(75), "{said}");
            assert!(output.stdout.is_empty() && said.contains("run the same command to continue"), "{said}");
            assert!(entries(&folder.path("a.jsonl")) > before);
        }
    }

    #[test]
    fn the_time_between_snapshots_is_a_flag_of_a_journal() {
        let folder = Folder::new();
        let run = |flags: &str| {
            folder.leakybins(&format!("run leaky --n 8 --rounds 10 --replicas 10 --seed 1 {flags}")).assert()
        };
        run("--snapshot-every 5m")
            .code(2)
            .stderr(contains("snapshots are kept beside a journal; add --out FILE for it"));
        for wrong in ["0", "-1", "soon", "1e30"] {
            run(&format!("--snapshot-every={wrong} --out @x")).code(2).stderr(contains("a time"));
        }
        run("--snapshot-every 90s --out @a --backend cpu").code(0);
        let many = "run leaky --n 2^24 --lambda 0.01 --d 1 --rounds 1 --replicas 1 --seed 1 --out @b --backend cpu --threads 2";
        folder.leakybins(many).assert().code(0).stderr(contains("snapshots").not());
        let asked = many.replace("@b", "@c --snapshot-every 1m");
        folder
            .leakybins(&asked)
            .assert()
            .code(0)
            .stderr(contains("there will be no snapshots: the replicas under way"));
        let mut files: Vec<_> =
            fs::read_dir(folder.0.path()).expect("a folder").flatten().map(|f| f.file_name()).collect();
        files.sort();
        assert_eq!(files, ["a", "b", "c"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_during_the_pilot_loses_nothing() {
        use std::io::BufRead;
        let folder = Folder::new();
        let run = "run leaky --backend cpu --n 1024 --lambda 1-1e-9 --d 1 --rounds 1e12 --burn-in auto --seed 3 --out @a \
                   --progress json";
        let text = run.replace('@', &format!("{}/", folder.0.path().display()));
        let mut command = std::process::Command::new(PROGRAM);
        let command = command.args(text.split_whitespace()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut said = io::BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let progress = said.find(|line| line.contains("\"kind\":\"progress\"")).expect("a line on the pilot");
        assert!(progress.contains("\"of\":null") && progress.contains("\"eta_s\":null"), "{progress}");
        let kill = ["-s", "TERM", &child.id().to_string()].map(str::to_owned);
        assert!(std::process::Command::new("kill").args(kill).status().expect("kill runs").success());
        let rest: Vec<String> = said.collect();
        assert_eq!(child.wait().expect("a child of ours").code(), Some(75), "{rest:?}");
        let last = rest.last().expect("an error");
        assert!(last.contains("the burn-in is not found, and no block begun; run the same command"), "{last}");
    }

    #[cfg(unix)]
    #[test]
    fn a_full_disk_ends_a_run_that_then_goes_on() {
        let folder = Folder::new();
        let expected = folder.output(&format!("{LOOKED_AT} --seed 3 --out @whole.jsonl"));
        let run =
            format!("{LOOKED_AT} --seed 3 --out @a.jsonl").replace('@', &format!("{}/", folder.0.path().display()));
        // No file may grow beyond 8 units of the shell, which are 512 or 1024 bytes.
        let limited =
            Command::new("sh").args(["-c", &format!("trap '' XFSZ; ulimit -f 8; exec {PROGRAM} {run}")]).assert();
        limited
            .code(1)
            .stdout(is_empty())
            .stderr(contains("cannot be written").and(contains("all blocks before are safe")));
        let done = entries(&folder.path("a.jsonl"));
        assert!((1..17).contains(&done), "{done}");
        let rest = folder.leakybins(&format!("{LOOKED_AT} --seed 3 --out @a.jsonl")).assert().success();
        rest.stdout(diff(expected)).stderr(contains(format!("{done} of 17 blocks are there")));
    }
}
