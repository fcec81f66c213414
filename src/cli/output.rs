//! Where results go, as flags.

use super::atomic::AtomicFile;
use super::{print, say};
use crate::report::{Format, Render};
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Form of the result
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
    /// File for the result, which appears whole or not at all [default: standard output]
    #[arg(short, long, global = true, value_name = "FILE", value_parser = file)]
    output: Option<PathBuf>,
    /// Show neither the backend nor the progress
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
}

/// A file name; `-` is none.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err("this is no file name; name a file, or leave the option out".to_owned()),
        _ => Ok(text.into()),
    }
}

/// A result's place, opened before the work begins.
pub(super) struct Destination {
    format: Format,
    pub(super) file: Option<AtomicFile>,
}

impl Output {
    /// Opens what is to be written, so that a file that cannot be is refused before the work.
    pub(super) fn open(&self) -> anyhow::Result<Destination> {
        let file = self.output.as_deref().map(AtomicFile::create).transpose()?;
        Ok(Destination { format: self.format, file })
    }
}

impl Destination {
    /// Writes the result where it belongs, and its warnings to standard error.
    pub(super) fn publish(self, result: &impl Render) -> anyhow::Result<()> {
        const REMEDY: &str = "the result could not be written; check the path and the space left";
        for warning in result.warnings() {
            say(&format!("warning: {warning}"));
        }
        let bytes = result.render(self.format)?;
        match self.file {
            Some(mut file) => file.write_all(&bytes).and_then(|()| file.commit()).context(REMEDY),
            None => print(&bytes).context(REMEDY),
        }
    }
}

/// The seed that is given, or a fresh one, which is shown: of 53 bits, so that it survives a JSON reader that knows only
/// floating-point numbers.
pub(super) fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| {
        let seed = rand::random::<u64>() >> 11;
        say(&format!("seed: {seed} (fresh; --seed {seed} gives this result again)"));
        seed
    })
}
