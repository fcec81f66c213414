//! Which backend a run gets.

use super::gpu::{Gpu, Tuning};
use super::{Backend, BackendError, Host, Pool, Profiles, StreamKind};
use crate::process::ProcessSpec;
use std::time::Duration;

/// The backends by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// Profiles for many bins (from 2^22, by a fixed rule); else a real GPU if there is one, else the CPU
    #[default]
    Auto,
    /// The GPU, or those that --gpu names
    Gpu,
    /// All GPUs, or those that --gpu names, and the CPU together
    All,
    /// The fast CPU path
    Cpu,
    /// The plain definition
    Reference,
    /// The numbers of bins by load, whose law is the same, but not the digits of a result; hardly slower for more bins
    Profile,
}

impl Choice {
    /// What [`Choice::Auto`] is for `process`: profiles by the rule of
    /// [`Model::prefers_profile`](crate::process::Model::prefers_profile), unless the loads of single bins are wanted; whether it is the GPU or the CPU
    /// else, which give the same bits, is open. The other choices are what they are.
    #[must_use]
    pub fn resolve(self, process: &ProcessSpec, keep_loads: bool) -> Choice {
        match self {
            Choice::Auto if !keep_loads && process.prefers_profile() => Choice::Profile,
            other => other,
        }
    }

    /// Which random numbers the backend will draw, whichever it is.
    #[must_use]
    pub fn stream(self) -> StreamKind {
        match self {
            Choice::Auto | Choice::Gpu | Choice::All | Choice::Cpu | Choice::Reference => StreamKind::Bins,
            Choice::Profile => StreamKind::Profile,
        }
    }
}

/// How to find and drive a GPU.
#[derive(Clone, Debug)]
pub struct Options {
    /// Adapters by index, part of the name, or `pci:ADDRESS`, with commas between several; or `all`. The first fitting one
    /// where there is none.
    pub gpu: Option<String>,
    /// Whether a software adapter may be used.
    pub allow_software: bool,
    /// Time that one submission to the GPU should take.
    pub submit_budget: Duration,
    /// Layout and the like, where the automatic choice is not wanted.
    pub tuning: Tuning,
}

impl Default for Options {
    fn default() -> Self {
        Self { gpu: None, allow_software: false, submit_budget: Duration::from_millis(100), tuning: Tuning::default() }
    }
}

/// Opens the backends that `choice` and `options` ask for. Each GPU is compared with the reference first.
///
/// # Errors
/// [`BackendError::NoAdapter`] where a GPU was asked for and none fits; the message lists what there is.
/// [`BackendError::SelfCheck`] where the GPU computes wrongly. With [`Choice::Auto`] the CPU is taken only where there
/// is no GPU: one that is named and missing, or that is there and fails, is an error. Whether a process had better run on
/// profiles is [`Choice::resolve`]'s to say.
pub fn open(choice: Choice, options: &Options) -> Result<Pool, BackendError> {
    match choice {
        Choice::Reference => Ok(Host::reference().into()),
        Choice::Cpu => Ok(Host::cpu().into()),
        Choice::Profile => Ok(Profiles.into()),
        Choice::Gpu => Pool::new(open_gpus(options)?),
        Choice::Auto => match open_gpus(options) {
            Err(BackendError::NoAdapter(_)) if options.gpu.is_none() => Ok(Host::cpu().into()),
            gpus => Pool::new(gpus?),
        },
        Choice::All => {
            let gpu = Some(options.gpu.clone().unwrap_or_else(|| "all".to_owned()));
            let mut backends = open_gpus(&Options { gpu, ..options.clone() })?;
            // A GPU wants a core whenever its host thread has something to do.
            let threads = rayon::current_num_threads().saturating_sub(backends.len()).max(1);
            backends.push(Box::new(Host::cpu_apart(threads)?));
            Pool::new(backends)
        }
    }
}

fn open_gpus(options: &Options) -> Result<Vec<Box<dyn Backend>>, BackendError> {
    let mut backends: Vec<Box<dyn Backend>> = Vec::new();
    for mut gpu in Gpu::open_each(options)? {
        gpu.self_check()?;
        backends.push(Box::new(gpu));
    }
    Ok(backends)
}
