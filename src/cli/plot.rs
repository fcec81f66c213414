//! `leakybins plot FILE`: a result as a picture.

use super::exit::{Exit, Refused};
use super::output::{file, fill, picture};
use crate::plot::{View, overlay, render};
use anyhow::Context;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  leakybins run leaky --seed 1 --format json -o run.json
  leakybins plot run.json -o run.svg
  leakybins plot run.json --view histogram -o histogram.png
  leakybins plot tail-d1.json tail-d2.json run-d1.json run-d2.json -o tails.svg
  leakybins theory leaky --format json | leakybins plot - -o theory.svg

The same document gives the same picture, byte for byte.";

/// Arguments of `leakybins plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PlotArgs {
    /// Results in JSON, as `--format json` writes them; `-`: standard input. Several are drawn in one picture: tails as
    /// lines, runs as points on them
    #[arg(value_name = "FILE", required = true)]
    documents: Vec<PathBuf>,
    /// File for the picture, NAME.svg or NAME.png, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", value_parser = file)]
    output: PathBuf,
    /// What to draw [default: the main view of its kind: survival, scaling, recovery, ..]
    #[arg(long, value_enum)]
    view: Option<View>,
}

/// Draws the picture.
pub(super) fn run(arguments: &PlotArgs) -> anyhow::Result<Exit> {
    let PlotArgs { documents, output, view } = arguments;
    let (file, format) = picture(output)?;
    let bytes = match &documents[..] {
        [document] => render(&read(document)?, *view, format).with_context(|| document.display().to_string())?,
        _ if matches!(view, None | Some(View::Survival)) => {
            overlay(&documents.iter().map(|document| read(document)).collect::<Result<Vec<_>, _>>()?, format)?
        }
        _ => {
            let reason = "several documents have one picture, their survival; leave --view out";
            return Err(Refused(reason.to_owned()).into());
        }
    };
    fill(file, &bytes, "picture")?;
    Ok(Exit::Done)
}

/// Largest document, in bytes: more than any result has, for an input that never ends.
const LARGEST: u64 = 1 << 30;

fn read(path: &Path) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let mut fill = |input: &mut dyn Read| input.take(LARGEST + 1).read_to_end(&mut bytes);
    let result = if path == Path::new("-") {
        fill(&mut io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(|mut file| fill(&mut file))
    };
    let refused = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Refused(format!("{path} cannot be read ({why}); give the path of a result in JSON, or - for standard input"))
    };
    match result {
        Err(error) => Err(refused(&error)),
        Ok(read) if read as u64 > LARGEST => Err(refused(&"it is larger than 1 GiB")),
        Ok(_) => Ok(bytes),
    }
}
