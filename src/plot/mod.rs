//! Pictures of results: a JSON document of another command in, an SVG or a PNG out.
//!
//! A document says by its field `kind` what it is; a [`View`] says what of it is drawn:
//!
//! | kind | views, the first by default |
//! |---|---|
//! | `run` | [`Survival`](View::Survival), [`Histogram`](View::Histogram) |
//! | `theory` | [`Survival`](View::Survival) |
//! | `sweep` | [`Scaling`](View::Scaling) |
//! | `recover` | [`Recovery`](View::Recovery) |
//! | `cover` | [`Cover`](View::Cover) |
//! | `tail` | [`Survival`](View::Survival) |
//! | `cost` | [`Cost`](View::Cost) |
//!
//! Only fields that are drawn are read. Intervals, theory and fits are drawn where the document has them. The same
//! document gives the same bytes. Numbers are drawn as the document holds them: nothing is estimated here, except that
//! P(M >= k) of a run without `exceedance` is counted from its histogram.
//!
//! A value that is null has no mark; nor has one that is not positive on a logarithmic axis, except that an interval that
//! ends at 0, or far below all values, reaches to the axis. The colours are those of Okabe and Ito (2008); dashes and
//! markers tell series apart without colour, too. The letters of a PNG come out of an embedded font (`DejaVu` Sans).

mod axis;
mod chart;
mod cost;
mod cover;
mod draw;
mod font;
mod format;
mod raster;
mod recover;
mod run;
mod sweep;
mod tail;
mod theory;

pub use format::Format;

use serde::Deserialize;
use std::collections::BTreeMap;

/// Version of the documents that are understood.
const SCHEMA: u64 = 1;

/// What of a document is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// P(M >= k) over k on a logarithmic axis, M the max load, with its intervals and theory
    Survival,
    /// How often each max load was seen, with theory
    Histogram,
    /// Mean max load over 1/(1 - lambda), with theory and fits
    Scaling,
    /// Max load and total load over the rounds, with theory
    Recovery,
    /// Fraction of the replicas whose balls have been in every bin, over the rounds
    Cover,
    /// Time of a round over n on each backend
    Cost,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// Not JSON, or a field of another type than its kind of document has.
    #[error("the document cannot be read ({0}); give a result of leakybins in JSON, as --format json writes it")]
    Document(#[from] serde_json::Error),
    /// No `kind`, or one without a picture.
    #[error(
        "the document has {0}; kinds with a picture are run, theory, sweep, recover, cover, tail and cost: write it again \
         with --format json"
    )]
    Kind(String),
    /// Written by another version.
    #[error(
        "the document has schema {0}, but this version draws schema {SCHEMA}; draw it with the version that wrote it"
    )]
    Schema(u64),
    /// A view of another kind of document.
    #[error("a document of the kind '{kind}' has no such view; use {views}")]
    View {
        /// Kind of the document.
        kind: String,
        /// The views that it has.
        views: &'static str,
    },
    /// Kinds that do not go into one picture.
    #[error("a document of the kind '{0}' has its picture for itself; several documents in one are tails and runs")]
    Several(String),
    /// No mark would be drawn.
    #[error("the document has nothing to draw ({0}); draw a document that has it")]
    Empty(&'static str),
    /// More series than can be told apart.
    #[error("the document has {found} {what}, and a picture tells {most} apart; draw fewer")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// Series in the document.
        found: usize,
        /// Series in a picture.
        most: usize,
    },
    /// A fit over an unknown function of lambda and n.
    #[error("the document has a fit over '{0}', which is not known; draw it with the version that wrote it")]
    Fit(String),
    /// The drawing itself.
    #[error("the picture could not be drawn ({0}); please report this as an error of leakybins")]
    Drawing(String),
}

