//! What Ctrl-C, SIGTERM and SIGHUP do.

use super::exit::Exit;
use super::log::fail;
use crate::backend::{BackendError, Control};
use crate::run::RunError;
use anyhow::Context;
use std::sync::Arc;

/// A control that the first signal cancels; the second ends the process.
pub(super) fn interruptible() -> anyhow::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let handle = Arc::clone(&control);
    let install = || {
        ctrlc::set_handler(move || {
            if handle.is_cancelled() {
                fail("stopped at once by a second signal; no result", Exit::Interrupted);
                std::process::exit(Exit::Interrupted as i32);
            }
            handle.cancel();
        })
        .context("signals cannot be handled")
    };
    keep_hangup_ignored(install)?;
    Ok(control)
}

/// `error` with how far it was of `all_rounds` rounds, where it is that of a signal.
pub(super) fn stopped(error: RunError, control: &Control, all_rounds: u64) -> anyhow::Error {
    match error {
        RunError::Backend(BackendError::Cancelled) => anyhow::Error::from(error)
            .context(format!("stopped after {} of {all_rounds} rounds over all replicas; no result", control.rounds())),
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
