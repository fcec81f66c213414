//! Journals: runs that lose nothing. One file, to which each block is added as it is finished.
//!
//! A run that is interrupted, at whatever moment, goes on from its last finished block; parts of a run that were computed
//! by several machines are [merged](merge()); and any block can be [computed again](verify()) and compared.
//!
//! What a journal is of is its [`Subject`]: a `leakybins run`, whose blocks are ranges of replicas, or a `leakybins tail`, whose
//! blocks are single islands. The file is the same but for the fields of the header and the `tally`.
//!
//! # The file
//! Lines of JSON, each one object whose last field is `sha256`: 64 hexadecimal digits, the SHA-256 of the bytes of the
//! line up to the comma before that field; for a block these bytes come after the 64 digits of the journal's `id`, so
//! that no line of another run passes. Each line is written by one call and reaches the disk before the next
//! line.
//!
//! The first line is the header. Of a `run` it is
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema` | integer | version of this format: [`SCHEMA`] |
//! | `kind` | string | `"journal"` |
//! | `version` | string | version of leakybins that began the journal |
//! | `stream_version` | integer | version of the drawn bits: [`STREAM_VERSION`](crate::rng::STREAM_VERSION) |
//! | `stream` | string | which random numbers are drawn: `"bins"`, or `"profile"` by the backend of that name |
//! | `profile_stream_version` | integer, or absent | of a run on profiles: version of what is drawn there, [`PROFILE_STREAM_VERSION`](crate::profile::PROFILE_STREAM_VERSION) |
//! | `process` to `stopping` | | the specification, as in a [report](crate::report::json) |
//! | `start_sha256` | string, or absent | with a start of `file:PATH` the SHA-256 of the loads in it, u32, little-endian; on profiles, which have no order, of the ascending loads |
//! | `id` | string | the strong id, see below |
//!
//! and of a `tail`
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `schema`, `version`, `profile_stream_version`, `id` | | as above |
//! | `kind` | string | `"tail-journal"` |
//! | `tail_version` | integer | version of the method: [`TAIL_VERSION`](crate::tail::TAIL_VERSION) |
//! | `process`, `parameters`, `seed`, `max_islands` | | the specification, as in a [report](crate::tail::report); `start` is `"empty"`, for it has no effect |
//! | `levels` | list of integers | the levels asked for, ascending |
//! | `rel_err`, `max_time` | number, or absent | rules that may end the run before `max_islands`; the time in seconds |
//! | `confidence` | number | of the intervals that `rel_err` is about, and part of the id only with it |
//! | `stages` | list | what the pilot found: [level, excursions in an island] of each stage |
//! | `methods` | list of strings | by level: how it is estimated, as in a [report](crate::tail::report) |
//! | `neglects_pairs` | list of booleans | by level: whether several bins at once there count as often as they are |
//!
//! The last three follow from the others and are no part of the id. Two journals of a run that differ in them cannot both be
//! right, and are refused to be one.
//!
//! Each other line is a finished block, in the order in which they were finished:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `first`, `end` | integer | its replicas, or of a `tail` its one island: `first`, .., `end` - 1 |
//! | `tally` | object | what was seen, see below |
//! | `elapsed_us` | integer | wall time since the block before it was finished, or its sitting begun, and of earlier sittings that kept a snapshot of it, in microseconds: where several devices or threads work at blocks of their own, the sum is the time of the run |
//! | `backend` | string | what computed it, as in `--backend` |
//! | `adapter` | string or null | the GPU |
//!
//! Where several devices share a run, and of a `tail`, blocks stand in the order in which they were finished; a run that a rule ends may have
//! blocks beyond its end, which no report counts.
//!
//! The `tally` of a `run` holds sums over its replicas. Sums of 128 bits are strings of decimal digits, all others are numbers below
//! 2^64 and have to be read as integers. Maps by value have their values ascending, as strings of decimal digits.
//!
//! | field | meaning |
//! |---|---|
//! | `replicas` | number of replicas |
//! | `initial_balls`, `final_balls` | strings: balls in the system before the first and after the last round |
//! | `arrived`, `departed` | strings: balls that arrived and were deleted |
//! | `max_load.steps` | by max load m: a list of the samples with that max load (number); the sum over the replicas of h(m)^2 - h(m + 1)^2, h(k) being how many of the samples of a replica reach k (string); and the replicas whose largest sample it is (number) |
//! | `max_load.replicas` | `count`, `sum` and `sum_squares` (strings) of the replicas' sums of their samples |
//! | `total_load`, `empty_bins` | `samples`: `count`, `sum` and `sum_squares` of all samples; `min`, `max`: the smallest and largest; `replicas` as above |
//! | `load_per_bin` | by load: bins with that load (string), in the sampled rounds that add their loads |
//! | `numbers` | what `total_load` has, for each number that the process observes beside these, in its order; absent if none |
//! | `histograms` | by value: how often it was seen (string), for each such histogram; absent if none |
//!
//! The `tally` of a `tail` is what its island says, a [`Share`](crate::tail::Share). Numbers with a point are the shortest
//! decimals that read back as the same 64 bits.
//!
//! | field | meaning |
//! |---|---|
//! | `rounds` | rounds computed, burn-in included |
//! | `levels` | a list, by level asked for: what the excursions above it contribute |
//! | `levels.probability` | the island's estimate of P(max load >= k): the sum of the contributions; with the method `one-bin` and more than 1e-4 bins there on average corrected along the plain chain, and perhaps below 0 |
//! | `levels.concentration` | sum of their squares over the square of their sum |
//! | `levels.largest` | the largest |
//! | `levels.ancestors` | different states of the plain chain that they come from (integer) |
//!
//! # The id
//! The SHA-256 of all that changes the samples or their law, and of nothing else: a line `NAME=VALUE` for each field of
//! the header except `schema`, `kind`, `version`, `id` and what the pilot found, in the order of their names, nested fields as
//! `parameters.n`, values as compact JSON. The path of a file with initial loads is left out (`"file"`), its contents
//! count.
//!
//! # Damage
//! A last line that is not whole was being written when the power failed: it is left out, and its block is computed
//! again. Any other line that is not what was written is an error that names it. A line is accepted if its checksum is
//! right, its replicas are a [block](crate::run::Spec::blocks) of the run, no ball is lost, and its numbers of samples,
//! bins and replicas are those of that block; of a `tail`, if its island is one of the run, has all levels, and each
//! has contributions where it has ancestors.

mod contents;
mod header;
mod line;
mod merge;
mod snapshot;
mod subject;
mod tally;
mod verify;

pub use contents::{Contents, SCHEMA};
pub use header::Header;
pub(crate) use header::start_sha256;
pub use line::MAX_LINE;
pub use merge::{Merged, merge};
pub use snapshot::{MOST_LOADS, Snapshots};
pub(crate) use subject::fields;
pub use subject::{Difference, Entry, Kind, Subject};
pub(crate) use verify::recompute;
pub use verify::{Mismatch, Verified, verify};

use contents::Whole;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read or opened.
    #[error("the journal {name} cannot be read ({source}); check the path and its permissions")]
    Unreadable {
        /// Its path.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error(
        "the journal {name} cannot be written ({source}); all blocks before are safe: check the disk and its space, \
         and run the same command to continue"
    )]
    Unwritable {
        /// Its path.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be a journal.
    #[error("{name} cannot be a journal ({reason}); name a journal, or another file for a new one")]
    NoJournal {
        /// Its path.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// It is of another command.
    #[error(
        "{name} is a journal of `leakybins {}`, not of `leakybins {}`; name one of that command, or another file",
        found.command(), wanted.command()
    )]
    OtherKind {
        /// Its path.
        name: String,
        /// What it is of.
        found: Kind,
        /// What was expected.
        wanted: Kind,
    },
    /// Another process writes it.
    #[error("the journal {0} is being written by another process; wait until that has ended, or name another file")]
    Locked(String),
    /// A line is not what was written.
    #[error(
        "the journal {name} is damaged in line {line} ({reason}); restore a copy, or, unless it is line 1, delete the \
         line to have its block computed again"
    )]
    Damaged {
        /// Its path.
        name: String,
        /// Line, counted from 1.
        line: u64,
        /// Why.
        reason: String,
    },
    /// It is of another run.
    #[error("the journal {name} is of another run ({}); use its parameters, or another file", list(differences))]
    Differs {
        /// Its path.
        name: String,
        /// In what.
        differences: Vec<Difference>,
    },
    /// What it says of the whole is not what comes out elsewhere.
    #[error(
        "the journal {name} is of the same run, but what was computed for all of it differs ({}): one of them was \
         computed wrongly; `leakybins verify` tells whether it is this one",
        list(differences)
    )]
    Computed {
        /// Its path.
        name: String,
        /// In what.
        differences: Vec<Difference>,
    },
    /// Two lines contradict each other.
    #[error(
        "{a} and {b} have different tallies of {units} {}..{}: one of them was computed wrongly; `leakybins verify` \
         tells which", block.start, block.end
    )]
    Conflict {
        /// One journal.
        a: String,
        /// The other, which may be the same.
        b: String,
        /// What the block is a range of.
        units: &'static str,
        /// The block.
        block: Range<u64>,
    },
    /// A block would make a line that is too long.
    #[error(
        "a block needs a line of {bytes} bytes in {name}, more than {MAX_LINE}: too many different loads; sample less"
    )]
    TooLong {
        /// Path of the journal.
        name: String,
        /// Bytes of the line.
        bytes: usize,
    },
    /// An earlier write failed.
    #[error("the journal {0} could not be written before; open it again")]
    Broken(String),
    /// Its blocks cannot be computed by this version.
    #[error(
        "the blocks of {0} were drawn by another version of the stream; use the version of leakybins that made them"
    )]
    OtherStream(String),
    /// It has no block.
    #[error("the journal {0} has no finished block yet; run it first")]
    Empty(String),
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
}

/// Where a journal lives: a file, or what a test puts in its place. Reading begins at its start, writing goes to its end.
pub trait Medium: Read + Write + Send {
    /// Keeps the first `length` bytes only.
    ///
    /// # Errors
    /// Where that is impossible.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Returns when all that was written will survive a loss of power.
    ///
    /// # Errors
    /// Where it might not.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A journal open for writing. No other process can open it as long as this lives.
pub struct Journal<S: Subject = Header> {
    medium: Box<dyn Medium>,
    name: String,
    /// What it holds; `None` until it has a header.
    contents: Option<Contents<S>>,
    /// Bytes of the lines that are whole.
    length: u64,
    broken: bool,
}

impl<S: Subject> Journal<S> {
    /// Opens the journal at `path` and reads it; an empty one is made where there is no file.
    ///
    /// # Errors
    /// [`JournalError`]: where it cannot be opened, is no journal, is damaged, or is open in another process.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let name = path.display().to_string();
        let unreadable = |source| JournalError::Unreadable { name: name.clone(), source };
        if let Ok(found) = std::fs::metadata(path) {
            let reasons =
                [(!found.is_file(), "it is not a regular file"), (found.permissions().readonly(), "it is read-only")];
            if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
                return Err(JournalError::NoJournal { name, reason });
            }
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(unreadable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked(name)),
            Err(TryLockError::Error(source)) => return Err(unreadable(source)),
        }
        sync_name(path).map_err(unreadable)?;
        Self::on(&name, Box::new(file))
    }

    /// Reads the journal on `medium`, which messages call `name`.
    ///
    /// # Errors
    /// As those of [`Journal::open`].
    pub fn on(name: &str, mut medium: Box<dyn Medium>) -> Result<Self, JournalError> {
        let Whole { contents, length } = Whole::read(name, &mut BufReader::new(&mut medium))?;
        Ok(Self { medium, name: name.to_owned(), contents, length, broken: false })
    }

    /// What it is of, if it has begun.
    #[must_use]
    pub fn header(&self) -> Option<&S> {
        self.contents.as_ref().map(Contents::header)
    }

    /// Begins the journal of the run that `header` describes, or goes on with it. A torn line is cut off.
    ///
    /// # Errors
    /// [`JournalError::Differs`] where it is of another run, others where it cannot be written.
    pub fn begin(&mut self, header: S) -> Result<(), JournalError> {
        if self.contents.is_some() {
            self.require(&header)?;
            let length = self.length;
            return self.write(|medium| medium.cut(length).and_then(|()| medium.sync()));
        }
        let contents = Contents::empty(&self.name, header)?;
        self.write(|medium| {
            medium.cut(0)?;
            medium.write_all(contents.header_line.as_bytes())?;
            medium.sync()
        })?;
        self.length = contents.header_line.len() as u64;
        self.contents = Some(contents);
        Ok(())
    }

    /// Refuses a run that it is not of.
    ///
    /// # Errors
    /// [`JournalError::Differs`].
    pub fn require(&self, header: &S) -> Result<(), JournalError> {
        self.contents().require(header)
    }

    /// What it holds.
    ///
    /// # Panics
    /// Before [`Journal::begin`].
    #[must_use]
    pub fn contents(&self) -> &Contents<S> {
        self.contents.as_ref().expect("a journal is begun before it is used")
    }

    /// Adds a finished block; it is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError::Unwritable`]: the block may then be there or not, and nothing can be added any more.
    ///
    /// # Panics
    /// Before [`Journal::begin`].
    pub fn append(&mut self, entry: Entry<S::Tally>) -> Result<(), JournalError> {
        let stored = self.contents().seal(entry)?;
        self.write(|medium| {
            medium.write_all(stored.line.as_bytes())?;
            medium.sync()
        })?;
        self.length += stored.line.len() as u64;
        let name = self.name.clone();
        self.contents.as_mut().expect("it was begun").insert(stored, &name)?;
        Ok(())
    }

    /// After a write that failed nobody knows what is on the medium until it is read again.
    fn write(&mut self, write: impl FnOnce(&mut dyn Medium) -> io::Result<()>) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken(self.name.clone()));
        }
        write(&mut *self.medium).map_err(|source| {
            self.broken = true;
            JournalError::Unwritable { name: self.name.clone(), source }
        })
    }
}

impl<S: Subject> Contents<S> {
    /// Refuses a run that it is not of.
    ///
    /// # Errors
    /// [`JournalError::Differs`]; [`JournalError::Computed`] where `header` has another value of what is computed.
    pub fn require(&self, header: &S) -> Result<(), JournalError> {
        let (name, differences) = (self.name.clone(), self.header.differences(header));
        if differences.is_empty() {
            return Ok(());
        }
        let is_same = header.id() == self.id;
        Err(if is_same {
            JournalError::Computed { name, differences }
        } else {
            JournalError::Differs { name, differences }
        })
    }
}

/// Makes the name of a new file survive a loss of power.
#[cfg(unix)]
fn sync_name(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // Some file systems have nothing to do here and say so by an error.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

#[cfg(not(unix))]
fn sync_name(_: &Path) -> io::Result<()> {
    Ok(())
}
