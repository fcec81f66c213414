//! `leakybins completions SHELL`: the flags at the press of a key.

use super::exit::Exit;
use super::{Cli, print};
use clap::CommandFactory;
use clap_complete::{Shell, generate};

const INSTALL: &str = "\
Install:
  leakybins completions bash > ~/.local/share/bash-completion/completions/leakybins
  leakybins completions zsh > DIR/_leakybins     (a folder DIR of $fpath)
  leakybins completions fish > ~/.config/fish/completions/leakybins.fish";

/// Arguments of `leakybins completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = INSTALL)]
pub(super) struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script.
pub(super) fn run(arguments: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut Cli::command(), "leakybins", &mut script);
    print(&script)?;
    Ok(Exit::Done)
}
