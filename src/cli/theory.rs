//! `leakybins theory PROCESS`: what is known without simulation.

use super::exit::Exit;
use super::output::Output;
use super::pretty;
use crate::number::count;
use crate::process::{Measure, ProcessSpec};
use crate::report::{Render, field, parameters, reached, significant, wrapped};
use crate::theory::report::{Document, Level};
use crate::theory::{Prediction, When};
use std::fmt::{self, Write};
use std::io;

const EXAMPLES: &str = "\
Examples:
  leakybins theory leaky
  leakybins theory leaky --n 2^16 --lambda 1-1e-9 --d 1
  leakybins theory leaky --start one-bin:1000 --rounds 500
  leakybins theory leaky --d 3 --measure pre --plot theory.svg
  leakybins theory capped --c 2 --lambda 0.99
  leakybins theory tetris --n 1000
  leakybins theory repeated --n 2^20 --start each:2";

/// Arguments of `leakybins theory`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(subcommand_value_name = "PROCESS", subcommand_help_heading = "Processes")]
pub(super) struct TheoryArgs {
    #[command(subcommand)]
    process: ProcessSpec,
    /// Predict the state after so many rounds from the start [default: the stationary state]
    #[arg(long, global = true, value_name = "COUNT", value_parser = count)]
    rounds: Option<u64>,
    /// The loads before the deletions of a round, or at its end; `pre` is refused where deletions come first
    #[arg(long, global = true, value_enum, default_value_t)]
    measure: Measure,
    #[command(flatten)]
    output: Output,
}

/// Answers the question.
pub(super) fn run(arguments: &TheoryArgs) -> anyhow::Result<Exit> {
    let process = &arguments.process;
    let when = arguments.rounds.map_or(When::Stationary, When::Round);
    let prediction = process.predict(when, arguments.measure)?;
    let document = Document::new(process, when, arguments.measure, &prediction);
    arguments.output.open(&[])?.publish(&Answer { document, prediction: &prediction })?;
    Ok(Exit::Done)
}

/// What theory says, in all its forms.
struct Answer<'a> {
    document: Document<'a>,
    prediction: &'a Prediction,
}

impl Render for Answer<'_> {
    fn table(&self) -> String {
        let mut text = String::new();
        table(&mut text, &self.document, self.prediction).expect("a string takes everything");
        text
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        Ok(pretty(&self.document)?.into_bytes())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        csv(&self.document)
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A row a level: `k`, `load_exceedance`, `max_exceedance`.
fn csv(document: &Document<'_>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for level in &document.laws.levels {
        table.serialize(level)?;
    }
    table.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// Most levels in the table for people.
const MAX_ROWS: usize = 40;

fn table(out: &mut String, document: &Document<'_>, prediction: &Prediction) -> fmt::Result {
    let state = match document.round {
        None => "stationary".to_owned(),
        Some(round) => format!("after round {round} from the start"),
    };
    let measure = document.process.measured(document.measure).expect("what is predicted is observed");
    writeln!(out, "{:<12}{}, theory", "process", document.process.name())?;
    field(out, "parameters", &parameters(document.process))?;
    writeln!(out, "{:<12}{state}, {measure}", "state")?;
    for (name, basis) in [("load", prediction.load_basis), ("max load", prediction.max_basis)] {
        writeln!(out, "{name:<12}{}", wrapped(basis.meaning().split(' '), " ", 12))?;
    }

    writeln!(out)?;
    let mut line = |name: &str, value: f64, unit: &str| {
        writeln!(out, "{}", format!("{name:<28}{:>14}  {unit}", significant(value)).trim_end())
    };
    line("mean load", document.laws.load.mean, "balls a bin")?;
    line("variance of the load", document.laws.load.variance, "")?;
    line("empty fraction", document.laws.load.empty_fraction, "")?;
    if let Some(rate) = document.laws.load.decay_rate {
        line("decay rate", rate, "a ball: P(L >= k) ~ C exp(-rate k)")?;
    }
    line("mean max load", document.laws.max_load.mean, "balls")?;
    for (q, load) in &document.laws.max_load.quantiles {
        line(&format!("  {q} quantile"), *load as f64, "balls")?;
    }
    for observable in document.process.observables() {
        if let Some(mean) = prediction.further_mean(observable.name) {
            line(&format!("mean {}", observable.name.replace('_', " ")), mean, observable.unit)?;
        }
    }
    if let Some(bounds) = &document.laws.bounds {
        line("ln(n/(1-lambda))", bounds.two_choices, "shape of the paper's bound, d >= 2")?;
        line("ln(n/(1-lambda))/(1-lambda)", bounds.one_choice, "shape of the paper's bound, d = 1")?;
    }

    let grid = Level::grid(&prediction.bins, MAX_ROWS);
    // Of levels that are equally likely the first and the last say all.
    let alike = |a: &Level, b: &Level| a.load_exceedance == b.load_exceedance && a.max_exceedance == b.max_exceedance;
    let told = |i: usize| i > 0 && i + 1 < grid.len() && alike(&grid[i - 1], &grid[i]) && alike(&grid[i], &grid[i + 1]);
    let levels: Vec<&Level> = (0..grid.len()).filter(|&i| !told(i)).map(|i| &grid[i]).collect();
    let width = levels.iter().map(|l| l.k.to_string().len()).max().unwrap_or(1).max(3);
    writeln!(out, "\nload L of a bin and max load M, in balls")?;
    writeln!(out, "  {:>width$}  {:>9}  {:>9}", "k", "P(L >= k)", "P(M >= k)")?;
    for Level { k, load_exceedance, max_exceedance } in levels {
        writeln!(out, "  {k:>width$}  {:>9}  {:>9}", reached(*load_exceedance), reached(*max_exceedance))?;
    }
    Ok(())
}
