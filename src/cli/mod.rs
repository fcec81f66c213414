//! The command line: one file a command.
//!
//! Standard output carries results and nothing else; all that is said to a person goes to standard error.

mod atomic;
mod blocks;
mod completions;
mod cover;
mod device;
mod devices;
mod doctor;
pub mod exit;
mod experiment;
mod journal;
mod log;
mod man;
mod merge;
mod output;
mod plot;
mod progress;
mod recover;
mod report;
mod run;
mod signals;
mod sweep;
mod tail;
mod theory;
mod verify;

use clap::{Parser, Subcommand};
use exit::Exit;
use experiment::{Experiment, Request, early, unknown_variables};
use log::{Form, Messages};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

/// Monte Carlo engine for balls-into-bins and load-balancing processes, on GPU and CPU with the same bits
#[derive(Debug, Parser)]
#[command(name = "leakybins", version, after_help = exit::HELP, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    experiment: Experiment,
    #[command(flatten)]
    messages: Messages,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate a process and report what was seen
    Run(Box<run::RunArgs>),
    /// Simulate a process at every point of a grid of parameters, with fits
    Sweep(Box<sweep::SweepArgs>),
    /// Follow a process from its start back to its usual loads
    Recover(Box<recover::RecoverArgs>),
    /// Follow balls with identities until each has been in every bin
    Cover(Box<cover::CoverArgs>),
    /// Estimate how likely max loads are that no run would ever see
    Tail(Box<tail::TailArgs>),
    /// Report what is in a journal
    Report(report::ReportArgs),
    /// Make one journal of several, or say what is missing
    Merge(merge::MergeArgs),
    /// Compute some blocks of a journal again and compare
    Verify(verify::VerifyArgs),
    /// Say what is known without simulation: exact and mean-field laws
    Theory(theory::TheoryArgs),
    /// Draw a result as SVG or PNG
    Plot(plot::PlotArgs),
    /// List the adapters of this machine
    Devices(devices::DevicesArgs),
    /// Say whether a headless GPU run would work here, and what is missing
    Doctor(doctor::DoctorArgs),
    /// Write a script that completes flags in a shell
    Completions(completions::CompletionsArgs),
    /// Write pages for man
    Man(man::ManArgs),
}

/// Form of what `devices` and `doctor` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// What to install where there is no GPU driver.
const INSTALL_DRIVER: &str = "install the Vulkan driver of the GPU: on Debian or Ubuntu libnvidia-gl-VERSION of the \
     kernel driver's version for NVIDIA, mesa-vulkan-drivers for AMD and Intel";

/// Does what the words of the command line ask for, and says on standard error what went wrong.
#[must_use]
pub fn run(words: &[OsString]) -> Exit {
    perform(words).unwrap_or_else(|error| exit::explain(&error))
}

fn perform(words: &[OsString]) -> anyhow::Result<Exit> {
    let request = Request::read(words).inspect_err(|_| {
        // The reason is told in the form that was asked for, as far as that can be understood.
        let form = early(words, "log-format");
        if form.is_some_and(|form| form == "json") {
            Form::Json.choose();
        }
    })?;
    request.cli.messages.start()?;
    for name in unknown_variables() {
        tracing::warn!(name, "the variable {name} stands for no flag of any command; it has no effect");
    }
    if request.cli.experiment.print_spec {
        print(request.spec(&request.cli.command.derived()?)?.as_bytes())?;
        return Ok(Exit::Done);
    }
    request.cli.command.run()
}

impl Command {
    /// Values of flags that were left out and whose defaults follow from other values. Refuses what the command would.
    fn derived(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        match self {
            Command::Run(arguments) => arguments.derived(),
            Command::Sweep(arguments) => arguments.derived(),
            Command::Recover(arguments) => arguments.derived(),
            Command::Cover(arguments) => arguments.derived(),
            Command::Tail(arguments) => arguments.derived(),
            _ => Ok(Vec::new()),
        }
    }

    fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Run(arguments) => run::run(*arguments),
            Command::Sweep(arguments) => sweep::run(*arguments),
            Command::Recover(arguments) => recover::run(*arguments),
            Command::Cover(arguments) => cover::run(*arguments),
            Command::Tail(arguments) => tail::run(*arguments),
            Command::Report(arguments) => report::run(&arguments),
            Command::Merge(arguments) => merge::run(&arguments),
            Command::Verify(arguments) => verify::run(&arguments),
            Command::Theory(arguments) => theory::run(&arguments),
            Command::Plot(arguments) => plot::run(&arguments),
            Command::Devices(arguments) => devices::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
        }
    }
}

/// `value` as JSON for people and programs, a line feed at its end.
fn pretty(value: &impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}

/// Writes a result to standard output. A reader that has gone away (`| head`) has what it wanted: no error.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
