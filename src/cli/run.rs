//! `leakybins run PROCESS`: simulate and report.

use super::atomic::AtomicFile;
use super::blocks::Blocks;
use super::device::{Device, warn};
use super::exit::{Exit, Refused, Resumable};
use super::journal::{JournalFlags, describe};
use super::output::{Output, file, seed};
use super::progress::{Progress, Show};
use super::signals::{interruptible, stopped};
use crate::backend::{BackendError, Control};
use crate::journal::Header;
use crate::number::count;
use crate::process::{Measure, ProcessSpec};
use crate::report::Report;
use crate::run::{self, BurnIn, RunError, Schedule, Spec, Stopping};
use crate::stats::estimate::Band;
use crate::stats::interval::Confidence;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  leakybins run leaky
  leakybins run leaky --n 2^16 --lambda 1-2^-7 --d 1 --rounds 1e5 --seed 1
  leakybins run leaky --n 1e6 --replicas 64 --backend gpu --format json -o result.json
  leakybins run leaky --start one-bin:1e4 --rounds 2e4 --burn-in 0 --every 100
  leakybins run leaky --d 1 --rounds 1e4 --burn-in auto
  leakybins run leaky --rel-err 0.05 --at 8 --max-time 10m
  leakybins run leaky --n 1e12 --seed 1
  leakybins run leaky --replicas 1e6 --out long.jsonl
  leakybins run leaky --replicas 1e6 --seed 1 --shard 3/8 --out shard-3.jsonl
  leakybins run capped --c 2 --lambda 0.99
  leakybins run repeated --n 2^14 --start each:1
  leakybins run tetris --n 1000
  leakybins run leaky --format csv --seed 1 | head

All flags of a process: leakybins run PROCESS --help.
Numbers may be written 1_000_000, 1e6, 2^20, 10k or 4Mi, rates 0.95, 1-1e-4 or 1-2^-10.
The same seed and parameters give the same result to the last digit on every backend, except on profiles, which draw
another sample of the same law: --backend profile, and auto from 2^22 bins on.
Ctrl-C or SIGTERM stops a run without a result; a second one stops it at once. With --out all finished blocks are kept: the
same command goes on.";

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
    #[command(flatten)]
    loads: Loads,
    #[command(flatten)]
    journal: JournalFlags,
    #[command(flatten)]
    blocks: Blocks,
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
    /// Observe the loads before the deletions of a round, or at its end; `pre` is refused where deletions come first
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
    /// over the estimate; the interval of this level alone, whatever --band says
    #[arg(long, global = true, value_name = "E", allow_hyphen_values = true)]
    rel_err: Option<f64>,
    /// The level K that --rel-err and --max-hits are about
    #[arg(long, global = true, value_name = "K", value_parser = count)]
    at: Option<u64>,
    /// Stop when so many samples have max load >= K
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    max_hits: Option<u64>,
    /// Stop before it takes longer, but not before the first block is done, of 32 replicas, or fewer of more than 2^21
    /// bins: seconds, or 90s, 10m, 2h
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
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let with_units = || humantime::parse_duration(text).map(|time| time.as_secs_f64()).ok();
    let unreadable = || format!("'{text}' is not a time; write seconds, or 90s, 10m, 2h 30m");
    text.parse().ok().or_else(with_units).ok_or_else(unreadable)
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct Loads {
    /// File for the final loads of all bins: u32, little-endian, replica after replica
    #[arg(long, global = true, value_name = "FILE", value_parser = file)]
    dump_loads: Option<PathBuf>,
}

impl Sampling {
    /// The specification, with the defaults that depend on other values filled in.
    fn spec(&self, process: ProcessSpec, stopping: Option<Stopping>) -> Spec {
        let replicas = self.replicas.unwrap_or(if stopping.is_some() { 1 << 20 } else { 256 });
        let burn_in = match self.burn_in {
            None => self.rounds / 2,
            Some(Wait::Rounds(rounds)) => rounds,
            Some(Wait::Auto) => 0,
        };
        Spec { process, seed: self.seed.unwrap_or(0), replicas, schedule: self.schedule(burn_in), stopping }
    }

    /// Finds the burn-in of `spec` where it is to be found.
    fn settle(&self, spec: &mut Spec, control: &Control, show: Show) -> Result<(), RunError> {
        if self.burn_in == Some(Wait::Auto) {
            let progress = Progress::without_end("burn-in: rounds of the pilot", spec.process.expected_balls(), show);
            let found = progress.watch(control, || BurnIn::find(spec, control))?;
            tracing::info!(rounds = found.rounds, "burn-in: {found}");
            spec.schedule = self.schedule(found.rounds);
            spec.validate()?;
            control.retract(control.rounds());
        }
        Ok(())
    }

