//! Initial loads, common to the processes.

use super::ParameterError;
use crate::number::count;
use crate::profile::{Balls, Level, Profile, Thrower};
use crate::rng::bounded::Packing;
use crate::rng::samplers::binomial;
use crate::rng::stream::Stream;
use crate::rng::{Domain, Draws};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Largest initial load of a bin: half the range of a load, so that no run can overflow it.
pub const MAX_START_LOAD: u32 = 1 << 31;

/// The loads before the first round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Start {
    /// Every bin is empty.
    #[default]
    Empty,
    /// Every bin holds this many balls.
    Each(u32),
    /// Bin 0 holds this many balls, the others none.
    OneBin(u32),
    /// This many balls are thrown into uniformly random bins, in each replica afresh.
    Random(u32),
    /// One load a bin, read from a text file of integers separated by white space or commas.
    File(PathBuf),
}

const FORMS: &str = "use empty, each:H, one-bin:H, random:H (H at most 2^31) or file:PATH";

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let balls = |h: &str| match count(h) {
            Ok(h) if h <= u64::from(MAX_START_LOAD) => Ok(h as u32),
            Ok(h) => Err(format!("{h} balls are too many; {FORMS}")),
            Err(e) => Err(e),
        };
        match text.split_once(':') {
            None if text == "empty" => Ok(Start::Empty),
            Some(("each", h)) => Ok(Start::Each(balls(h)?)),
            Some(("one-bin", h)) => Ok(Start::OneBin(balls(h)?)),
            Some(("random", h)) => Ok(Start::Random(balls(h)?)),
            Some(("file", path)) if !path.is_empty() => Ok(Start::File(path.into())),
            _ => Err(format!("'{text}' is not an initial state; {FORMS}")),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Empty => f.write_str("empty"),
            Start::Each(h) => write!(f, "each:{h}"),
            Start::OneBin(h) => write!(f, "one-bin:{h}"),
            Start::Random(h) => write!(f, "random:{h}"),
            Start::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl From<Start> for String {
    fn from(start: Start) -> Self {
        start.to_string()
    }
}

impl TryFrom<String> for Start {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A validated initial state, ready to be written.
#[derive(Clone, Debug)]
pub(crate) enum Initial {
    Same(u32),
    OneBin(u32),
    Random(u32),
    Loads(Vec<u32>),
}

impl Start {
    /// Checks the state against `bins`, reading the file if there is one.
    pub(crate) fn resolve(&self, bins: u32) -> Result<Initial, ParameterError> {
        let fail = |reason: String, remedy| ParameterError::Start { start: self.to_string(), reason, remedy };
        Ok(match self {
            Start::Empty => Initial::Same(0),
            Start::Each(h) => Initial::Same(*h),
            Start::OneBin(h) => Initial::OneBin(*h),
            Start::Random(h) => Initial::Random(*h),
            Start::File(path) => {
                let remedy = "give the path of a readable text file";
                let unreadable = |e: std::io::Error| fail(format!("cannot be read ({e})"), remedy);
                // A pipe would give its loads once, but a specification means the same whenever it is built.
                if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
                    return Err(fail("is not a regular file".to_owned(), remedy));
                }
                let text = std::fs::read_to_string(path).map_err(unreadable)?;
                let loads = text
                    .split(|c: char| c.is_whitespace() || c == ',')
                    .filter(|word| !word.is_empty())
                    .map(|word| word.parse::<u32>().ok().filter(|&h| h <= MAX_START_LOAD).ok_or(word))
                    .collect::<Result<Vec<u32>, &str>>()
                    .map_err(|word| {
                        fail(format!("'{word}' is not a load"), "write integers from 0 to 2^31, one for each bin")
                    })?;
                if loads.len() != bins as usize {
                    let reason = format!("holds {} loads for {bins} bins", loads.len());
                    return Err(fail(reason, "write exactly one load for each bin, or change --n"));
                }
                Initial::Loads(loads)
            }
        })
    }
}

/// A validated initial profile, ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) enum ProfileStart {
    Fixed(Profile),
    Random(u32),
}

