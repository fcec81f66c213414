//! The command line: one file a command.
//!
//! Standard output carries results and nothing else; all that is said to a person goes to standard error.

mod atomic;
pub mod exit;
mod progress;
mod run;

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
    Run(run::RunArgs),
}

impl Cli {
    /// Does what the command line asks for.
    ///
    /// # Errors
    /// Whatever stopped it; [`exit::explain`] turns it into a message and an exit code.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Run(arguments) => run::run(arguments),
        }
    }
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