    fn schedule(&self, burn_in: u64) -> Schedule {
        let Sampling { rounds, loads_every, measure, .. } = *self;
        let every = self.every.unwrap_or_else(|| rounds.saturating_sub(burn_in).min(10));
        Schedule { rounds, burn_in, every, loads_every, measure }
    }
}

impl RunArgs {
    /// The specification, whose burn-in and seed may be still to find.
    fn spec(&self) -> anyhow::Result<Spec> {
        let Sampling { confidence, .. } = self.sampling;
        Confidence::new(confidence)?;
        let spec = self.sampling.spec(self.process.clone(), self.rules.stopping(confidence));
        spec.validate()?;
        self.device.check()?;
        Ok(spec)
    }

    /// Values of flags that were left out.
    pub(super) fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        let Spec { process, replicas, schedule, .. } = self.spec()?;
        process.build_for(self.device.choice(&process, self.loads.dump_loads.is_some()).stream())?;
        let begun = self.journal.begun_seed::<Header>()?;
        let mut values = vec![("replicas", replicas), ("seed", seed(self.sampling.seed.or(begun)))];
        if self.sampling.burn_in != Some(Wait::Auto) {
            values.extend([("burn-in", schedule.burn_in), ("every", schedule.every)]);
        }
        Ok(values)
    }
}

/// Runs the process. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: RunArgs) -> anyhow::Result<Exit> {
    let mut spec = arguments.spec()?;
    let RunArgs { sampling, device, output, loads, journal: journal_flags, blocks, .. } = arguments;
    let confidence = Confidence::new(sampling.confidence)?;
    let choice = device.choice(&spec.process, loads.dump_loads.is_some());
    // Built to be refused early and to describe the run; the run builds its own.
    let process = spec.process.build_for(choice.stream())?;
    let mut loads_file = loads.dump_loads.as_deref().map(AtomicFile::create).transpose()?;
    let destination = output.open(&loads_file.iter().collect::<Vec<_>>())?;
    let snapshots = blocks.snapshots(journal_flags.out())?;
    if loads_file.is_some() && journal_flags.out().is_some() {
        let reason = "--dump-loads cannot go with --out (a journal keeps tallies, so that a run that goes on has lost \
                      the loads of earlier blocks); leave one of them out";
        return Err(Refused(reason.to_owned()).into());
    }
    let mut journal = journal_flags.open((spec.stopping.is_some(), "--replicas"), &destination, &output)?;
    for warning in spec.process.warnings() {
        tracing::warn!("{warning}");
    }
    spec.seed = match (sampling.seed, &journal) {
        (None, Some(journal)) => seed(journal.seed()?),
        (given, _) => seed(given),
    };
    let control = interruptible(journal_flags.when_interrupted())?;
    device.threads.start()?;

    if let Some(journal) = &mut journal {
        sampling.settle(&mut spec, &control, output.progress()).map_err(|error| match error {
            RunError::Backend(BackendError::Cancelled) => {
                Resumable("the burn-in is not found, and no block begun".to_owned()).into()
            }
            other => anyhow::Error::from(other),
        })?;
        journal.begin(Header::new(&spec, &process))?;
        if let Some(snapshots) = &snapshots {
            snapshots.sweep(journal.contents());
        }
        let watched = (&*control, output.progress());
        let outcome = blocks.run(journal, snapshots.as_ref(), watched, || device.open(choice, output.quiet))?;
        if outcome.tally.replicas == 0 {
            tracing::info!("this shard has no block of the run: there is nothing to report");
            return Ok(Exit::Done);
        }
        if !output.quiet {
            tracing::info!("{}", describe(journal.contents()));
        }
        destination.publish(&Report::new(&spec, process.bins(), &outcome, confidence, sampling.band))?;
        return Ok(Exit::Done);
    }

    let mut pool = device.open(choice, output.quiet)?;
    sampling.settle(&mut spec, &control, output.progress())?;
    let all_rounds = spec.replicas.saturating_mul(spec.schedule.rounds);
    let progress = Progress::new(all_rounds, spec.process.expected_balls(), output.progress());
    let outcome = progress.watch(&control, || {
        let dump = loads_file.as_mut().map(|file| file as &mut (dyn Write + Send));
        run::run(&spec, &mut pool, &control, dump, &mut |event| warn(&event))
    });
    let outcome = outcome.map_err(|error| stopped(error, &control, Some(all_rounds)))?;
    if let Some(file) = loads_file {
        file.commit().context("the final loads could not be written; check the path and the space left")?;
    }
    destination.publish(&Report::new(&spec, process.bins(), &outcome, confidence, sampling.band))?;
    Ok(Exit::Done)
}
