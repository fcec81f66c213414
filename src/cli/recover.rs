//! `leakybins recover PROCESS`: the way back from a start.

use super::device::Threads;
use super::exit::{Exit, Refused};
use super::output::{Output, seed};
use super::progress::Progress;
use super::signals::{interruptible, stopped};
use crate::number::count;
use crate::process::{Measure, ProcessSpec};
use crate::recover::report::Report;
use crate::recover::{self, Spec};
use crate::stats::interval::Confidence;
use crate::theory;
use std::num::NonZeroU16;

const EXAMPLES: &str = "\
Examples:
  leakybins recover leaky --start one-bin:10000
  leakybins recover leaky --start each:100 --d 1 --lambda 0.9 --n 64 --level 40
  leakybins recover leaky --start one-bin:1e6 --n 100 --replicas 16 --format json -o way.json
  leakybins recover repeated --start one-bin:1024
  leakybins recover leaky --start random:1e5 --rounds 1e4 --points-per-decade 20 --format csv

It runs on the CPU. The same seed and parameters give the same result with any number of threads.
Ctrl-C or SIGTERM stops without a result; a second one stops at once.";

/// The level, where none is given, is this quantile of the stationary max load, and the mean share of balls elsewhere.
const USUAL: f64 = 0.999;

/// Arguments of `leakybins recover`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct RecoverArgs {
    #[command(subcommand)]
    process: ProcessSpec,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Recovery")]
struct Way {
    /// Independent replicas
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "64")]
    replicas: u64,
    /// Rounds of each replica [default: enough for the start to drain and to be forgotten]
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    rounds: Option<u64>,
    /// A replica has recovered when its max load is at most this, an n-th part of the balls outside of the bins added
    /// [default: the 0.999 quantile of the stationary max load, and the mean of that part, rounded up]
    #[arg(long, global = true, value_name = "LOAD", value_parser = count)]
    level: Option<u64>,
    /// Rounds looked at from one power of ten to the next
    #[arg(long, global = true, value_name = "N", default_value = "10")]
    points_per_decade: NonZeroU16,
    /// Confidence of the intervals
    #[arg(long, global = true, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Seed of all randomness [default: a fresh one, which is shown]
    #[arg(long, global = true, value_parser = count)]
    seed: Option<u64>,
}

impl Way {
    /// The specification, with the defaults that theory gives filled in.
    fn spec(&self, process: ProcessSpec) -> Result<Spec, Refused> {
        let unknown = |option: &str| {
            Refused(format!(
                "theory gives no default for {option} here (it knows stationary loads for lambda < 1 and starts that \
                 it can follow); give {option}"
            ))
        };
        let level = match self.level {
            Some(level) => level,
            None => {
                let usual = theory::stationary(&process, Measure::Post).ok_or_else(|| unknown("--level"))?;
                let elsewhere = match process.elsewhere() {
                    Some(name) => usual.further_mean(name).ok_or_else(|| unknown("--level"))?,
                    None => 0.0,
                };
                usual.bins.max_quantile(USUAL) + (elsewhere / process.bins() as f64).ceil() as u64
            }
        };
        let rounds = self.rounds.or_else(|| process.recovery_rounds().ok()).ok_or_else(|| unknown("--rounds"))?;
        let Self { replicas, points_per_decade, .. } = *self;
        Ok(Spec { process, seed: self.seed.unwrap_or(0), replicas, rounds, points_per_decade, level })
    }
}

impl RecoverArgs {
    /// The specification, whose seed may be still to choose.
    fn spec(&self) -> anyhow::Result<Spec> {
        Confidence::new(self.way.confidence)?;
        let spec = self.way.spec(self.process.clone())?;
        spec.validate()?;
        Ok(spec)
    }

    /// Values of flags that were left out.
    pub(super) fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        let Spec { process, rounds, level, .. } = self.spec()?;
        process.build()?;
        Ok(vec![("rounds", rounds), ("level", level), ("seed", seed(self.way.seed))])
    }
}

/// Follows the process. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: RecoverArgs) -> anyhow::Result<Exit> {
    let built = arguments.process.build()?;
    let mut spec = arguments.spec()?;
    let RecoverArgs { way, threads, output, .. } = arguments;
    let confidence = Confidence::new(way.confidence)?;
    let destination = output.open(&[])?;
    spec.seed = seed(way.seed);
    let control = interruptible(Exit::Interrupted)?;
    threads.start_for("cpu", output.quiet)?;

    let all_rounds = spec.replicas.saturating_mul(spec.rounds);
    let progress = Progress::new(all_rounds, built.expected_balls(), output.progress());
    let outcome = progress.watch(&control, || recover::run(&spec, &control));
    let outcome = outcome.map_err(|error| stopped(error, &control, Some(all_rounds)))?;
    destination.publish(&Report::new(&spec, built.bins(), &outcome, confidence))?;
    Ok(Exit::Done)
}
