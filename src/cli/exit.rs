//! Exit codes, the same for every command.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | unexpected failure, such as a full disk |
//! | 2 | usage: a flag, parameter, file or memory need that is refused |
//! | 3 | `merge --check`: blocks are missing |
//! | 4 | no suitable adapter, or the device failed or was lost |
//! | 5 | data integrity: balls were not conserved, or a journal is damaged |
//! | 6 | self-check failed: a device or the CPU path differs from the definition, or a block from its verification |
//! | 75 | interrupted by a signal; the finished blocks are in the journal: run the same command to continue |
//! | 130 | interrupted by a signal; no result |

use super::log::{Form, fail};
use crate::backend::BackendError;
use crate::journal::JournalError;
use crate::plot::PlotError;
use crate::process::ParameterError;
use crate::run::{EnvironmentError, RunError, SpecError};
use crate::stats::interval::IntervalError;
use crate::tail::TailError;
use crate::theory::TheoryError;
use std::process::ExitCode;

/// The table above as `--help` shows it.
pub(super) const HELP: &str = "\
Exit codes:
  0    done
  1    unexpected failure, such as a full disk
  2    usage: a flag, parameter, file or memory need that is refused
  3    merge --check: blocks are missing
  4    no suitable adapter, or the device failed or was lost
  5    data integrity: balls were not conserved, or a journal is damaged
  6    self-check failed: a backend, or a block of a journal, differs from the definition
  75   interrupted by a signal; run the same command to continue its journal
  130  interrupted by a signal; no result";

/// How a command ended. The discriminant is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Unexpected failure.
    Failure = 1,
    /// Usage, or refused parameters.
    Usage = 2,
    /// Blocks are missing.
    Incomplete = 3,
    /// No suitable adapter, or the device failed or was lost.
    NoDevice = 4,
    /// Balls were not conserved, or a journal is damaged.
    Integrity = 5,
    /// A backend or a block differs from the definition.
    SelfCheck = 6,
    /// Interrupted by a signal; the same command goes on.
    Resumable = 75,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl Exit {
    /// Its name in messages for programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Failure => "failure",
            Exit::Usage => "usage",
            Exit::Incomplete => "incomplete",
            Exit::NoDevice => "no-device",
            Exit::Integrity => "integrity",
            Exit::SelfCheck => "self-check",
            Exit::Resumable => "resumable",
            Exit::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A request that the command line itself refuses.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(pub(super) String);

/// A signal stopped a run with a journal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: {0}; run the same command to continue")]
pub(super) struct Resumable(pub(super) String);

/// Says on standard error what went wrong, and gives the exit code for it.
pub(super) fn explain(error: &anyhow::Error) -> Exit {
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return explain_words(error);
    }
    let exit = classify(error);
    fail(&story(error), exit);
    exit
}

/// What went wrong and why, from the outside in. A cause that the message before it quotes is not said again.
fn story(error: &anyhow::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.last().is_none_or(|before| !before.contains(&cause)) {
            told.push(cause);
        }
    }
    told.join(": ")
}

/// The same for words of the command line that are not understood, or that ask for help.
fn explain_words(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // Whoever has gone away needs no help.
        let _ = error.print();
        return Exit::Done;
    }
    if Form::chosen() == Form::Text {
        // In colour where that is wanted.
        let _ = error.print();
    } else {
        let text = error.render().to_string();
        fail(text.trim_start_matches("error: ").trim_end(), Exit::Usage);
    }
    Exit::Usage
}

fn classify(error: &anyhow::Error) -> Exit {
    if let Some(error) = error.downcast_ref::<RunError>() {
        return match error {
            RunError::Spec(_) | RunError::Parameter(_) => Exit::Usage,
            RunError::Backend(e) => of_backend(e),
            RunError::Journal(e) => of_journal(e),
            RunError::TooLarge => Exit::Integrity,
            RunError::Loads(_) => Exit::Failure,
        };
    }
    if let Some(error) = error.downcast_ref::<BackendError>() {
        return of_backend(error);
    }
    if let Some(error) = error.downcast_ref::<JournalError>() {
        return of_journal(error);
    }
    if let Some(error) = error.downcast_ref::<TailError>() {
        return match error {
            TailError::Backend(e) => of_backend(e),
            TailError::Journal(e) => of_journal(e),
            _ => Exit::Usage,
        };
    }
    if error.is::<Resumable>() {
        return Exit::Resumable;
    }
    if let Some(error) = error.downcast_ref::<PlotError>() {
        return if matches!(error, PlotError::Drawing(_)) { Exit::Failure } else { Exit::Usage };
    }
    if error.is::<Refused>()
        || error.is::<IntervalError>()
        || error.is::<SpecError>()
        || error.is::<EnvironmentError>()
        || error.is::<ParameterError>()
        || error.is::<TheoryError>()
    {
        return Exit::Usage;
    }
    Exit::Failure
}

