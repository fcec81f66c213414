//! `leakybins run PROCESS`: simulate and report.

use super::atomic::AtomicFile;
use super::exit::{Exit, Refused};
use super::progress::Progress;
use super::signals::interruptible;
use super::{print, say};
use crate::backend::{self, Backend, BackendError, Choice};
use crate::number::count;
use crate::process::{Measure, ProcessSpec};
use crate::report::{Format, Report};
use crate::run::{self, BurnIn, Event, RunError, Schedule, Spec, Stopping};
use crate::stats::estimate::Band;
use crate::stats::interval::Confidence;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  leakybins run leaky
  leakybins run leaky --n 2^16 --lambda 1-2^-7 --d 1 --rounds 1e5 --seed 1
  leakybins run leaky --n 1e6 --replicas 64 --backend gpu --format json -o result.json
  leakybins run leaky --start one-bin:1e4 --rounds 2e4 --burn-in 0 --every 100
  leakybins run leaky --d 1 --rounds 1e4 --burn-in auto
  leakybins run leaky --rel-err 0.05 --at 8 --max-time 10m
  leakybins run leaky --format csv --seed 1 | head

All flags of a process: leakybins run PROCESS --help.
Numbers may be written 1_000_000, 1e6, 2^20, 10k or 4Mi, rates 0.95, 1-1e-4 or 1-2^-10.
The same seed and parameters give the same result to the last digit on every backend.
Ctrl-C or SIGTERM stops a run without a result; a second one stops it at once.";

/// Arguments of `leakybins run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct RunArgs {
    #[command(subcommand)]
    process: ProcessSpec,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    device: Device,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
struct Sampling {
    /// Independent replicas; with a rule for stopping the most there are [default: 256, or 2^20 with a rule]
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    replicas: Option<u64>,
    /// Rounds of each replica
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "2000")]
    rounds: u64,
    /// Rounds before sampling begins; auto: as many as a pilot needs to forget its start [default: half the rounds]
    #[arg(long, global = true, value_name = "COUNT|auto", value_parser = wait)]
    burn_in: Option<Wait>,
    /// Sample every so many rounds after the burn-in [default: 10, or all of them if there are fewer]
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    every: Option<u64>,
    /// Add the loads of all bins in every so many sampled rounds; 0: never
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "1")]
    loads_every: u64,
    /// Confidence of the intervals
    #[arg(long, global = true, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Whether the intervals of P(max load >= k) hold each for itself or all at once
    #[arg(long, global = true, value_enum, default_value_t)]
    band: Band,
    /// Observe the loads before or after the deletions of a round
    #[arg(long, global = true, value_enum, default_value_t)]
    measure: Measure,
    /// Seed of all randomness [default: a fresh one, which is shown]
    #[arg(long, global = true, value_parser = count)]
    seed: Option<u64>,
}

/// How long to wait before sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// So many rounds.
    Rounds(u64),
    /// As many as a pilot finds necessary.
    Auto,
}

fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "auto" => Ok(Wait::Auto),
        _ => count(text).map(Wait::Rounds).map_err(|error| format!("{error}, or auto")),
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Stopping")]
struct Rules {
    /// Stop when the interval of P(max load >= K), or of the mean max load without --at, is this narrow: half its width
    /// over the estimate
    #[arg(long, global = true, value_name = "E", allow_hyphen_values = true)]
    rel_err: Option<f64>,
    /// The level K that --rel-err and --max-hits are about
    #[arg(long, global = true, value_name = "K", value_parser = count)]
    at: Option<u64>,
    /// Stop when so many samples have max load >= K
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    max_hits: Option<u64>,
    /// Stop before it takes longer: seconds, or 90s, 10m, 2h
    #[arg(long, global = true, value_name = "TIME", value_parser = seconds)]
    max_time: Option<f64>,
}

impl Rules {
    /// The rules, if any is given.
    fn stopping(&self, confidence: f64) -> Option<Stopping> {
        let Self { rel_err, at, max_hits, max_time } = *self;
        let given = rel_err.is_some() || at.is_some() || max_hits.is_some() || max_time.is_some();
        given.then_some(Stopping { at, rel_err, max_hits, max_time, confidence })
    }
}

/// A time as a plain number of seconds or with units.
fn seconds(text: &str) -> Result<f64, String> {
    let with_units = || humantime::parse_duration(text).map(|time| time.as_secs_f64()).ok();
    let unreadable = || format!("'{text}' is not a time; write seconds, or 90s, 10m, 2h 30m");
    text.parse().ok().or_else(with_units).ok_or_else(unreadable)
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Backend")]
struct Device {
    /// Where to compute; the result is the same
    #[arg(long, global = true, value_enum, default_value_t)]
    backend: Choice,
    /// Adapter: its index, a part of its name, or pci:ADDRESS (see `leakybins devices`)
    #[arg(long, global = true, value_name = "SELECTOR")]
    gpu: Option<String>,
    /// Accept a software adapter as GPU
    #[arg(long, global = true)]
    allow_software: bool,
    /// Milliseconds that one submission to the GPU should take; less keeps a desktop responsive
    #[arg(long, global = true, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000),
          default_value = "100")]
    submit_ms: u64,
    /// CPU threads [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct Output {
    /// Form of the result
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
    /// File for the result, which appears whole or not at all [default: standard output]
    #[arg(short, long, global = true, value_name = "FILE", value_parser = file)]
    output: Option<PathBuf>,
    /// File for the final loads of all bins: u32, little-endian, replica after replica
    #[arg(long, global = true, value_name = "FILE", value_parser = file)]
    dump_loads: Option<PathBuf>,
    /// Show neither the backend nor the progress
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// A file name; `-` is none.
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err("this is no file name; name a file, or leave the option out".to_owned()),
        _ => Ok(text.into()),
    }
}

