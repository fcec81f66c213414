//! How many rounds a submission takes, so that it ends before anyone waits for it or any watchdog fires.

use std::time::Duration;

/// Adapts the rounds of the next submission to the time that the last one took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ramp {
    rounds: u64,
    most: u64,
    budget: Duration,
}

impl Ramp {
    /// Starts with `rounds`, aims at `budget` a submission, and never exceeds `most` rounds.
    pub(super) fn new(rounds: u64, most: u64, budget: Duration) -> Self {
        Self { rounds: rounds.clamp(1, most), most, budget }
    }

    /// Rounds of the next submission.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Learns that `rounds` took `elapsed`: the next submission is at most four times shorter and twice longer.
    pub(super) fn learn(&mut self, rounds: u64, elapsed: Duration) {
        let factor = (self.budget.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)).clamp(0.25, 2.0);
        self.rounds = ((rounds as f64 * factor) as u64).clamp(1, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_budget_and_falls_back_by_four() {
        let ms = Duration::from_millis;
        let mut ramp = Ramp::new(4, 1000, ms(100));
        let mut sequence = vec![ramp.rounds()];
        // A device that needs 1 ms a round, then 20 ms a round, then nothing measurable.
        for cost in [1, 1, 1, 1, 1, 1, 20, 20, 20, 20, 20, 20, 0, 0, 0, 0, 0, 0, 0, 0] {
            let rounds = ramp.rounds();
            ramp.learn(rounds, ms(cost * rounds));
            sequence.push(ramp.rounds());
        }
        let expected = [4, 8, 16, 32, 64, 100, 100, 25, 6, 5, 5, 5, 5, 10, 20, 40, 80, 160, 320, 640, 1000];
        assert_eq!(sequence, expected);
    }

    #[test]
    fn never_leaves_its_bounds() {
        let mut ramp = Ramp::new(0, 3, Duration::from_millis(100));
        assert_eq!(ramp.rounds(), 1);
        ramp.learn(1, Duration::from_secs(1000));
        assert_eq!(ramp.rounds(), 1);
        ramp.learn(3, Duration::ZERO);
        assert_eq!(ramp.rounds(), 3);
    }
}
