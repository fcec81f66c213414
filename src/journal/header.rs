//! What a journal of `leakybins run` is of: its header.

use super::Contents;
use super::line::sha256;
use super::subject::{Kind, Subject, fields};
use super::tally::is_plausible;
use crate::backend::StreamKind;
use crate::process::Form;
use crate::process::start::Start;
use crate::profile::Thrower;
use crate::rng::stream::Stream;
use crate::rng::{Domain, Draws, STREAM_VERSION};
use crate::run::Spec;
use crate::stats::Tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Everything that fixes the samples of a run, and the version that began the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    version: String,
    stream_version: u32,
    stream: StreamKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile_stream_version: Option<u32>,
    #[serde(flatten)]
    spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_sha256: Option<String>,
}

impl Header {
    /// The header of a run of `spec`, which `process` was built from; its form says which random numbers are drawn.
    #[must_use]
    pub fn new(spec: &Spec, process: &Form) -> Self {
        // The file may change: what counts is what was read.
        let start_sha256 = matches!(spec.process.start(), Start::File(_)).then(|| start_sha256(spec.seed, process));
        let (version, stream) = (env!("CARGO_PKG_VERSION").to_owned(), process.stream());
        let (stream_version, profile_stream_version) = (STREAM_VERSION, stream.profile_version());
        Self { version, stream_version, stream, profile_stream_version, spec: spec.clone(), start_sha256 }
    }

    /// What is run.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Whether this version of leakybins draws the same bits.
    #[must_use]
    pub fn is_of_this_stream(&self) -> bool {
        self.stream_version == STREAM_VERSION && self.profile_stream_version == self.stream.profile_version()
    }

    /// Which random numbers it draws.
    #[must_use]
    pub fn stream(&self) -> StreamKind {
        self.stream
    }
}

impl Subject for Header {
    const KIND: Kind = Kind::Run;
    const UNITS: &'static str = "replicas";
    const BLOCKS: &'static str = "blocks";
    const COMPUTED: &'static [&'static str] = &[];
    type Tally = Tally;
    /// The process. What a file held is in the tallies and need not be here, nor does any start change the division into
    /// blocks: its start is empty.
    type Built = Arc<Form>;

    fn build(&self) -> Result<Arc<Form>, String> {
        self.spec.validate().map_err(|error| error.to_string())?;
        let process = self.spec.process.with_start(Start::Empty).build_for(self.stream);
        process.map(Arc::new).map_err(|error| error.to_string())
    }

    fn seed(&self) -> u64 {
        self.spec.seed
    }

    fn units(&self) -> u64 {
        self.spec.replicas
    }

    fn block(&self, process: &Arc<Form>, first: u64) -> Range<u64> {
        self.spec.block_with(process, first)
    }

    fn is_plausible(&self, process: &Arc<Form>, tally: &Tally, block: &Range<u64>) -> bool {
        is_plausible(tally, block, &self.spec.schedule, process.bins(), self.spec.process.observables())
    }

    fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = fields(self);
        if self.start_sha256.is_some() {
            fields.insert("parameters.start".to_owned(), "\"file\"".to_owned());
        }
        fields
    }
}

impl Contents {
    /// What is run.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        self.header().spec()
    }

    /// The process; its start is empty, whatever that of the run is.
    #[must_use]
    pub fn process(&self) -> &Form {
        &self.built
    }
}

