//! How far a run is, and whether it should stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared with a running backend: how far it is, and whether it should stop.
///
/// A [part](Self::part) of a control stops with the whole or by itself, and what it reports counts for both: a block that
/// is no longer wanted can be stopped alone, and what it reported taken back.
#[derive(Debug, Default)]
pub struct Control<'w> {
    cancelled: AtomicBool,
    rounds: AtomicU64,
    whole: Option<&'w Control<'w>>,
}

impl Control<'_> {
    /// A part of this control, which has reported nothing yet.
    #[must_use]
    pub fn part(&self) -> Control<'_> {
        Control { whole: Some(self), ..Control::default() }
    }

    /// Asks the backend to stop at the next opportunity.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Control::cancel`] was called, here or on the whole.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.whole.is_some_and(Control::is_cancelled)
    }

    /// Reports rounds done, counted over all replicas.
    pub fn advance(&self, rounds: u64) {
        self.rounds.fetch_add(rounds, Ordering::Relaxed);
        if let Some(whole) = self.whole {
            whole.advance(rounds);
        }
    }

    /// Takes back rounds reported by work that has to be redone.
    pub fn retract(&self, rounds: u64) {
        self.rounds.fetch_sub(rounds, Ordering::Relaxed);
        if let Some(whole) = self.whole {
            whole.retract(rounds);
        }
    }

    /// Rounds done so far, counted over all replicas.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_for_the_whole_and_stops_alone() {
        let whole = Control::default();
        let (a, b) = (whole.part(), whole.part());
        let inner = a.part();
        inner.advance(5);
        b.advance(3);
        inner.retract(1);
        assert_eq!([&inner, &a, &b, &whole].map(Control::rounds), [4, 4, 3, 7]);
        a.cancel();
        assert_eq!([&inner, &a, &b, &whole].map(Control::is_cancelled), [true, true, false, false]);
        whole.cancel();
        assert!(b.is_cancelled());
    }
}
