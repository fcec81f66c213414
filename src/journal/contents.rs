//! What is in a journal.

use super::line::{MAX_LINE, open, seal};
use super::subject::{Entry, Kind, Subject};
use super::{Header, JournalError};
use crate::backend::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Version of the format that the page of this module describes.
pub const SCHEMA: u32 = 1;
/// A journal that has been read: its header and its blocks.
#[derive(Clone, Debug)]
pub struct Contents<S: Subject = Header> {
    pub(super) name: String,
    pub(super) header: S,
    pub(super) id: String,
    /// The line of the header, a line feed at its end.
    pub(super) header_line: String,
    pub(super) built: S::Built,
    /// By first unit.
    pub(super) entries: BTreeMap<u64, Stored<S::Tally>>,
    pub(super) torn: bool,
}

/// An entry with its line, a line feed at its end.
#[derive(Clone, Debug)]
pub(super) struct Stored<T> {
    pub(super) entry: Entry<T>,
    pub(super) line: String,
}

/// A journal as far as it is whole.
pub(super) struct Whole<S: Subject> {
    /// `None` where not even the header is.
    pub(super) contents: Option<Contents<S>>,
    /// Its bytes.
    pub(super) length: u64,
}

#[derive(Serialize, Deserialize)]
struct HeaderLine<S> {
    schema: u32,
    kind: Kind,
    #[serde(flatten)]
    header: S,
    id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine<T> {
    first: u64,
    end: u64,
    tally: T,
    elapsed_us: u64,
    backend: String,
    adapter: Option<String>,
}

impl<S: Subject> Contents<S> {
    /// A journal without blocks.
    pub(super) fn empty(name: &str, header: S) -> Result<Self, JournalError> {
        let line = HeaderLine { schema: SCHEMA, kind: S::KIND, header: header.clone(), id: header.id() };
        let text = serde_json::to_string(&line).expect("a header is made of plain values");
        Self::with_header(name, header, seal(&text, ""))
    }

    fn with_header(name: &str, header: S, header_line: String) -> Result<Self, JournalError> {
        let damaged = |reason| JournalError::Damaged { name: name.to_owned(), line: 1, reason };
        let (built, id, entries) = (header.build().map_err(damaged)?, header.id(), BTreeMap::new());
        Ok(Self { name: name.to_owned(), header, id, header_line, built, entries, torn: false })
    }

    /// Reads the journal at `path`, complete or not.
    ///
    /// # Errors
    /// [`JournalError`]: where it cannot be read, is no journal, or is damaged.
    pub fn read(path: &Path) -> Result<Self, JournalError> {
        let name = path.display().to_string();
        let unreadable = |source| JournalError::Unreadable { name: name.clone(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        Self::read_from(&name, &mut std::io::BufReader::new(file))
    }

    /// Reads a journal, which messages call `name`.
    ///
    /// # Errors
    /// As those of [`Contents::read`].
    pub fn read_from(name: &str, reader: &mut dyn BufRead) -> Result<Self, JournalError> {
        let whole = Whole::read(name, reader)?;
        let reason = "it has no complete header";
        whole.contents.ok_or_else(|| JournalError::NoJournal { name: name.to_owned(), reason })
    }

    /// What messages call it: its path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is of.
    #[must_use]
    pub fn header(&self) -> &S {
        &self.header
    }

    /// The strong id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The blocks of the whole, finished or not, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Range<u64>> {
        let block_at = |first| (first < self.header.units()).then(|| self.header.block(&self.built, first));
        std::iter::successors(block_at(0), move |block| block_at(block.end))
    }

    /// Whether its last line was not whole, and left out.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The finished block of exactly these units.
    #[must_use]
    pub fn entry(&self, block: &Range<u64>) -> Option<&Entry<S::Tally>> {
        self.entries.get(&block.start).map(|stored| &stored.entry).filter(|entry| entry.block == *block)
    }

    /// The finished blocks, by first unit.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry<S::Tally>> {
        self.entries.values().map(|stored| &stored.entry)
    }

    /// The units of no finished block, as ranges, ascending. A run that a rule ended has some and needs none.
    #[must_use]
    pub fn missing(&self) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut done = 0;
        for Entry { block, .. } in self.entries() {
            missing.push(done..block.start);
            done = block.end;
        }
        missing.push(done..self.header.units());
        missing.retain(|range| !range.is_empty());
        missing
    }

