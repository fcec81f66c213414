//! Tails with a journal: an island a line. An island is a function of the specification and its number, so that which
//! ones are there, and who computed them, is all that a journal has to know.

use super::scheme::{Findings, Scheme};
use super::{Outcome, Question, Seen, Share, Spec, TAIL_VERSION, TailError, climb};
use crate::backend::{Control, Host, Machine, Profiles, StreamKind};
use crate::journal::{Contents, Entry, Journal, JournalError, Kind, Mismatch, Subject, Verified, fields, recompute};
use crate::process::start::Start;
use crate::profile::PROFILE_STREAM_VERSION;
use crate::run::Shard;
use crate::stats::interval::Confidence;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the journal of a tail is of, and the version that began it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    version: String,
    profile_stream_version: u32,
    tail_version: u32,
    #[serde(flatten)]
    spec: Spec,
    /// They follow from all else, and are here so that a report needs no pilot.
    #[serde(flatten)]
    findings: Findings,
}

impl Header {
    /// The header of a run of `spec`, whose pilot has these `findings`.
    #[must_use]
    pub fn new(spec: &Spec, findings: &Findings) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (profile_stream_version, tail_version) = (PROFILE_STREAM_VERSION, TAIL_VERSION);
        let mut spec = spec.clone();
        if spec.question == Question::Stationary {
            // But for a number of balls the start is not looked at, and would make two journals of one sample.
            let start = if spec.process.is_closed() { spec.process.stationary_start() } else { Start::Empty };
            spec.process = spec.process.with_start(start);
        }
        Self { version, profile_stream_version, tail_version, spec, findings: findings.clone() }
    }

    /// What is asked.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What the pilot found.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Whether this version of leakybins computes the same islands.
    #[must_use]
    pub fn is_of_this_version(&self) -> bool {
        (self.profile_stream_version, self.tail_version) == (PROFILE_STREAM_VERSION, TAIL_VERSION)
    }
}

impl Subject for Header {
    const KIND: Kind = Kind::Tail;
    const UNITS: &'static str = "islands";
    const BLOCKS: &'static str = "islands";
    const COMPUTED: &'static [&'static str] = &["stages", "methods", "neglects_pairs"];
    type Tally = Share;
    type Built = ();

    fn build(&self) -> Result<(), String> {
        self.spec.validate().map_err(|error| error.to_string())?;
        let Findings { methods, neglects_pairs, .. } = &self.findings;
        if [methods.len(), neglects_pairs.len()] != [self.spec.levels.len(); 2] {
            return Err("it does not say of each level how it is estimated".to_owned());
        }
        self.spec
            .process
            .with_start(Start::Empty)
            .build_for(self.spec.states)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn seed(&self) -> u64 {
        self.spec.seed
    }

    fn units(&self) -> u64 {
        self.spec.max_islands
    }

    fn block(&self, (): &(), first: u64) -> Range<u64> {
        first..first + 1
    }

    fn is_plausible(&self, (): &(), share: &Share, _: &Range<u64>) -> bool {
        // The probability may be below zero where it is corrected.
        let is_seen = |seen: &Seen| {
            let is_amount = |x: f64| x.is_finite() && x >= 0.0 && (x > 0.0) == (seen.ancestors > 0);
            seen.probability.is_finite() && is_amount(seen.concentration) && is_amount(seen.largest)
        };
        share.rounds > 0 && share.levels.len() == self.spec.levels.len() && share.levels.iter().all(is_seen)
    }

    fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = fields(self);
        // Without the rule that it is about it changes no sample.
        if self.spec.rel_err.is_none() {
            fields.remove("confidence");
        }
        // What was read counts, not where it stood.
        if self.findings.start_sha256.is_some() {
            fields.insert("parameters.start".to_owned(), "\"file\"".to_owned());
        }
        fields
    }
}