impl Start {
    /// The profile form of the state for `n` bins, which reads the file if there is one.
    pub(crate) fn profile(&self, n: u64) -> Result<ProfileStart, ParameterError> {
        /// Most balls of a profile, so that no number of rounds carries them past 64 bits.
        const MAX_BALLS: u128 = 1 << 62;
        let refuse =
            |reason: &str, remedy| ParameterError::Start { start: self.to_string(), reason: reason.into(), remedy };
        let level = |load: u32, bins| Level { load: load.into(), bins };
        let profile = match *self {
            Start::Empty => Profile::new([level(0, n)]),
            Start::Each(h) => Profile::new([level(h, n)]),
            Start::OneBin(h) => Profile::new([level(h, 1), level(0, n - 1)]),
            Start::Random(h) => return Ok(ProfileStart::Random(h)),
            Start::File(_) => {
                let too_many = |_| refuse("cannot hold the loads of so many bins", "use fewer than 2^32 bins");
                match self.resolve(u32::try_from(n).map_err(too_many)?)? {
                    Initial::Loads(loads) => Profile::new(loads.into_iter().map(|load| level(load, 1))),
                    other => unreachable!("a file gives loads, not {other:?}"),
                }
            }
        };
        if profile.balls() > MAX_BALLS {
            return Err(refuse("the bins hold more than 2^62 balls in all", "use fewer bins or a smaller load"));
        }
        Ok(ProfileStart::Fixed(profile))
    }
}

impl ProfileStart {
    /// The initial profile of `n` bins.
    pub(crate) fn draw(&self, n: u64, stream: &mut Stream, thrower: &mut Thrower) -> Profile {
        let balls = match self {
            ProfileStart::Fixed(profile) => return profile.clone(),
            ProfileStart::Random(balls) => u64::from(*balls),
        };
        // About balls / n loads occur, or n: the fewer are drawn, at most 2^16 in either case.
        if balls / n < n {
            let mut profile = Profile::new([Level { load: 0, bins: n }]);
            thrower.throw(stream, &mut profile, Balls::Exactly(balls), |_, _| 1.0);
            return profile;
        }
        let mut left = balls;
        Profile::new((0..n).rev().map(|bins_after| {
            let load = binomial(stream, left, 1.0 / bins_after as f64);
            left -= load;
            Level { load, bins: 1 }
        }))
    }
}

impl Initial {
    /// Writes the initial loads of `replica`.
    pub(crate) fn write(&self, seed: u64, replica: u32, loads: &mut [u32]) {
        match self {
            Initial::Same(h) => loads.fill(*h),
            Initial::OneBin(h) => {
                loads.fill(0);
                loads[0] = *h;
            }
            Initial::Random(h) => {
                loads.fill(0);
                let draws = Draws::new(seed, replica, 0);
                let packing = Packing::new(loads.len() as u32, 1);
                for ball in 0..*h {
                    packing.indices(&draws, Domain::Start, ball, |bin| loads[bin as usize] += 1);
                }
            }
            Initial::Loads(given) => loads.copy_from_slice(given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_round_trip() {
        for text in ["empty", "each:3", "one-bin:1000000", "random:7", "file:a/b.txt"] {
            assert_eq!(text.parse::<Start>().expect("a valid form").to_string(), text);
        }
        assert_eq!("one-bin:1e6".parse(), Ok(Start::OneBin(1_000_000)));
        for text in ["", "each", "each:", "each:-1", "each:2^32", "full", "file:"] {
            assert!(text.parse::<Start>().is_err(), "{text}");
        }
    }

    #[test]
    fn random_start_places_every_ball_and_differs_between_replicas() {
        let initial = Start::Random(1000).resolve(64).expect("valid");
        let (mut a, mut b) = ([9; 64], [9; 64]);
        initial.write(1, 0, &mut a);
        initial.write(1, 1, &mut b);
        assert_eq!((a.iter().sum::<u32>(), b.iter().sum::<u32>()), (1000, 1000));
        assert_ne!(a, b);
    }
}
