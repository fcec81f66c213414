//! `leakybins sweep PROCESS`: a process over a grid of parameters.

use super::device::{Device, warn};
use super::exit::{Exit, Refused};
use super::output::{Output, seed};
use super::print;
use super::progress::Progress;
use super::signals::interruptible;
use crate::backend::{BackendError, Choice, Pool};
use crate::grid;
use crate::number::count;
use crate::process::{Measure, ProcessGrid, ProcessSpec};
use crate::report::human;
use crate::run::{RunError, Spec};
use crate::stats::interval::Confidence;
use crate::sweep::{Plan, Point, Sweep, expected_balls};
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  leakybins sweep leaky --lambda '1-2^-(1..12)' --d 1,2 --plot scaling.svg
  leakybins sweep leaky --lambda 0.5..0.95+0.05 --n 2^8..2^14*4 --dry-run
  leakybins sweep repeated --n 2^8..2^14*2 --each 1,2,4
  leakybins sweep leaky --n 1024 --lambda 0.9,0.99 --d 1..3 --at 5..10 --format csv

A grid is a list: of numbers (2^10, 0.95, 1-2^-3), of ranges (1..4, 0.5..0.9+0.1, 2^8..2^14*4) and of templates with a
range in parentheses (1-2^-(1..16)). Quote parentheses and * for the shell.
Ctrl-C ends a sweep: the points that are finished are reported, and the exit code is 130.";

/// Arguments of `leakybins sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct SweepArgs {
    #[command(subcommand)]
    grid: ProcessGrid,
    #[command(flatten)]
    points: Points,
    #[command(flatten)]
    device: Device,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Points")]
struct Points {
    /// Most expected balls of a point; more make it longer. A round on profiles counts as 10^4
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "4e9")]
    balls: u64,
    /// Most replicas of a point
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "256")]
    replicas: u64,
    /// Refuse a grid with more points
    #[arg(long, global = true, value_name = "COUNT", value_parser = count, default_value = "1000")]
    max_points: u64,
    /// Levels k of which P(max load >= k) is reported
    #[arg(long, global = true, value_name = "GRID")]
    at: Option<grid::Counts>,
    /// Least lambda of the points that fits go through
    #[arg(long, global = true, value_name = "RATE", value_parser = crate::number::rate, default_value = "0.9")]
    fit_from: f64,
    /// Confidence of the intervals
    #[arg(long, global = true, value_name = "P", default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    /// Observe the loads before the deletions of a round, or at its end; `pre` is refused where deletions come first
    #[arg(long, global = true, value_enum, default_value_t)]
    measure: Measure,
    /// Seed of all randomness [default: a fresh one, which is shown]
    #[arg(long, global = true, value_parser = count)]
    seed: Option<u64>,
    /// Print the points and what they cost, and run nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

impl SweepArgs {
    /// The plan, with `seed`, and its points.
    fn plan(&self, seed: u64) -> anyhow::Result<Vec<Spec>> {
        let Points { replicas, balls, measure, max_points, .. } = self.points;
        let plan = Plan { seed, replicas, balls: balls as f64, measure, backend: self.device.general() };
        let planned = plan.points(&self.grid.points(max_points).map_err(Refused)?)?;
        planned.iter().try_for_each(Spec::validate)?;
        Ok(planned)
    }

    /// Values of flags that were left out.
    pub(super) fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        Confidence::new(self.points.confidence)?;
        self.plan(0)?;
        self.device.check()?;
        Ok(vec![("seed", seed(self.points.seed))])
    }
}

/// Runs the sweep. Whatever can be refused is refused before the work begins.
pub(super) fn run(arguments: SweepArgs) -> anyhow::Result<Exit> {
    let confidence = Confidence::new(arguments.points.confidence)?;
    let planned = arguments.plan(0)?;
    if arguments.points.dry_run {
        print(dry_run(&planned)?.as_bytes())?;
        return Ok(Exit::Done);
    }
    arguments.device.check()?;
    let destination = arguments.output.open(&[])?;
    let planned = arguments.plan(seed(arguments.points.seed))?;
    let control = interruptible(Exit::Interrupted)?;
    let SweepArgs { points: options, device, output, .. } = arguments;
    device.threads.start()?;
    let mut backends = Backends { device: &device, quiet: output.quiet, opened: Vec::new() };
    let number = planned.len();
    let mut points = Vec::with_capacity(number);
    let mut failure = None;
    for (i, spec) in planned.into_iter().enumerate() {
        let rounds = spec.replicas.saturating_mul(spec.schedule.rounds);
        let balls = spec.process.expected_balls();
        let pool = backends.of(&spec.process)?;
        let progress = Progress::of_part(rounds, balls, (i + 1, number), control.rounds(), output.progress());
        match progress.watch(&control, || Point::run(spec, confidence, pool, &control, &mut |e| warn(&e))) {
            Ok(point) => points.push(point),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    // Points that are finished are worth reporting, whatever ended the sweep.
    if points.is_empty()
        && let Some(error) = failure
    {
        return Err(error.into());
    }
    let done = points.len();
    let sweep = Sweep {
        points,
        levels: options.at.map_or_else(Vec::new, |at| at.0),
        confidence,
        fit_from: options.fit_from,
        planned: number,
    };
    destination.publish(&sweep)?;
    match failure {
        None => Ok(Exit::Done),
        Some(RunError::Backend(BackendError::Cancelled)) => Ok(Exit::Interrupted),
        Some(error) => Err(anyhow::Error::from(error).context(format!("point {} of {number}", done + 1))),
    }
}

/// The backends of the points, opened as they are needed and kept.
struct Backends<'a> {
    device: &'a Device,
    quiet: bool,
    opened: Vec<(Choice, Pool)>,
}

impl Backends<'_> {
    fn of(&mut self, process: &ProcessSpec) -> anyhow::Result<&mut Pool> {
        let choice = self.device.choice(process, false);
        let index = match self.opened.iter().position(|(opened, _)| *opened == choice) {
            Some(index) => index,
            None => {
                self.opened.push((choice, self.device.open(choice, self.quiet)?));
                self.opened.len() - 1
            }
        };
        Ok(&mut self.opened[index].1)
    }
}

/// The points and what they cost.
fn dry_run(planned: &[Spec]) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut all = 0.0;
    for spec in planned {
        let balls = expected_balls(spec);
        let value = serde_json::to_value(&spec.process)?;
        let named = value["parameters"].as_object().into_iter().flatten();
        let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let parameters: Vec<_> = named.map(|(name, value)| format!("{name} {}", plain(value))).collect();
        writeln!(
            text,
            "{}: {} replicas, {} rounds, burn-in {}, {} balls",
            parameters.join(", "),
            spec.replicas,
            spec.schedule.rounds,
            spec.schedule.burn_in,
            human(balls)
        )?;
        all += balls;
    }
    writeln!(text, "{} points, {} balls", planned.len(), human(all))?;
    tracing::info!("nothing was run; at n = 1024 a core throws some 2 to 5 times 10^8 balls a second");
    Ok(text)
}
