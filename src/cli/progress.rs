//! The progress bar, where standard error is a terminal.

use crate::backend::Control;
use crate::report::human;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time between two looks at the control.
const TICK: Duration = Duration::from_millis(100);

/// Shows how far a run is. Invisible where standard error is no terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    /// Rounds that the control had counted before.
    before: u64,
}

impl Progress {
    /// `rounds` over all replicas, of `balls` expected balls each; nothing is shown where `visible` is false.
    pub(super) fn new(rounds: u64, balls: f64, visible: bool) -> Self {
        Self::of_part(rounds, balls, (1, 1), 0, visible)
    }

    /// The same for one part of several, as (number, parts), if the control has counted the rounds `before` it.
    pub(super) fn of_part(rounds: u64, balls: f64, (part, parts): (usize, usize), before: u64, visible: bool) -> Self {
        let bar = if visible { ProgressBar::new(rounds) } else { ProgressBar::hidden() };
        let style =
            ProgressStyle::with_template("{prefix}{bar:24} {percent:>3} %  {rates}  {elapsed} done, {eta} to go")
                .expect("the template is well-formed")
                .with_key("rates", move |state: &ProgressState, out: &mut dyn Write| {
                    let rate = state.per_sec();
                    let _ = write!(out, "{} rounds/s  {} balls/s", human(rate), human(rate * balls));
                });
        bar.set_style(style);
        if parts > 1 {
            bar.set_prefix(format!("{part}/{parts} "));
        }
        Self { bar, before }
    }

    /// Does `work` and moves the bar as `control` advances; the bar vanishes at the end.
    pub(super) fn watch<T>(&self, control: &Control, work: impl FnOnce() -> T) -> T {
        if self.bar.is_hidden() {
            return work();
        }
        thread::scope(|scope| {
            // Dropped when `work` ends, also by a panic: this stops the watcher.
            let (_running, ended) = channel::<()>();
            let Self { bar, before } = self;
            scope.spawn(move || {
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    bar.set_position(control.rounds().saturating_sub(*before));
                }
                bar.finish_and_clear();
            });
            work()
        })
    }

    /// Says something without disturbing the bar.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| super::say(line));
    }
}
