//! The command line: one file a command.
//!
//! Standard output carries results and nothing else; all that is said to a person goes to standard error.

mod atomic;
mod device;
mod devices;
mod doctor;
pub mod exit;
mod output;
mod plot;
mod progress;
mod recover;
mod run;
mod signals;
mod sweep;
mod theory;

use clap::{Parser, Subcommand};
use exit::Exit;
use std::io::{self, ErrorKind, Write};

/// Monte Carlo engine for balls-into-bins and load-balancing processes, on GPU and CPU with the same bits
#[derive(Debug, Parser)]
#[command(name = "leakybins", version, after_help = exit::HELP, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate a process and report what was seen
    Run(Box<run::RunArgs>),
    /// Simulate a process at every point of a grid of parameters, with fits
    Sweep(Box<sweep::SweepArgs>),
    /// Follow a process from its start back to its usual loads
    Recover(Box<recover::RecoverArgs>),
    /// Say what is known without simulation: exact and mean-field laws
    Theory(theory::TheoryArgs),
    /// Draw a result as SVG or PNG
    Plot(plot::PlotArgs),
    /// List the adapters of this machine
    Devices(devices::DevicesArgs),
    /// Say whether a headless GPU run would work here, and what is missing
    Doctor(doctor::DoctorArgs),
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

impl Cli {
    /// Does what the command line asks for.
    ///
    /// # Errors
    /// Whatever stopped it; [`exit::explain`] turns it into a message and an exit code.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Run(arguments) => run::run(*arguments),
            Command::Sweep(arguments) => sweep::run(*arguments),
            Command::Recover(arguments) => recover::run(*arguments),
            Command::Theory(arguments) => theory::run(&arguments),
            Command::Plot(arguments) => plot::run(&arguments),
            Command::Devices(arguments) => devices::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
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

/// Says something to a person. Nobody listening is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
