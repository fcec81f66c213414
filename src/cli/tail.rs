//! `leakybins tail PROCESS`: max loads too rare to be seen.

use super::device::Threads;
use super::exit::{Exit, Refused};
use super::output::{Output, seed};
use super::progress::Progress;
use super::signals::interruptible;
use crate::backend::StreamKind;
use crate::grid;
use crate::number::count;
use crate::process::ProcessSpec;
use crate::process::start::Start;
use crate::stats::interval::Confidence;
use crate::tail::report::Report;
use crate::tail::{self, Spec};

const EXAMPLES: &str = "\
Examples:
  leakybins tail leaky --n 1e6 --levels 8..40 --rel-err 0.02
  leakybins tail leaky --n 1000 --levels 20 --arrivals poisson --seed 1
  leakybins tail repeated --n 1024 --levels 8..24
  leakybins tail leaky --d 1 --levels 60..400+20 --max-islands 256 --format json -o tail.json --plot tail.svg

P(max load >= k) at the end of a round, in the stationary state. It runs on the CPU; the same seed and parameters
give the same result with any number of threads. Ctrl-C or SIGTERM stops without a result; a second one stops at once.";

/// Arguments of `leakybins tail`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct TailArgs {
    #[command(subcommand)]
    process: ProcessSpec,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tail")]
struct Question {
    /// Levels k of which P(max load >= k) is estimated
    #[arg(long, global = true, value_name = "GRID", default_value = "8..24")]
    levels: grid::Counts,
    /// What a state of the chain is: how many bins have each load, or the load of each bin [default: profile where the
    /// process has such a form, else bins]
    #[arg(long, global = true, value_enum)]
    states: Option<StreamKind>,
    /// Stop when half the width of every interval is at most this fraction of its estimate, and no level is in doubt
    #[arg(long, global = true, value_name = "FRACTION", allow_hyphen_values = true)]
    rel_err: Option<f64>,
    /// Most islands, the independent repetitions that errors are made of [default: 64, or 2^16 with --rel-err or
    /// --max-time]
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    max_islands: Option<u64>,
    /// Stop where the next look at the error would come after this time: 90, 10m, 2h
    #[arg(long, global = true, value_name = "TIME", value_parser = super::run::seconds, allow_hyphen_values = true)]
    max_time: Option<f64>,
    /// Confidence of the intervals
    #[arg(long, global = true, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Seed of all randomness [default: a fresh one, which is shown]
    #[arg(long, global = true, value_parser = count)]
    seed: Option<u64>,
}

impl TailArgs {
    /// The specification, whose seed may be still to choose.
    fn spec(&self) -> anyhow::Result<Spec> {
        let Question { ref levels, states, rel_err, max_islands, max_time, confidence, seed } = self.question;
        if !self.process.is_closed() && !matches!(self.process.start(), Start::Empty | Start::MeanField) {
            let start = self.process.start();
            let reason = format!("start = {start} has no effect on the stationary state; leave --start out");
            return Err(Refused(reason).into());
        }
        let mut levels = levels.0.clone();
        levels.sort_unstable();
        levels.dedup();
        let most = if rel_err.is_some() || max_time.is_some() { 1 << 16 } else { 64 };
        let spec = Spec {
            process: self.process.clone(),
            states,
            seed: seed.unwrap_or(0),
            levels,
            confidence: Confidence::new(confidence)?,
            rel_err,
            max_islands: max_islands.unwrap_or(most),
            max_time,
        };
        spec.validate()?;
        Ok(spec)
    }

    /// Values of flags that were left out.
    pub(super) fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        let spec = self.spec()?;
        Ok(vec![("max-islands", spec.max_islands), ("seed", seed(self.question.seed))])
    }
}

/// Estimates the tail. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: TailArgs) -> anyhow::Result<Exit> {
    let mut spec = arguments.spec()?;
    let TailArgs { question, threads, output, .. } = arguments;
    let destination = output.open(&[])?;
    spec.seed = seed(question.seed);
    let control = interruptible(Exit::Interrupted)?;
    let backend = if spec.states == Some(StreamKind::Bins) { "cpu" } else { "profile" };
    threads.start_for(backend, output.quiet)?;
    let progress = Progress::without_end("rounds", spec.process.expected_balls(), output.progress());
    let outcome = progress.watch(&control, || tail::run(&spec, &control))?;
    destination.publish(&Report::new(&spec, &outcome))?;
    Ok(Exit::Done)
}
