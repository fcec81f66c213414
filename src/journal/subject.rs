//! What a journal can be of.

use super::JournalError;
use super::line::sha256;
use crate::backend::Machine;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Which command a journal is of; `kind` in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// `leakybins run`.
    #[serde(rename = "journal")]
    Run,
    /// `leakybins tail`.
    #[serde(rename = "tail-journal")]
    Tail,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Run, Self::Tail];

    /// How every journal of this kind begins.
    pub(super) fn beginning(self) -> &'static str {
        match self {
            Kind::Run => "{\"schema\":1,\"kind\":\"journal\",",
            Kind::Tail => "{\"schema\":1,\"kind\":\"tail-journal\",",
        }
    }

    /// The command, as on the command line.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Tail => "tail",
        }
    }

    /// The kind of a journal that begins like this; `None` where no journal does, or too little is there.
    pub(super) fn of_beginning(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| bytes.starts_with(kind.beginning().as_bytes()))
    }

    /// The kind of the journal at `path`; `None` where it is none, or not even begun.
    ///
    /// # Errors
    /// [`JournalError::Unreadable`].
    pub fn of(path: &Path) -> Result<Option<Self>, JournalError> {
        let longest = Self::ALL.map(|kind| kind.beginning().len() as u64).into_iter().max().unwrap_or_default();
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(longest).read_to_end(&mut bytes));
        read.map_err(|source| JournalError::Unreadable { name: path.display().to_string(), source })?;
        Ok(Self::of_beginning(&bytes))
    }
}

/// What a journal is of: an experiment made of blocks, each a function of this alone, on whatever machine it is computed.
///
/// As JSON it is the header of the journal, but for `schema`, `kind` and `id`.
pub trait Subject: Clone + Debug + Serialize + DeserializeOwned {
    /// The command.
    const KIND: Kind;
    /// What is counted, in the plural: a block is a range of them.
    const UNITS: &'static str;
    /// What a block is called, in the plural.
    const BLOCKS: &'static str;
    /// Names of fields that are computed from the others, and so no part of the id.
    const COMPUTED: &'static [&'static str];
    /// What is seen in a block. Its JSON must be exact: two that differ have different texts.
    type Tally: Clone + Debug + PartialEq + Serialize + DeserializeOwned;
    /// What dividing and checking need beside the header, made once.
    type Built: Clone + Debug;

    /// Checks the header and makes what is needed beside it.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn build(&self) -> Result<Self::Built, String>;

    /// Seed of all randomness.
    fn seed(&self) -> u64;

    /// How many units there are, at most.
    fn units(&self) -> u64;

    /// The block that begins with unit `first`, which is below [`units`](Self::units).
    fn block(&self, built: &Self::Built, first: u64) -> Range<u64>;

    /// Whether `tally` can be that of `block`.
    fn is_plausible(&self, built: &Self::Built, tally: &Self::Tally, block: &Range<u64>) -> bool;

    /// All that has to be equal in two journals of the same experiment: each field by name, as JSON.
    fn fields(&self) -> BTreeMap<String, String>;

    /// The strong id, in hexadecimal digits: equal for two headers if and only if they promise the same samples.
    #[must_use]
    fn id(&self) -> String {
        let mut fields = self.fields();
        fields.retain(|name, _| !Self::COMPUTED.contains(&name.as_str()));
        sha256(fields.iter().map(|(name, value)| format!("{name}={value}\n")))
    }

    /// In what two headers differ.
    #[must_use]
    fn differences(&self, other: &Self) -> Vec<Difference> {
        differences(&self.fields(), &other.fields())
    }
}

/// A finished block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = crate::stats::Tally> {
    /// Its replicas, or other [units](Subject::UNITS).
    pub block: Range<u64>,
    /// What was seen.
    pub tally: T,
    /// Its part of the wall time of the run, in whole microseconds once it is in a journal.
    pub elapsed: Duration,
    /// What computed it.
    pub machine: Machine,
}

/// A field in which two things differ that should be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// Its value in the journal, as JSON; `None` where it is absent.
    pub journal: Option<String>,
    /// Its value in what the journal is compared with.
    pub other: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        write!(f, "{}: {}, now {}", self.field, value(&self.journal), value(&self.other))
    }
}

/// The fields of a header by name, as JSON, without the version that began the journal.
pub(crate) fn fields(header: &impl Serialize) -> BTreeMap<String, String> {
    let mut header = serde_json::to_value(header).expect("a header is made of plain values");
    header.as_object_mut().expect("a header is an object").remove("version");
    flat(&header)
}

/// The fields in which two maps differ, by name.
pub(super) fn differences(journal: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<Difference> {
    let mut names: Vec<&String> = journal.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let differing = names.into_iter().filter(|name| journal.get(*name) != other.get(*name));
    let value = |of: &BTreeMap<String, String>, name| of.get(name).cloned();
    differing
        .map(|name| Difference { field: name.clone(), journal: value(journal, name), other: value(other, name) })
        .collect()
}

/// The values of nested objects, as JSON, by the path to each: `parameters.n`, and `levels.0.ancestors` in a list of
/// objects.
pub(super) fn flat(value: &Value) -> BTreeMap<String, String> {
    let below = |(name, value): (String, &Value)| {
        let join = move |path: String| if path.is_empty() { name.clone() } else { format!("{name}.{path}") };
        flat(value).into_iter().map(move |(path, text)| (join(path), text))
    };
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).flat_map(below).collect(),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().enumerate().map(|(i, value)| (i.to_string(), value)).flat_map(below).collect()
        }
        _ => BTreeMap::from([(String::new(), value.to_string())]),
    }
}
