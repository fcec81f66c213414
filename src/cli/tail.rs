//! `leakybins tail PROCESS`: max loads too rare to be seen.

use super::device::Threads;
use super::exit::{Exit, Refused, Resumable};
use super::journal::{JournalFlags, Journaled, describe};
use super::output::{Output, seed};
use super::progress::Progress;
use super::signals::interruptible;
use crate::backend::{BackendError, StreamKind};
use crate::grid;
use crate::number::count;
use crate::process::ProcessSpec;
use crate::process::start::Start;
use crate::stats::interval::Confidence;
use crate::tail::report::Report;
use crate::tail::{self, Header, Question, Spec, TailError};

const EXAMPLES: &str = "\
Examples:
  leakybins tail leaky --n 1e6 --levels 8..40 --rel-err 0.02
  leakybins tail leaky --n 1000 --levels 20 --arrivals poisson --seed 1
  leakybins tail repeated --n 1024 --levels 8..24
  leakybins tail leaky --n 1000 --levels 8..20 --within 1000 --start mean-field
  leakybins tail leaky --d 1 --levels 60..400+20 --max-islands 256 --format json -o tail.json --plot tail.svg
  leakybins tail leaky --n 1024 --d 1 --levels 40..160+20 --max-islands 1024 --out long.jsonl
  leakybins tail leaky --n 1024 --d 1 --levels 40..160+20 --max-islands 1024 --seed 1 --shard 3/8 --out shard-3.jsonl

P(max load >= k) at the end of a round: in the stationary state, at a round from the start, or in the worst of
some rounds. It runs on the CPU; the same seed and parameters give the same result with any number of threads. Ctrl-C or
SIGTERM stops without a result; a second one stops at once. With --out all finished islands are kept, each a block of its
own: the same command goes on.";

/// Arguments of `leakybins tail`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct TailArgs {
    #[command(subcommand)]
    process: ProcessSpec,
    #[command(flatten)]
    question: Asked,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    journal: JournalFlags,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tail")]
struct Asked {
    /// Levels k of which P(max load >= k) is estimated
    #[arg(long, global = true, value_name = "GRID", default_value = "8..24")]
    levels: grid::Counts,
    /// What a state of the chain is: how many bins have each load, or the load of each bin [default: profile where the
    /// process has such a form, else bins]
    #[arg(long, global = true, value_enum)]
    states: Option<StreamKind>,
    /// Ask for the max load after this round, from the start, instead of the stationary state
    #[arg(long, global = true, value_name = "ROUND", value_parser = count, conflicts_with = "within")]
    at_round: Option<u64>,
    /// Ask for the largest max load in so many rounds from the start, instead of the stationary state
    #[arg(long, global = true, value_name = "ROUNDS", value_parser = count)]
    within: Option<u64>,
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
        let Asked { ref levels, at_round, within, states, rel_err, max_islands, max_time, confidence, seed } =
            self.question;
        let question = match (at_round, within) {
            (Some(round), _) => Question::AtRound(round),
            (None, Some(rounds)) => Question::Within(rounds),
            (None, None) => Question::Stationary,
        };
        let has_effect = question != Question::Stationary || self.process.is_closed();
        if !has_effect && !matches!(self.process.start(), Start::Empty | Start::MeanField) {
            let start = self.process.start();
            let reason = format!(
                "start = {start} has no effect on the stationary state; leave --start out, or ask for --at-round or --within"
            );
            return Err(Refused(reason).into());
        }
        let mut levels = levels.0.clone();
        levels.sort_unstable();
        levels.dedup();
        let most = if rel_err.is_some() || max_time.is_some() { 1 << 16 } else { 64 };
        let spec = Spec {
            process: self.process.clone(),
            question,
            states: states.unwrap_or_else(|| tail::default_states(&self.process)),
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
        let begun = self.journal.begun_seed::<Header>()?;
        Ok(vec![("max-islands", spec.max_islands), ("seed", seed(self.question.seed.or(begun)))])
    }
}

/// Estimates the tail. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: TailArgs) -> anyhow::Result<Exit> {
    let mut spec = arguments.spec()?;
    let TailArgs { question, threads, output, journal: journal_flags, .. } = arguments;
    let destination = output.open(&[])?;
    let stops = spec.rel_err.is_some() || spec.max_time.is_some();
    let journaled: Option<Journaled<Header>> = journal_flags.open((stops, "--max-islands"), &destination, &output)?;
    spec.seed = match (question.seed, &journaled) {
        (None, Some(journaled)) => seed(journaled.seed()?),
        (given, _) => seed(given),
    };
    let control = interruptible(journal_flags.when_interrupted())?;
    let progress = Progress::without_end("rounds", spec.process.expected_balls(), output.progress());
    let backend = match spec.states {
        StreamKind::Bins => "cpu",
        StreamKind::Profile => "profile",
    };
    let Some(mut journaled) = journaled else {
        threads.start_for(backend, output.quiet)?;
        let outcome = progress.watch(&control, || tail::run(&spec, &control))?;
        destination.publish(&Report::new(&spec, &outcome))?;
        return Ok(Exit::Done);
    };

    // One that has not begun waits for what the pilot finds.
    if let Some(findings) = journaled.journal.header().map(|header| header.findings().clone()) {
        journaled.begin(Header::new(&spec, &findings))?;
    }
    threads.start_for(backend, output.quiet)?;
    let outcome = progress.watch(&control, || {
        let part = (&mut journaled.journal, journaled.shard);
        tail::run_journaled(&spec, &control, part)
    });
    let outcome = outcome.map_err(|error| match error {
        TailError::Backend(BackendError::Cancelled) if journaled.journal.header().is_none() => {
            Resumable("the pilot has not found the stages, and no island is begun".to_owned()).into()
        }
        TailError::Backend(BackendError::Cancelled) => journaled.interrupted().into(),
        other => anyhow::Error::from(other),
    })?;
    if outcome.islands == 0 {
        tracing::info!("this shard has no island of the run: there is nothing to report");
        return Ok(Exit::Done);
    }
    if !output.quiet {
        tracing::info!("{}", describe(journaled.contents()));
    }
    let spec = Spec { confidence: spec.confidence, ..journaled.contents().header().spec().clone() };
    destination.publish(&Report::new(&spec, &outcome))?;
    Ok(Exit::Done)
}
