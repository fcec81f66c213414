//! The `leakybins` command: parse, run, exit code. Everything else is in [`leakybins::cli`].

use clap::Parser;
use leakybins::cli::{Cli, exit};
use std::process::ExitCode;

fn main() -> ExitCode {
    // A refused command line leaves here with exit code 2, --help and --version with 0.
    let cli = Cli::parse();
    cli.run().unwrap_or_else(|error| exit::explain(&error)).into()
}
