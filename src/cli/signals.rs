//! What Ctrl-C, SIGTERM and SIGHUP do.

use super::exit::Exit;
use super::log::fail;
use crate::backend::{BackendError, Control};
use crate::run::RunError;
use anyhow::Context;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time that a run with a journal gets to drop its blocks. The finished ones are on disk, so that it can end anywhere.
const PATIENCE: Duration = Duration::from_secs(8);

/// A control that the first signal cancels; the second ends the process with `exit`. Where that is
/// [`Exit::Resumable`], so does time.
pub(super) fn interruptible(exit: Exit) -> anyhow::Result<Arc<Control<'static>>> {
    let control = Arc::new(Control::default());
    let handle = Arc::clone(&control);
    let install = || {
        ctrlc::set_handler(move || {
            if handle.is_cancelled() {
                fail("stopped at once by a second signal; no result", exit);
                std::process::exit(exit as i32);
            }
            handle.cancel();
            if exit == Exit::Resumable {
                thread::spawn(move || {
                    thread::sleep(PATIENCE);
                    fail("stopped in the middle of a block; run the same command to continue", exit);
                    std::process::exit(exit as i32);
                });
            }
        })
        .context("signals cannot be handled")
    };
    keep_hangup_ignored(install)?;
    Ok(control)
}

/// `error` with how far it was of `all_rounds` rounds, if these are known, where it is that of a signal.
pub(super) fn stopped(error: RunError, control: &Control, all_rounds: Option<u64>) -> anyhow::Error {
    match error {
        RunError::Backend(BackendError::Cancelled) => {
            let of = all_rounds.map_or_else(String::new, |all| format!(" of {all}"));
            let done = control.rounds();
            anyhow::Error::from(error).context(format!("stopped after {done}{of} rounds over all replicas; no result"))
        }
        other => other.into(),
    }
}

/// `install` handles SIGHUP, too. Under `nohup` it is ignored, and has to be after that.
#[cfg(unix)]
fn keep_hangup_ignored(install: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed, SIGHUP is only ignored.
    let before = unsafe { sigaction(Signal::SIGHUP, &ignore) }.context("signals cannot be handled")?;
    install()?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        // SAFETY: as above.
        unsafe { sigaction(Signal::SIGHUP, &ignore) }.context("signals cannot be handled")?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn keep_hangup_ignored(install: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    install()
}
