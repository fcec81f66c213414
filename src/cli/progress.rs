//! How far a command is: a bar where standard error is a terminal, or lines of JSON.
//!
//! A line is an object with `kind` = `progress`, `rounds` (done, over all replicas), `of` (most rounds), `elapsed_s`,
//! `rounds_per_s`, `balls_per_s` (from the expected balls of a round), `eta_s` (`null` before the first round); for a
//! sweep also the `part` of `parts` that all this is about. The rates are means since the beginning. The pilot of a burn-in
//! has an `of` and an `eta_s` of `null`: it ends when its starts agree; so have `cover`, which ends when all
//! is covered, and `tail`, which ends when its errors are small.

use super::log;
use crate::backend::Control;
use crate::report::human;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde_json::json;
use std::fmt::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the control by a bar.
const TICK: Duration = Duration::from_millis(100);
/// Time between two lines of JSON.
const LINE: Duration = Duration::from_secs(1);

/// The bar that is visible now.
static VISIBLE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Does `write` where the bar does not disturb it.
pub(super) fn beside_the_bar(write: impl FnOnce()) {
    let bar = VISIBLE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Show {
    /// A bar where standard error is a terminal
    #[default]
    Auto,
    /// Not at all
    Never,
    /// An object a second on standard error
    Json,
}

/// Shows how far a run is.
#[derive(Debug)]
pub(super) struct Progress {
    show: Show,
    bar: ProgressBar,
    /// Most rounds over all replicas, where that is known.
    rounds: Option<u64>,
    /// Expected balls of a round.
    balls: f64,
    /// Number of this part, and of all parts.
    part: (usize, usize),
    /// Rounds that the control had counted before.
    before: u64,
}

impl Progress {
    /// `rounds` over all replicas, of `balls` expected balls each.
    pub(super) fn new(rounds: u64, balls: f64, show: Show) -> Self {
        Self::of_part(rounds, balls, (1, 1), 0, show)
    }

    /// The same for one part of several, as (number, parts), if the control has counted the rounds `before` it.
    pub(super) fn of_part(rounds: u64, balls: f64, part: (usize, usize), before: u64, show: Show) -> Self {
        let template = "{prefix}{bar:24} {percent:>3} %  {rates}  {elapsed} done, {eta} to go";
        let progress = Self::styled(Some(rounds), balls, template, show);
        let (number, parts) = part;
        if parts > 1 {
            progress.bar.set_prefix(format!("{number}/{parts} "));
        }
        Self { part, before, ..progress }
    }

    /// The same for work of which nobody knows how long it takes; `what` says which rounds they are.
    pub(super) fn without_end(what: &str, balls: f64, show: Show) -> Self {
        Self::styled(None, balls, &format!("{what}: {{human_pos}}  {{rates}}  {{elapsed}}"), show)
    }

    fn styled(rounds: Option<u64>, balls: f64, template: &str, show: Show) -> Self {
        let bar = match (show, rounds) {
            (Show::Auto, Some(rounds)) => ProgressBar::new(rounds),
            (Show::Auto, None) => ProgressBar::no_length(),
            _ => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed").with_key(
            "rates",
            move |state: &ProgressState, out: &mut dyn Write| {
                let rate = state.per_sec();
                let _ = write!(out, "{} rounds/s  {} balls/s", human(rate), human(rate * balls));
            },
        );
        bar.set_style(style);
        Self { show, bar, rounds, balls, part: (1, 1), before: 0 }
    }

    /// Does `work` and shows how `control` advances; a bar vanishes at the end.
    pub(super) fn watch<T>(&self, control: &Control, work: impl FnOnce() -> T) -> T {
        if self.bar.is_hidden() && self.show != Show::Json {
            return work();
        }
        let begun = Instant::now();
        thread::scope(|scope| {
            // Dropped when `work` ends, also by a panic: this stops the watcher.
            let (_running, ended) = channel::<()>();
            let done = || control.rounds().saturating_sub(self.before);
            scope.spawn(move || {
                if self.show == Show::Json {
                    while ended.recv_timeout(LINE) == Err(RecvTimeoutError::Timeout) {
                        self.line(done(), begun.elapsed());
                    }
                    self.line(done(), begun.elapsed());
                } else {
                    set_visible(Some(self.bar.clone()));
                    while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                        self.bar.set_position(done());
                    }
                    set_visible(None);
                    self.bar.finish_and_clear();
                }
            });
            work()
        })
    }

    /// Writes a line of JSON.
    fn line(&self, done: u64, elapsed: Duration) {
        let elapsed = elapsed.as_secs_f64();
        let rate = done as f64 / elapsed;
        let left = self.rounds.map(|rounds| rounds.saturating_sub(done) as f64);
        let mut value = json!({
            "kind": "progress",
            "rounds": done,
            "of": self.rounds,
            "elapsed_s": elapsed,
            "rounds_per_s": rate,
            "balls_per_s": rate * self.balls,
            "eta_s": left.filter(|_| done > 0).map(|left| left / rate),
        });
        let (number, parts) = self.part;
        if parts > 1 {
            value["part"] = number.into();
            value["parts"] = parts.into();
        }
        log::object(&value);
    }
}

fn set_visible(bar: Option<ProgressBar>) {
    *VISIBLE.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}
