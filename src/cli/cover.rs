//! `leakybins cover PROCESS`: balls with identities, until each has been in every bin.

use super::device::Threads;
use super::exit::Exit;
use super::output::{Output, seed};
use super::progress::Progress;
use super::signals::{interruptible, stopped};
use crate::cover::report::Report;
use crate::cover::{self, Queue, Spec};
use crate::number::count;
use crate::process::{Model, repeated};
use crate::stats::interval::Confidence;

const EXAMPLES: &str = "\
Examples:
  leakybins cover repeated --n 64
  leakybins cover repeated --n 256 --queue lifo --replicas 256 --seed 1
  leakybins cover repeated --n 64 --start one-bin:64 --queue random --format json -o cover.json
  leakybins cover repeated --n 1000 --start each:4 --replicas 16 --rounds 1e5

It runs on the CPU only. The same seed and parameters give the same result with any number of threads, and the loads
of `leakybins run repeated`. Each thread takes n bits a ball.
Ctrl-C or SIGTERM stops without a result; a second one stops at once.";

/// Arguments of `leakybins cover`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct CoverArgs {
    #[command(subcommand)]
    process: Traversed,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    output: Output,
}

/// The processes whose balls go from bin to bin.
#[derive(Debug, clap::Subcommand)]
enum Traversed {
    /// Every non-empty bin throws one of its balls into a random bin; no ball arrives or leaves
    Repeated(repeated::Parameters),
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cover times")]
struct Way {
    /// Which of its balls a bin gives
    #[arg(long, global = true, value_enum, default_value_t)]
    queue: Queue,
    /// Independent replicas
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "64")]
    replicas: u64,
    /// Most rounds of a replica, at most 2^48, which is no bound; it ends before, when every ball has been in every bin
    #[arg(long, global = true, value_name = "CAP", value_parser = count, default_value = "2^48")]
    rounds: u64,
    /// Confidence of the intervals
    #[arg(long, global = true, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Seed of all randomness [default: a fresh one, which is shown]
    #[arg(long, global = true, value_parser = count)]
    seed: Option<u64>,
}

impl CoverArgs {
    /// The specification, whose seed may be still to choose.
    fn spec(&self) -> anyhow::Result<Spec> {
        Confidence::new(self.way.confidence)?;
        let Traversed::Repeated(parameters) = &self.process;
        let Way { queue, replicas, rounds, .. } = self.way;
        let spec = Spec { parameters: parameters.clone(), queue, seed: self.way.seed.unwrap_or(0), replicas, rounds };
        spec.validate()?;
        Ok(spec)
    }

    /// Values of flags that were left out.
    pub(super) fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        self.spec()?;
        Ok(vec![("seed", seed(self.way.seed))])
    }
}

/// Follows the balls. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: CoverArgs) -> anyhow::Result<Exit> {
    let mut spec = arguments.spec()?;
    let balls = spec.balls()?;
    let CoverArgs { way, threads, output, .. } = arguments;
    let confidence = Confidence::new(way.confidence)?;
    let destination = output.open(&[])?;
    spec.seed = seed(way.seed);
    let control = interruptible(Exit::Interrupted)?;
    threads.start_for("cpu", output.quiet)?;

    let progress = Progress::without_end("rounds", spec.parameters.expected_balls(), output.progress());
    let outcome = progress.watch(&control, || cover::run(&spec, &control));
    let outcome = outcome.map_err(|error| stopped(error, &control, None))?;
    destination.publish(&Report::new(&spec, balls, &outcome, confidence))?;
    Ok(Exit::Done)
}
