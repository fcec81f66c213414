//! Where blocks of replicas are computed. Every backend gives the same bits, but the one on profiles, which gives
//! another sample of the same law ([`StreamKind`]).

mod control;
pub mod gpu;
mod host;
pub(crate) mod memory;
mod pool;
mod profile;
mod segments;
mod select;

pub use control::Control;
pub use host::Host;
pub(crate) use host::advance;
pub use pool::{Machine, Pool};
pub use profile::{ProfileJob, Profiles};
pub use segments::{Begun, Keeper, Partial, Unkept};
pub use select::{Choice, Options, open};

use crate::process::leaky::{Arrivals, Leaky, Parameters};
use crate::process::start::Start;
use crate::process::{Measure, Process};
use crate::profile::PROFILE_STREAM_VERSION;
use crate::run::Schedule;
use crate::stats::Tally;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A run bin by bin.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The process.
    pub process: &'a dyn Process,
    /// Seed of all randomness.
    pub seed: u64,
    /// Rounds and sampling.
    pub schedule: Schedule,
    /// Whether the final loads are wanted.
    pub keep_loads: bool,
}

/// What a backend is asked to run.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// A run bin by bin.
    Bins(Job<'a>),
    /// A run on profiles.
    Profile(ProfileJob<'a>),
}

impl Work<'_> {
    /// Rounds of each replica.
    pub(crate) fn rounds(&self) -> u64 {
        match self {
            Work::Bins(job) => job.schedule.rounds,
            Work::Profile(job) => job.schedule.rounds,
        }
    }

    /// Balls of the replica that was left in `state` ([`Begun::state`]); `None` where no replica of this run can be in it.
    pub(crate) fn balls_of(&self, state: &[u64]) -> Option<u128> {
        match self {
            Work::Bins(job) => {
                let fits = state.len() == job.process.words() && state.iter().all(|&word| u32::try_from(word).is_ok());
                fits.then(|| state.iter().map(|&word| u128::from(word)).sum())
            }
            Work::Profile(job) => job.balls_of(state),
        }
    }
}

/// The result of a block of replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockResult {
    /// What was seen.
    pub tally: Tally,
    /// Final loads, replica-major, if they were asked for.
    pub loads: Vec<u32>,
}

/// What went wrong in a backend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The run was asked to stop.
    #[error("the run was interrupted")]
    Cancelled,
    /// Balls appeared or vanished: the hardware, the driver or the program computed wrongly.
    #[error(
        "replicas {first}..{end} do not conserve balls (started with {initial}, {arrived} arrived, {departed} left, \
         {left} remain): this backend computes wrongly here; use --backend cpu and report the adapter and driver"
    )]
    Conservation {
        /// First replica of the block.
        first: u64,
        /// One past its last replica.
        end: u64,
        /// Balls before the first round.
        initial: u128,
        /// Balls that arrived.
        arrived: u128,
        /// Balls that were deleted.
        departed: u128,
        /// Balls after the last round.
        left: u128,
    },
    /// The run does not fit the memory there is.
    #[error("{what} needs {needed} MiB but {available} MiB are available; {remedy}")]
    Memory {
        /// What needs the memory.
        what: String,
        /// MiB needed.
        needed: u64,
        /// MiB available.
        available: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// No adapter fits the request.
    #[error("{0}")]
    NoAdapter(String),
    /// The adapter's answers differ from the reference.
    #[error("{0}")]
    SelfCheck(String),
    /// The device cannot do what was asked for.
    #[error("{0}")]
    Unsupported(String),
    /// The device reported an error.
    #[error("{0}; the block can be computed with --backend cpu")]
    Device(String),
    /// The device was lost.
    #[error("the device was lost ({0}); run again, or use --backend cpu")]
    Lost(String),
}

/// A way to draw the random numbers of a process. All have the same law, and each its own bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Ball by ball into single bins.
    Bins,
    /// Whole numbers of balls and bins, by load.
    Profile,
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamKind::Bins => "bins",
            StreamKind::Profile => "profile",
        })
    }
}

impl StreamKind {
    /// Version of the stream on profiles, for what is drawn from it: [`PROFILE_STREAM_VERSION`].
    #[must_use]
    pub fn profile_version(self) -> Option<u32> {
        (self == StreamKind::Profile).then_some(PROFILE_STREAM_VERSION)
    }

    /// What a backend of this stream says to work of the other.
    fn refuse(self) -> BackendError {
        BackendError::Unsupported(
            match self {
                StreamKind::Bins => "this backend simulates single bins and was given a profile; use --backend profile",
                StreamKind::Profile => "this backend simulates profiles and was given single bins; use --backend cpu",
            }
            .to_owned(),
        )
    }
}

/// A place that computes blocks.
pub trait Backend: Send {
    /// Its name as in `--backend`.
    fn name(&self) -> &'static str;

    /// The adapter it runs on, for people; `None` on the CPU.
    fn adapter(&self) -> Option<String> {
        None
    }

    /// Which random numbers it draws: results of one stream are equal to the last digit.
    fn stream(&self) -> StreamKind {
        StreamKind::Bins
    }

    /// Runs all rounds of the replicas in `block`; `work` is of the kind that [`stream`](Self::stream) says.
    ///
    /// # Errors
    /// [`BackendError`]; a result is returned only if it conserves balls.
    fn run(&mut self, work: &Work<'_>, block: Range<u64>, control: &Control) -> Result<BlockResult, BackendError> {
        self.run_kept(work, block, control, &Unkept)
    }

    /// The same from where `keeper` has the block, which is given the block in the middle when it asks for it. A backend
    /// that does not know how begins the block anew.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        keeper: &dyn Keeper,
    ) -> Result<BlockResult, BackendError>;

    /// Starts afresh after [`BackendError::Lost`], and checks what it gets as [`open`] does.
    ///
    /// # Errors
    /// Where that is impossible, or the check fails.
    fn renew(&mut self) -> Result<(), BackendError> {
        Err(BackendError::Lost("this backend cannot be started again".to_owned()))
    }
}

/// Whether `backend` gives the reference's loads and tally in a small run.
///
/// # Errors
/// Where the run fails.
pub(crate) fn agrees_with_reference(backend: &mut dyn Backend) -> Result<bool, BackendError> {
    let parameters = Parameters { n: 1000, lambda: 0.95, d: 3, arrivals: Arrivals::Poisson, start: Start::OneBin(50) };
    let process = Leaky::new(&parameters).expect("these parameters are valid");
    let schedule = Schedule { rounds: 60, burn_in: 10, every: 3, loads_every: 2, measure: Measure::Post };
    let work = Work::Bins(Job { process: &process, seed: 0x1EA4_B125, schedule, keep_loads: true });
    let expected = Host::reference().run(&work, 0..5, &Control::default())?;
    Ok(backend.run(&work, 0..5, &Control::default())? == expected)
}

/// Refuses a tally that does not conserve balls.
pub(crate) fn check_conservation(tally: &Tally, block: &Range<u64>) -> Result<(), BackendError> {
    if tally.conserves_balls() {
        return Ok(());
    }
    Err(BackendError::Conservation {
        first: block.start,
        end: block.end,
        initial: tally.initial_balls,
        arrived: tally.flow.arrived,
        departed: tally.flow.departed,
        left: tally.final_balls,
    })
}