/// The picture of a JSON document; `view` is the default of its kind where there is none.
///
/// # Errors
/// Where the document is not understood, has no such view, or has nothing to draw.
pub fn render(document: &[u8], view: Option<View>, format: Format) -> Result<Vec<u8>, PlotError> {
    let kind = kind(document)?;
    let chart = match (&*kind, view) {
        ("run", None | Some(View::Survival)) => run::survival(&serde_json::from_slice(document)?)?,
        ("run", Some(View::Histogram)) => run::histogram(&serde_json::from_slice(document)?)?,
        ("theory", None | Some(View::Survival)) => theory::survival(&serde_json::from_slice(document)?)?,
        ("sweep", None | Some(View::Scaling)) => sweep::scaling(&serde_json::from_slice(document)?)?,
        ("recover", None | Some(View::Recovery)) => recover::recovery(&serde_json::from_slice(document)?)?,
        ("tail", None | Some(View::Survival)) => tail::survival(&serde_json::from_slice(document)?)?,
        ("cover", None | Some(View::Cover)) => cover::cover(&serde_json::from_slice(document)?)?,
        ("cost", None | Some(View::Cost)) => cost::cost(&serde_json::from_slice(document)?)?,
        ("run", _) => return Err(PlotError::View { kind, views: "survival or histogram" }),
        ("theory", _) => return Err(PlotError::View { kind, views: "survival" }),
        ("tail", _) => return Err(PlotError::View { kind, views: "survival" }),
        ("sweep", _) => return Err(PlotError::View { kind, views: "scaling" }),
        ("recover", _) => return Err(PlotError::View { kind, views: "recovery" }),
        ("cover", _) => return Err(PlotError::View { kind, views: "cover" }),
        ("cost", _) => return Err(PlotError::View { kind, views: "cost" }),
        _ => return Err(PlotError::Kind(format!("the unknown kind '{kind}'"))),
    };
    format.render(&chart)
}

/// The picture of several JSON documents in one: those of tails as lines, those of runs as points on them.
///
/// # Errors
/// Where a document is of another kind, or there is nothing to draw.
pub fn overlay(documents: &[Vec<u8>], format: Format) -> Result<Vec<u8>, PlotError> {
    let (mut tails, mut runs) = (Vec::new(), Vec::new());
    for document in documents {
        match &*kind(document)? {
            "tail" => tails.push(serde_json::from_slice(document)?),
            "run" => runs.push(serde_json::from_slice(document)?),
            other => return Err(PlotError::Several(other.to_owned())),
        }
    }
    format.render(&tail::overlay(&tails, &runs)?)
}

/// The kind of a document, of a schema that is understood.
fn kind(document: &[u8]) -> Result<String, PlotError> {
    #[derive(Deserialize)]
    struct Header {
        schema: Option<u64>,
        kind: Option<String>,
    }
    let header: Header = serde_json::from_slice(document)?;
    let kind = header.kind.ok_or_else(|| PlotError::Kind("no field 'kind'".to_owned()))?;
    match header.schema.filter(|schema| *schema != SCHEMA) {
        Some(schema) => Err(PlotError::Schema(schema)),
        None => Ok(kind),
    }
}

/// The parameters of a process, as far as a document has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, transparent)]
struct Parameters(serde_json::Map<String, serde_json::Value>);

impl Parameters {
    /// Number of bins.
    fn bins(&self) -> Option<f64> {
        self.0.get("n").and_then(serde_json::Value::as_f64)
    }

    /// `n = 1024, λ = 0.95, ..`.
    fn line(&self) -> String {
        self.parts().map(|(_, part)| part).collect::<Vec<_>>().join(", ")
    }

    /// Those that the law of a round depends on, by name, as [`line`](Self::line) says them.
    fn of_the_law(&self) -> BTreeMap<&str, String> {
        self.parts().filter(|(name, _)| *name != "start").collect()
    }

    /// Each with its name.
    fn parts(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(name, value)| {
            let part = match name.as_str() {
                "arrivals" => format!("{} arrivals", text(value)),
                "start" => format!("start {}", text(value)),
                "lambda" => format!("λ = {}", text(value)),
                name => format!("{name} = {}", text(value)),
            };
            (name.as_str(), part)
        })
    }
}

/// A value of a parameter: a text as it is.
fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The process in words, for a title.
fn name(process: Option<&str>) -> &str {
    match process {
        Some("leaky") => "Leaky bins",
        Some("capped") => "CAPPED(c, lambda)",
        Some("repeated") => "Repeated balls-into-bins",
        Some("tetris") => "Tetris",
        Some(process) => process,
        None => "Balls into bins",
    }
}

/// How sure an interval is, as a percentage: `95 %`.
fn percentage(confidence: Option<f64>) -> Option<String> {
    // Rounded, for 0.999 times 100 is not 99.9.
    let percent = |confidence: f64| format!("{} %", (confidence * 1e8).round() / 1e6);
    confidence.filter(|confidence| (0.0..=1.0).contains(confidence)).map(percent)
}

/// When in a round the loads were observed.
fn instant(measure: &str) -> Option<&'static str> {
    match measure {
        "pre" => Some("loads before the deletions"),
        "post" => Some("loads at the end of a round"),
        _ => None,
    }
}