/// The digest of initial loads that no randomness is drawn for.
pub(crate) fn start_sha256(seed: u64, process: &Form) -> String {
    match process {
        Form::Bins(process) => {
            let mut loads = vec![0u32; process.words()];
            process.start(seed, 0, &mut loads);
            sha256(loads.iter().map(|load| load.to_le_bytes()))
        }
        Form::Profile(chain) => {
            let mut stream = Stream::new(&Draws::new(seed, 0, 0), Domain::Start);
            let profile = chain.start(&mut stream, &mut Thrower::default()).bins;
            sha256(profile.levels().iter().flat_map(|level| (0..level.bins).map(|_| (level.load as u32).to_le_bytes())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::leaky::Parameters;
    use crate::process::{Measure, ProcessSpec};
    use crate::run::{Schedule, Stopping};
    use std::fs;

    fn spec(start: Start) -> Spec {
        let process = ProcessSpec::Leaky(Parameters { n: 3, start, ..Parameters::default() });
        let schedule = Schedule { rounds: 20, burn_in: 10, every: 1, loads_every: 1, measure: Measure::Post };
        Spec { process, seed: 1, replicas: 10, schedule, stopping: None }
    }

    fn header(spec: &Spec) -> Header {
        Header::new(spec, &spec.process.build_for(StreamKind::Bins).expect("valid parameters"))
    }

    #[test]
    fn the_id_is_pinned_and_changes_with_everything_that_changes_samples() {
        let spec = spec(Start::Empty);
        let first = header(&spec);
        assert_eq!(first.id(), PINNED);
        assert_eq!(Header { version: "9".to_owned(), ..first.clone() }.id(), first.id());
        let with = |change: &dyn Fn(&mut Spec)| {
            let mut spec = spec.clone();
            change(&mut spec);
            header(&spec)
        };
        let stopping = Stopping { max_time: Some(1.0), confidence: 0.95, ..Stopping::default() };
        for (other, field) in [
            (with(&|s| s.seed = 2), "seed"),
            (with(&|s| s.replicas = 11), "replicas"),
            (with(&|s| s.schedule.rounds = 21), "rounds"),
            (with(&|s| s.schedule.burn_in = 9), "burn_in"),
            (with(&|s| s.schedule.every = 2), "every"),
            (with(&|s| s.schedule.loads_every = 2), "loads_every"),
            (with(&|s| s.schedule.measure = Measure::Pre), "measure"),
            (with(&|s| s.process = s.process.with_start(Start::Each(1))), "parameters.start"),
            (with(&|s| s.process = leaky(4, 0.95)), "parameters.n"),
            (with(&|s| s.process = leaky(3, 0.96)), "parameters.lambda"),
            (with(&|s| s.stopping = Some(stopping)), "stopping.max_time"),
            (Header { stream_version: 0, ..first.clone() }, "stream_version"),
            (Header { stream: StreamKind::Profile, ..first.clone() }, "stream"),
            (Header { profile_stream_version: Some(1), ..first.clone() }, "profile_stream_version"),
        ] {
            assert_ne!(other.id(), first.id(), "{field}");
            let differences = first.differences(&other);
            assert!(differences.iter().any(|difference| difference.field == field), "{field}: {differences:?}");
            assert!(differences.len() == 1 || field.starts_with("stopping"), "{differences:?}");
        }
        let seeds = first.differences(&with(&|s| s.seed = 2));
        assert_eq!(seeds[0].to_string(), "seed: 1, now 2");
    }

    fn leaky(n: u64, lambda: f64) -> ProcessSpec {
        ProcessSpec::Leaky(Parameters { n, lambda, ..Parameters::default() })
    }

    // By hand: printf '%s\n' burn_in=10 every=1 loads_every=1 'measure="post"' 'parameters.arrivals="binomial"'
    // parameters.d=2 parameters.lambda=0.95 parameters.n=3 'parameters.start="empty"' 'process="leaky"' replicas=10
    // rounds=20 seed=1 'stream="bins"' stream_version=1 | sha256sum
    const PINNED: &str = "0442c415d2d889f2db887d7d6743296712f3af40343a3c98e8084711912c5343";

    #[test]
    fn of_a_file_the_loads_count_and_not_the_path() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let with = |name: &str, loads: &str| {
            let path = folder.path().join(name);
            fs::write(&path, loads).expect("a file");
            header(&spec(Start::File(path)))
        };
        let (a, b, c) = (with("a", "1 2 3"), with("b", "1,2,\n3\n"), with("c", "1 2 4"));
        assert_eq!(a.id(), b.id());
        assert_ne!(a.id(), c.id());
        let fields: Vec<_> = a.differences(&c).into_iter().map(|difference| difference.field).collect();
        assert_eq!(fields, ["start_sha256"]);
    }
}
