//! `leakybins verify FILE`: blocks of a journal, computed again.

use super::device::Threads;
use super::exit::{Exit, Refused};
use super::journal::warn_if_torn;
use super::print;
use super::signals::interruptible;
use crate::backend::{Backend, Control, Host, Profiles, StreamKind};
use crate::journal::{Contents, Difference, Header, Kind, Mismatch, Subject, Verified, verify};
use crate::number::count;
use crate::tail;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  leakybins verify results.jsonl
  leakybins verify results.jsonl --fraction 0.1 --backend cpu --seed 1

Tallies are compared exactly. The exit code is 6 where one differs.";

/// Differences of a block that are shown.
const SHOWN: usize = 8;

/// Arguments of `leakybins verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    /// Journal, as `run --out`, `tail --out` or `merge` writes it
    #[arg(value_name = "FILE")]
    journal: PathBuf,
    /// Part of the blocks that is computed again; at least one is
    #[arg(long, value_name = "P", default_value = "0.01", allow_hyphen_values = true)]
    fraction: f64,
    /// Where to compute them [default: reference, or profile for a journal made by that,
    /// as all of `tail` are]
    #[arg(long, value_enum)]
    backend: Option<Again>,
    /// Seed of the choice of blocks [default: a fresh one, which is shown]
    #[arg(long, value_parser = count)]
    seed: Option<u64>,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Again {
    /// The plain definition
    Reference,
    /// The fast CPU path
    Cpu,
    /// The numbers of bins by load
    Profile,
}

/// Verifies.
pub(super) fn run(arguments: &VerifyArgs) -> anyhow::Result<Exit> {
    let VerifyArgs { journal, fraction, backend, .. } = arguments;
    if !(*fraction > 0.0 && *fraction <= 1.0) {
        let reason =
            format!("fraction = {fraction} is not allowed (it is a part of the blocks); use 0 < fraction <= 1");
        return Err(Refused(reason).into());
    }
    match Kind::of(journal)?.unwrap_or(Kind::Run) {
        Kind::Run => {
            let contents = Contents::<Header>::read(journal)?;
            warn_if_torn(&contents);
            let mut backend: Box<dyn Backend> = match (backend, contents.header().stream()) {
                (Some(Again::Cpu), _) => Box::new(Host::cpu()),
                (Some(Again::Profile), _) | (None, StreamKind::Profile) => Box::new(Profiles),
                (Some(Again::Reference), _) | (None, StreamKind::Bins) => Box::new(Host::reference()),
            };
            let (chosen, control) = begin(arguments)?;
            let verified = verify(&contents, &mut *backend, chosen, &control)?;
            judge(&contents, &verified, backend.name())
        }
        Kind::Tail => {
            let contents = Contents::<tail::Header>::read(journal)?;
            warn_if_torn(&contents);
            let (own, name) = match contents.header().spec().states {
                StreamKind::Bins => (Again::Cpu, "cpu"),
                StreamKind::Profile => (Again::Profile, Profiles.name()),
            };
            if backend.is_some_and(|backend| backend != own) {
                let reason = format!("the islands of this journal are computed by {name} only; leave --backend out");
                return Err(Refused(reason).into());
            }
            let (chosen, control) = begin(arguments)?;
            let verified = tail::verify(&contents, chosen, &control)?;
            judge(&contents, &verified, name)
        }
    }
}

/// What decides which blocks are computed, and the control of that; threads are there from here on.
fn begin(arguments: &VerifyArgs) -> anyhow::Result<((f64, u64), Arc<Control<'static>>)> {
    let seed = arguments.seed.unwrap_or_else(|| {
        let seed = rand::random::<u64>() >> 11;
        tracing::info!(seed, "seed: {seed} (fresh; --seed {seed} chooses these blocks again)");
        seed
    });
    let control = interruptible(Exit::Interrupted)?;
    arguments.threads.start()?;
    Ok(((arguments.fraction, seed), control))
}

/// Says what came out.
fn judge<S: Subject>(contents: &Contents<S>, verified: &Verified, backend: &str) -> anyhow::Result<Exit> {
    let Verified { blocks, mismatches } = verified;
    let agreeing = blocks - mismatches.len();
    let (name, all) = (S::BLOCKS, contents.entries().len());
    let mut text = format!("{agreeing} of {blocks} {name} computed again on {backend} agree; the journal has {all}\n");
    mismatches.iter().try_for_each(|mismatch| describe(&mut text, S::UNITS, mismatch))?;
    print(text.as_bytes())?;
    Ok(if mismatches.is_empty() { Exit::Done } else { Exit::SelfCheck })
}

fn describe(text: &mut String, units: &str, Mismatch { block, machine, differences }: &Mismatch) -> std::fmt::Result {
    let adapter = machine.adapter.as_deref().unwrap_or("none");
    writeln!(text, "{units} {}..{}, by {}, adapter {adapter}, differ:", block.start, block.end, machine.backend)?;
    for Difference { field, journal, other } in differences.iter().take(SHOWN) {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        writeln!(text, "  {field}: {} in the journal, {} now", value(journal), value(other))?;
    }
    if differences.len() > SHOWN {
        writeln!(text, "  and {} more", differences.len() - SHOWN)?;
    }
    Ok(())
}