fn of_backend(error: &BackendError) -> Exit {
    match error {
        BackendError::Cancelled => Exit::Interrupted,
        BackendError::Conservation { .. } => Exit::Integrity,
        BackendError::Memory { .. } | BackendError::Unsupported(_) => Exit::Usage,
        BackendError::SelfCheck(_) => Exit::SelfCheck,
        BackendError::NoAdapter(_) | BackendError::Device(_) | BackendError::Lost(_) => Exit::NoDevice,
    }
}

fn of_journal(error: &JournalError) -> Exit {
    match error {
        JournalError::Damaged { .. } | JournalError::Conflict { .. } | JournalError::Computed { .. } => Exit::Integrity,
        JournalError::Unwritable { .. } | JournalError::TooLong { .. } | JournalError::Broken(_) => Exit::Failure,
        JournalError::Unreadable { .. }
        | JournalError::NoJournal { .. }
        | JournalError::OtherKind { .. }
        | JournalError::Locked(_)
        | JournalError::Differs { .. }
        | JournalError::OtherStream(_)
        | JournalError::Empty(_) => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_cause_is_told_once() {
        let error = anyhow::Error::from(PlotError::from(serde_json::from_str::<u8>("x").expect_err("no number")));
        let told = story(&error.context("result.json"));
        assert!(told.starts_with("result.json: the document cannot be read (expected value"), "{told}");
        assert_eq!(told.matches("expected value").count(), 1, "{told}");
        let io = std::io::Error::other("the disk is full");
        assert_eq!(story(&anyhow::Error::from(io).context("a.json")), "a.json: the disk is full");
    }

    #[test]
    fn every_error_has_its_code() {
        let lost = || BackendError::Lost("x".into());
        let integrity = BackendError::Conservation { first: 0, end: 1, initial: 0, arrived: 1, departed: 0, left: 0 };
        let memory = BackendError::Memory { what: "x".into(), needed: 2, available: 1, remedy: "y" };
        for (error, exit) in [
            (anyhow::anyhow!("x"), Exit::Failure),
            (Refused("x".into()).into(), Exit::Usage),
            (SpecError::Replicas(0).into(), Exit::Usage),
            (TheoryError::NoRound.into(), Exit::Usage),
            (PlotError::Empty("x").into(), Exit::Usage),
            (PlotError::Drawing("x".into()).into(), Exit::Failure),
            (RunError::from(SpecError::Replicas(0)).into(), Exit::Usage),
            (RunError::from(std::io::Error::other("x")).into(), Exit::Failure),
            (BackendError::NoAdapter("x".into()).into(), Exit::NoDevice),
            (BackendError::Device("x".into()).into(), Exit::NoDevice),
            (lost().into(), Exit::NoDevice),
            (anyhow::Error::from(RunError::from(lost())).context("y"), Exit::NoDevice),
            (RunError::from(integrity).into(), Exit::Integrity),
            (RunError::from(memory).into(), Exit::Usage),
            (BackendError::Unsupported("x".into()).into(), Exit::Usage),
            (RunError::from(BackendError::SelfCheck("x".into())).into(), Exit::SelfCheck),
            (RunError::from(BackendError::Cancelled).into(), Exit::Interrupted),
            (TailError::NotStationary.into(), Exit::Usage),
            (TailError::from(BackendError::Cancelled).into(), Exit::Interrupted),
            (TailError::from(JournalError::Locked("x".into())).into(), Exit::Usage),
            (Resumable("x".into()).into(), Exit::Resumable),
            (RunError::TooLarge.into(), Exit::Integrity),
            (JournalError::Locked("x".into()).into(), Exit::Usage),
            (RunError::from(JournalError::Broken("x".into())).into(), Exit::Failure),
            (JournalError::Damaged { name: "x".into(), line: 1, reason: "y".into() }.into(), Exit::Integrity),
        ] {
            assert_eq!(classify(&error), exit, "{error:?}");
        }
    }
}
