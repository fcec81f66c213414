//! `leakybins man [DIR]`: the help as pages for `man`.

use super::exit::{Exit, Refused};
use super::{Cli, print};
use clap::CommandFactory;
use clap_mangen::{Man, generate_to};
use std::path::PathBuf;

const INSTALL: &str = "\
Install:
  mkdir -p ~/.local/share/man/man1 && leakybins man ~/.local/share/man/man1";

/// Arguments of `leakybins man`.
#[derive(Debug, clap::Args)]
#[command(after_help = INSTALL)]
pub(super) struct ManArgs {
    /// Folder for a page of each command [default: the first page, on standard output]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Writes the pages.
pub(super) fn run(arguments: &ManArgs) -> anyhow::Result<Exit> {
    // `leakybins help` only repeats the help of the others: it has no page.
    let commands = Cli::command().disable_help_subcommand(true);
    match &arguments.folder {
        Some(folder) => generate_to(commands, folder).map_err(|e| {
            Refused(format!("pages cannot be written to {} ({e}); name a writable directory", folder.display()))
        })?,
        None => {
            let mut page = Vec::new();
            Man::new(commands).render(&mut page)?;
            print(&page)?;
        }
    }
    Ok(Exit::Done)
}
