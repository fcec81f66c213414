//! What is asked of the levels.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most rounds from the start to the last that is asked for.
pub const MAX_ROUNDS: u64 = 1 << 40;

/// When the max load M is to be at least a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// At the end of a round in the stationary state, whatever the start.
    #[default]
    Stationary,
    /// At the end of this round, counted from 1, from the start.
    AtRound(u64),
    /// At the end of at least one of so many rounds from the start.
    Within(u64),
}

impl Question {
    /// Rounds from the start to the last one asked for; `None` in the stationary state, which has no start.
    #[must_use]
    pub fn horizon(self) -> Option<u64> {
        match self {
            Question::Stationary => None,
            Question::AtRound(rounds) | Question::Within(rounds) => Some(rounds),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Stationary => f.write_str("stationary"),
            Question::AtRound(round) => write!(f, "at round {round}"),
            Question::Within(rounds) => write!(f, "within {rounds} rounds"),
        }
    }
}