impl Sampling {
    /// The specification, with the defaults that depend on other values filled in.
    fn spec(&self, process: ProcessSpec, seed: u64, stopping: Option<Stopping>) -> Spec {
        let replicas = self.replicas.unwrap_or(if stopping.is_some() { 1 << 20 } else { 256 });
        let burn_in = match self.burn_in {
            None => self.rounds / 2,
            Some(Wait::Rounds(rounds)) => rounds,
            Some(Wait::Auto) => 0,
        };
        Spec { process, seed, replicas, schedule: self.schedule(burn_in), stopping }
    }

    fn schedule(&self, burn_in: u64) -> Schedule {
        let Sampling { rounds, loads_every, measure, .. } = *self;
        let every = self.every.unwrap_or_else(|| rounds.saturating_sub(burn_in).min(10));
        Schedule { rounds, burn_in, every, loads_every, measure }
    }
}

impl Device {
    fn open(&self) -> Result<Box<dyn Backend>, BackendError> {
        let options = backend::Options {
            gpu: self.gpu.clone(),
            allow_software: self.allow_software,
            submit_budget: Duration::from_millis(self.submit_ms),
            ..backend::Options::default()
        };
        backend::open(self.backend, &options)
    }
}

/// Runs the process. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: RunArgs) -> anyhow::Result<Exit> {
    let RunArgs { process, sampling, rules, device, output } = arguments;
    // 53 bits, so that the shown seed survives a JSON reader that knows only floating-point numbers.
    let seed = sampling.seed.unwrap_or_else(|| rand::random::<u64>() >> 11);
    let mut spec = sampling.spec(process, seed, rules.stopping(sampling.confidence));
    spec.validate()?;
    let confidence = Confidence::new(sampling.confidence)?;
    let process = spec.process.build()?;
    if matches!(device.backend, Choice::Cpu | Choice::Reference) && (device.gpu.is_some() || device.allow_software) {
        let reason =
            "--gpu and --allow-software choose an adapter, but the CPU was asked for; leave out one or the other";
        return Err(Refused(reason.to_owned()).into());
    }
    let result_file = output.output.as_deref().map(AtomicFile::create).transpose()?;
    let mut loads_file = output.dump_loads.as_deref().map(AtomicFile::create).transpose()?;
    if result_file.as_ref().zip(loads_file.as_ref()).is_some_and(|(result, loads)| result.is_same_as(loads)) {
        return Err(Refused("--output and --dump-loads name the same file; name two".to_owned()).into());
    }
    if let Some(threads) = device.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global().context("the threads of the CPU")?;
    }
    for warning in spec.process.warnings() {
        say(&format!("warning: {warning}"));
    }
    if sampling.seed.is_none() {
        say(&format!("seed: {seed} (fresh; --seed {seed} gives this result again)"));
    }
    let control = interruptible()?;
    let backend = device.open()?;
    if !output.quiet {
        say(&format!("backend: {}", describe(&*backend)));
    }

    if sampling.burn_in == Some(Wait::Auto) {
        let found = BurnIn::find(&spec, &control)?;
        say(&format!("burn-in: {found}"));
        spec.schedule = sampling.schedule(found.rounds);
        spec.validate()?;
        control.retract(control.rounds());
    }

    let all_rounds = spec.replicas.saturating_mul(spec.schedule.rounds);
    let progress = Progress::new(all_rounds, process.expected_balls(), !output.quiet);
    let outcome = progress.watch(&control, || {
        let dump = loads_file.as_mut().map(|file| file as &mut dyn Write);
        run::run(&spec, backend, &control, dump, &mut |event| progress.say(&warn(&event)))
    });
    let outcome = outcome.map_err(|error| match error {
        RunError::Backend(BackendError::Cancelled) => anyhow::Error::from(error)
            .context(format!("stopped after {} of {all_rounds} rounds over all replicas; no result", control.rounds())),
        other => other.into(),
    })?;
    // The result comes last: where it is, everything is.
    if let Some(file) = loads_file {
        file.commit().context("the final loads could not be written; check the path and the space left")?;
    }
    let report = Report::new(&spec, process.bins(), &outcome, confidence, sampling.band);
    for warning in report.warnings() {
        say(&format!("warning: {warning}"));
    }
    publish(&report, output.format, result_file)?;
    Ok(Exit::Done)
}

/// Writes the result where it belongs.
fn publish(report: &Report<'_>, format: Format, file: Option<AtomicFile>) -> anyhow::Result<()> {
    const REMEDY: &str = "the result could not be written; check the path and the space left";
    let bytes = report.render(format)?;
    match file {
        Some(mut file) => file.write_all(&bytes).and_then(|()| file.commit()).context(REMEDY),
        None => print(&bytes).context(REMEDY),
    }
}

fn describe(backend: &dyn Backend) -> String {
    backend.adapter().map_or_else(
        || format!("{}, {} threads", backend.name(), rayon::current_num_threads()),
        |adapter| format!("{}, {adapter}", backend.name()),
    )
}

fn warn(event: &Event) -> String {
    match event {
        Event::DeviceRenewed(reason) => {
            format!("warning: the device was lost ({reason}); its block is computed again on a new one")
        }
        Event::FellBackToCpu(reason) => {
            format!("warning: the device was lost ({reason}); this block and all later ones run on the CPU")
        }
    }
}
