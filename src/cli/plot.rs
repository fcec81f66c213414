//! `leakybins plot FILE`: a result as a picture.

use super::exit::{Exit, Refused};
use super::output::{file, fill, picture};
use crate::plot::{View, render};
use anyhow::Context;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  leakybins run leaky --seed 1 --format json -o run.json
  leakybins plot run.json -o run.svg
  leakybins plot run.json --view histogram -o histogram.png
  leakybins theory leaky --format json | leakybins plot - -o theory.svg

The same document gives the same picture, byte for byte.";

/// Arguments of `leakybins plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PlotArgs {
    /// Result in JSON, as `--format json` writes it; `-`: standard input
    #[arg(value_name = "FILE")]
    document: PathBuf,
    /// File for the picture, NAME.svg or NAME.png, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", value_parser = file)]
    output: PathBuf,
    /// What to draw [default: the main view of its kind: survival, scaling, recovery, ..]
    #[arg(long, value_enum)]
    view: Option<View>,
}

/// Draws the picture.
pub(super) fn run(arguments: &PlotArgs) -> anyhow::Result<Exit> {
    let PlotArgs { document, output, view } = arguments;
    let (file, format) = picture(output)?;
    let bytes = render(&read(document)?, *view, format).with_context(|| document.display().to_string())?;
    fill(file, &bytes, "picture")?;
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let result = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    result.map_err(|e| {
        Refused(format!(
            "{} cannot be read ({e}); give the path of a result in JSON, or - for standard input",
            path.display()
        ))
    })?;
    Ok(bytes)
}