/// Computes the islands of `shard` that `journal` lacks, up to where a rule ends it; each is written into it as it is
/// finished. A journal that has not begun is begun after the pilot.
///
/// Where it ends, also by an error, all finished islands are in the journal, and the same call goes on from there. A time
/// limit counts the time of all islands, whenever and wherever they were computed.
///
/// # Errors
/// [`TailError`]; [`TailError::Journal`] where the journal is of another run, or cannot be written.
pub fn run_journaled(
    spec: &Spec,
    control: &Control,
    (journal, shard): (&mut Journal<Header>, Shard),
) -> Result<Outcome, TailError> {
    spec.validate()?;
    let mut last = Instant::now();
    let mut scheme = None;
    let findings = match journal.header() {
        Some(header) => header.findings().clone(),
        None => scheme.insert(Scheme::find(spec, control)?).findings(),
    };
    journal.begin(Header::new(spec, &findings))?;
    climb(spec, &findings, spec.confidence, |numbers| {
        let contents = journal.contents();
        let is_missing = |number: &u64| shard.owns(*number) && contents.entry(&(*number..number + 1)).is_none();
        let missing: Vec<u64> = numbers.clone().filter(is_missing).collect();
        if !missing.is_empty() {
            let scheme = match &mut scheme {
                Some(scheme) => scheme,
                none => none.insert(Scheme::find(spec, control)?),
            };
            journal.require(&Header::new(spec, &scheme.findings()))?;
            let writer = Mutex::new((&mut *journal, &mut last));
            missing.into_par_iter().try_for_each(|number| {
                let tally = scheme.island(number as u32, control)?;
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                let (journal, last) = &mut *writer;
                let now = Instant::now();
                let elapsed = now - std::mem::replace(&mut **last, now);
                journal.append(Entry { block: number..number + 1, tally, elapsed, machine: machine(spec) })?;
                Ok::<(), TailError>(())
            })?;
        }
        Ok(there(journal.contents(), numbers))
    })
}

/// What the islands in a journal give, without computing any, in intervals of this `confidence`.
///
/// # Errors
/// None that a journal that was read can give.
pub fn replay(contents: &Contents<Header>, confidence: Confidence) -> Result<Outcome, TailError> {
    let header = contents.header();
    climb(header.spec(), header.findings(), confidence, |numbers| Ok(there(contents, numbers)))
}

/// Where the islands of `spec` are computed.
fn machine(spec: &Spec) -> Machine {
    match spec.states {
        StreamKind::Bins => Machine::of(&Host::cpu()),
        StreamKind::Profile => Machine::of(&Profiles),
    }
}

/// The islands of these numbers that are there, and the time of all up to the last of them.
fn there(contents: &Contents<Header>, numbers: Range<u64>) -> (Vec<Share>, Duration) {
    let until: Vec<_> = contents.entries().take_while(|entry| entry.block.end <= numbers.end).collect();
    let islands = until.iter().filter(|entry| entry.block.start >= numbers.start);
    (islands.map(|entry| entry.tally.clone()).collect(), until.iter().map(|entry| entry.elapsed).sum())
}

/// Computes a `fraction` of the islands of a journal again, at least one, and compares them, bit by bit. Which ones
/// follows from `seed`. Where the pilot has other findings, that is the one mismatch, of all islands.
///
/// # Errors
/// [`JournalError::Empty`] where there is no island, [`JournalError::OtherStream`], and those of the computation.
pub fn verify(
    contents: &Contents<Header>,
    (fraction, seed): (f64, u64),
    control: &Control,
) -> Result<Verified, TailError> {
    if !contents.header().is_of_this_version() {
        return Err(JournalError::OtherStream(contents.name().to_owned()).into());
    }
    let spec = contents.header().spec();
    let scheme = Scheme::find(spec, control)?;
    let differences = contents.header().differences(&Header::new(spec, &scheme.findings()));
    if !differences.is_empty() {
        let mismatch = Mismatch { block: 0..spec.max_islands, machine: machine(spec), differences };
        return Ok(Verified { blocks: 1, mismatches: vec![mismatch] });
    }
    recompute(contents, (fraction, seed), |islands| {
        islands.into_par_iter().map(|island| scheme.island(island.start as u32, control)).collect()
    })
}