    /// The whole journal as bytes: the header, and the blocks by first unit. They follow from the lines alone, in
    /// whatever order these were written.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.header_line.as_str()).chain(self.entries.values().map(|stored| stored.line.as_str()))
    }

    /// The line of a block for this journal.
    pub(super) fn seal(&self, entry: Entry<S::Tally>) -> Result<Stored<S::Tally>, JournalError> {
        let Entry { block, tally, elapsed, machine } = entry;
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let Machine { backend, adapter } = machine.clone();
        let line = EntryLine { first: block.start, end: block.end, tally: &tally, elapsed_us, backend, adapter };
        let text = serde_json::to_string(&line).expect("a tally is made of plain values");
        let line = seal(&text, &self.id);
        if line.len() as u64 > MAX_LINE {
            return Err(JournalError::TooLong { name: self.name.clone(), bytes: line.len() });
        }
        Ok(Stored { entry: Entry { block, tally, elapsed: Duration::from_micros(elapsed_us), machine }, line })
    }

    /// The block on a line of this journal, or what is wrong with it.
    fn open(&self, line: &str) -> Result<Stored<S::Tally>, String> {
        let object = open(line.trim_end_matches('\n'), &self.id).ok_or("its checksum is wrong")?;
        let EntryLine { first, end, tally, elapsed_us, backend, adapter } =
            serde_json::from_str(&object).map_err(|error| error.to_string())?;
        let block = first..end;
        if first >= self.header.units() || self.header.block(&self.built, first) != block {
            return Err(format!("{} {first}..{end} are no block of this run", S::UNITS));
        }
        if !self.header.is_plausible(&self.built, &tally, &block) {
            return Err(format!("this cannot be the tally of {} {first}..{end}", S::UNITS));
        }
        let (elapsed, machine) = (Duration::from_micros(elapsed_us), Machine { backend, adapter });
        Ok(Stored { entry: Entry { block, tally, elapsed, machine }, line: line.to_owned() })
    }

    /// Adds a block. One that is there already stays once: of two lines with the same tally the smaller in bytes, so
    /// that their order does not matter. Whether it was there.
    pub(super) fn insert(&mut self, stored: Stored<S::Tally>, from: &str) -> Result<bool, JournalError> {
        let Some(old) = self.entries.get_mut(&stored.entry.block.start) else {
            self.entries.insert(stored.entry.block.start, stored);
            return Ok(false);
        };
        if (&old.entry.block, &old.entry.tally) != (&stored.entry.block, &stored.entry.tally) {
            let (a, b) = (self.name.clone(), from.to_owned());
            let (units, block) = (S::UNITS, old.entry.block.clone());
            return Err(JournalError::Conflict { a, b, units, block });
        }
        if stored.line < old.line {
            *old = stored;
        }
        Ok(true)
    }
}

impl<S: Subject> Whole<S> {
    /// Reads what is whole of a journal.
    ///
    /// Each line was written before the next began, so only the last can be torn: it has no end, or holds zero bytes
    /// where a page did not reach the disk.
    pub(super) fn read(name: &str, reader: &mut dyn BufRead) -> Result<Self, JournalError> {
        let mut whole = Self { contents: None, length: 0 };
        let mut number = 0;
        loop {
            let mut line = Vec::new();
            let unreadable = |source| JournalError::Unreadable { name: name.to_owned(), source };
            (&mut *reader).take(MAX_LINE + 1).read_until(b'\n', &mut line).map_err(unreadable)?;
            if line.is_empty() {
                return Ok(whole);
            }
            number += 1;
            let damaged = |reason: String| JournalError::Damaged { name: name.to_owned(), line: number, reason };
            if line.len() as u64 > MAX_LINE {
                return Err(damaged(format!("it is longer than {MAX_LINE} bytes")));
            }
            let is_last = reader.fill_buf().map_err(unreadable)?.is_empty();
            let is_torn = is_last && (line.last() != Some(&b'\n') || line.contains(&0));
            let Some(contents) = &mut whole.contents else {
                let expected = S::KIND.beginning().as_bytes();
                if let Some(found) = Kind::of_beginning(&line).filter(|found| *found != S::KIND) {
                    return Err(JournalError::OtherKind { name: name.to_owned(), found, wanted: S::KIND });
                }
                if !expected.starts_with(&line[..line.len().min(expected.len())]) {
                    let reason = "it does not begin like one of this version";
                    return Err(JournalError::NoJournal { name: name.to_owned(), reason });
                }
                if is_torn {
                    return Ok(whole);
                }
                let line = String::from_utf8(line).map_err(|_| damaged("it is not UTF-8".to_owned()))?;
                whole.length = line.len() as u64;
                whole.contents = Some(header(name, line)?);
                continue;
            };
            if is_torn {
                contents.torn = true;
                return Ok(whole);
            }
            let line = String::from_utf8(line).map_err(|_| damaged("it is not UTF-8".to_owned()))?;
            let stored = contents.open(&line).map_err(damaged)?;
            contents.insert(stored, name)?;
            whole.length += line.len() as u64;
        }
    }
}

/// The journal that begins with this line.
fn header<S: Subject>(name: &str, line: String) -> Result<Contents<S>, JournalError> {
    let damaged = |reason: String| JournalError::Damaged { name: name.to_owned(), line: 1, reason };
    let object = open(line.trim_end_matches('\n'), "").ok_or_else(|| damaged("its checksum is wrong".to_owned()))?;
    let HeaderLine::<S> { header, id, .. } =
        serde_json::from_str(&object).map_err(|error| damaged(error.to_string()))?;
    if header.id() != id {
        return Err(damaged("its id is not that of its fields".to_owned()));
    }
    Contents::with_header(name, header, line)
}
