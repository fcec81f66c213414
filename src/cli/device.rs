//! Where to compute, as flags.

use super::exit::Refused;
use crate::backend::{self, Choice, Machine, Pool};
use crate::process::ProcessSpec;
use crate::run::Event;
use anyhow::Context;
use std::time::Duration;

/// Said where `auto` means profiles.
const AUTO_RULE: &str = " (auto: n is large; --backend cpu or gpu draws another sample of the same law)";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Backend")]
pub(super) struct Device {
    /// Where to compute; the result is the same, except on profiles. `auto` with --gpu or --dump-loads is never on
    /// profiles
    #[arg(long, global = true, value_enum, default_value_t)]
    backend: Choice,
    /// Adapters: index, part of the name, or pci:ADDRESS, with commas between several; or all (see `leakybins devices`)
    #[arg(long, global = true, value_name = "SELECTOR")]
    gpu: Option<String>,
    /// Accept a software adapter as GPU
    #[arg(long, global = true)]
    allow_software: bool,
    /// Milliseconds that one submission to the GPU should take; less keeps a desktop responsive
    #[arg(long, global = true, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000),
          default_value = "100")]
    submit_ms: u64,
    #[command(flatten)]
    pub(super) threads: Threads,
}

#[derive(Debug, clap::Args)]
pub(super) struct Threads {
    /// CPU threads [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
}

impl Threads {
    /// Starts them.
    pub(super) fn start(&self) -> anyhow::Result<()> {
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
            pool.build_global().context("the threads of the CPU")?;
        }
        Ok(())
    }

    /// Starts them for a command that runs on one backend of the CPU; says which it is unless `quiet`.
    pub(super) fn start_for(&self, backend: &'static str, quiet: bool) -> anyhow::Result<()> {
        self.start()?;
        if !quiet {
            let threads = rayon::current_num_threads();
            tracing::info!(backend, threads = threads as u64, "backend: {backend}, {threads} threads");
        }
        Ok(())
    }
}

impl Device {
    /// Refuses flags that contradict each other.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if matches!(self.backend, Choice::Cpu | Choice::Reference | Choice::Profile)
            && (self.gpu.is_some() || self.allow_software)
        {
            let reason =
                "--gpu and --allow-software choose an adapter, but the CPU was asked for; leave out one or the other";
            return Err(Refused(reason.to_owned()));
        }
        Ok(())
    }

    /// The backend for `process`, which follows from the command alone. Who names an adapter wants a GPU.
    pub(super) fn choice(&self, process: &ProcessSpec, keep_loads: bool) -> Choice {
        self.general().resolve(process, keep_loads)
    }

    /// The choice before the process is looked at.
    pub(super) fn general(&self) -> Choice {
        match self.backend {
            Choice::Auto if self.gpu.is_some() => Choice::Gpu,
            other => other,
        }
    }

    /// Opens the backends of `choice`; says which they are unless `quiet`.
    pub(super) fn open(&self, choice: Choice, quiet: bool) -> anyhow::Result<Pool> {
        let options = backend::Options {
            gpu: self.gpu.clone(),
            allow_software: self.allow_software,
            submit_budget: Duration::from_millis(self.submit_ms),
            ..backend::Options::default()
        };
        let pool = backend::open(choice, &options)?;
        if let Some(Machine { backend, adapter }) = Machine::joined(&pool.machines()).filter(|_| !quiet) {
            let rule = if choice == Choice::Profile && self.backend == Choice::Auto { AUTO_RULE } else { "" };
            tracing::info!(
                backend,
                adapter,
                threads = rayon::current_num_threads() as u64,
                "backend: {backend}, {}{rule}",
                adapter.as_ref().map_or_else(|| format!("{} threads", rayon::current_num_threads()), Clone::clone)
            );
        }
        Ok(pool)
    }
}

/// Tells what happened to a device, or to the snapshot of a block.
pub(super) fn warn(event: &Event) {
    match event {
        Event::DeviceRenewed { device, reason } => {
            let device = name(device);
            tracing::warn!(
                device,
                reason,
                "{device} was lost ({reason}); its block is computed again, and it is used again"
            );
        }
        Event::DeviceRetired { device, reason } => {
            let device = name(device);
            tracing::warn!(device, reason, "{device} retires ({reason}); the others go on without it");
        }
        Event::FellBackToCpu { device, reason } => {
            let device = name(device);
            tracing::warn!(device, reason, "{device} was lost ({reason}); all that is left runs on the CPU");
        }
        Event::SnapshotTakenUp { file } => tracing::info!(file, "a block goes on from its snapshot {file}"),
        Event::SnapshotIgnored { file, reason } => {
            tracing::warn!(file, reason, "the snapshot {file} is ignored ({reason}); its block begins anew");
        }
        Event::SnapshotFailed { file, reason } => {
            tracing::warn!(
                file,
                reason,
                "the snapshot {file} could not be written ({reason}); the run goes on without it"
            );
        }
    }
}

/// What people call a device.
fn name(device: &Machine) -> &str {
    device.adapter.as_deref().unwrap_or(&device.backend)
}
