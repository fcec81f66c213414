//! Where results go, as flags.

use super::atomic::AtomicFile;
use super::exit::Refused;
use super::print;
use super::progress::Show;
use crate::plot;
use crate::report::{Format, Render};
use anyhow::Context;
use std::io::Write;
#[cfg(feature = "parquet")]
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Form of the result
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
    /// File for the result, which appears whole or not at all [default: standard output]
    #[arg(short, long, global = true, value_name = "FILE", value_parser = file)]
    output: Option<PathBuf>,
    /// File for a picture of the result, NAME.svg or NAME.png; `leakybins plot` draws others from JSON
    #[arg(long, global = true, value_name = "FILE", value_parser = file)]
    plot: Option<PathBuf>,
    /// How to show progress
    #[arg(long, global = true, value_enum, default_value_t)]
    progress: Show,
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

/// A result's places, opened before the work begins.
pub(super) struct Destination {
    format: Format,
    file: Option<AtomicFile>,
    picture: Option<(AtomicFile, plot::Format)>,
}

impl Output {
    /// How to show progress.
    pub(super) fn progress(&self) -> Show {
        if self.quiet { Show::Never } else { self.progress }
    }

    /// Opens what is to be written, so that a file that cannot be is refused before the work. No file may be one of
    /// `others`, nor another one of the result.
    pub(super) fn open(&self, others: &[&AtomicFile]) -> anyhow::Result<Destination> {
        #[cfg(feature = "parquet")]
        if self.format == Format::Parquet && self.output.is_none() && io::stdout().is_terminal() {
            let reason = "Parquet is no text and would garble the terminal; name a file with --output";
            return Err(Refused(reason.to_owned()).into());
        }
        let file = self.output.as_deref().map(AtomicFile::create).transpose()?;
        let picture = self.plot.as_deref().map(picture).transpose()?;
        let files: Vec<&AtomicFile> =
            file.iter().chain(picture.iter().map(|(file, _)| file)).chain(others.iter().copied()).collect();
        for (i, a) in files.iter().enumerate() {
            if files[..i].iter().any(|b| a.is_same_as(b)) {
                let reason = "two of --output, --plot and other results name the same file; name different ones";
                return Err(Refused(reason.to_owned()).into());
            }
        }
        Ok(Destination { format: self.format, file, picture })
    }
}

/// The file of a picture, and its form.
pub(super) fn picture(path: &Path) -> anyhow::Result<(AtomicFile, plot::Format)> {
    let format = plot::Format::of(path).ok_or_else(|| {
        let path = path.display();
        Refused(format!("{path} has no known ending (it says which form the picture has); use .svg or .png"))
    })?;
    Ok((AtomicFile::create(path)?, format))
}

/// Writes all of a file.
pub(super) fn fill(mut file: AtomicFile, bytes: &[u8], what: &str) -> anyhow::Result<()> {
    let written = file.write_all(bytes).and_then(|()| file.commit());
    written.with_context(|| format!("the {what} could not be written; check the path and the space left"))
}

impl Destination {
    /// Refuses to replace the journal at `path` by a result.
    pub(super) fn keep_off(&self, path: &Path) -> Result<(), Refused> {
        let files = self.file.iter().chain(self.picture.iter().map(|(file, _)| file));
        if files.into_iter().any(|file| file.is_at(path)) {
            let reason =
                format!("{} is the journal and would be replaced by a result; name another file", path.display());
            return Err(Refused(reason));
        }
        Ok(())
    }

    /// Writes the result where it belongs, and its warnings to standard error.
    pub(super) fn publish(self, result: &impl Render) -> anyhow::Result<()> {
        for warning in result.warnings() {
            tracing::warn!("{warning}");
        }
        let bytes = result.render(self.format)?;
        match self.file {
            Some(file) => fill(file, &bytes, "result")?,
            None => print(&bytes).context("the result could not be written; check the space left")?,
        }
        // Not every result can be drawn, and none may be lost for that.
        if let Some((file, format)) = self.picture {
            fill(file, &plot::render(&result.render(Format::Json)?, None, format)?, "picture")?;
        }
        Ok(())
    }
}

/// The seed that is given, or a fresh one, which is shown: of 53 bits, so that it survives a JSON reader that knows only
/// floating-point numbers.
pub(super) fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| {
        let seed = rand::random::<u64>() >> 11;
        tracing::info!(seed, "seed: {seed} (fresh; --seed {seed} gives this result again)");
        seed
    })
}
