//! How many balls a bin holds at most.

use crate::number;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The capacity of a bin, c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub enum Capacity {
    /// So many balls.
    Finite(u64),
    /// Any number: no ball is ever rejected.
    Infinite,
}

/// In documents: a number, or a text in the forms of the flag.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl Capacity {
    /// The number of balls, if there is one.
    #[must_use]
    pub fn finite(self) -> Option<u64> {
        match self {
            Capacity::Finite(c) => Some(c),
            Capacity::Infinite => None,
        }
    }
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "inf" => Ok(Capacity::Infinite),
            other => number::count(other).map(Capacity::Finite).map_err(|e| format!("{e}, or inf")),
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Finite(c) => write!(f, "{c}"),
            Capacity::Infinite => f.write_str("inf"),
        }
    }
}

impl From<Capacity> for Written {
    fn from(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Finite(c) => Written::Number(c),
            Capacity::Infinite => Written::Text("inf".to_owned()),
        }
    }
}

impl TryFrom<Written> for Capacity {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(c) => Ok(Capacity::Finite(c)),
            Written::Text(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_round_trip() {
        for (text, capacity, json) in [
            ("3", Capacity::Finite(3), "3"),
            ("2^10", Capacity::Finite(1024), "1024"),
            ("inf", Capacity::Infinite, "\"inf\""),
        ] {
            assert_eq!(text.parse(), Ok(capacity));
            assert_eq!(capacity.to_string().parse(), Ok(capacity));
            assert_eq!(serde_json::to_string(&capacity).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<Capacity>(json).expect("a capacity"), capacity);
        }
        assert_eq!(serde_json::from_str::<Capacity>("\"1e3\"").expect("a capacity"), Capacity::Finite(1000));
        for wrong in ["", "-1", "infinite", "1.5"] {
            assert!(wrong.parse::<Capacity>().expect_err("refused").ends_with("or inf"), "{wrong}");
        }
    }
}
