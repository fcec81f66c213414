//! Initial loads, common to the processes.

use super::ParameterError;
use crate::number::count;
use crate::profile::{Balls, Level, Profile, Thrower};
use crate::rng::bounded::Packing;
use crate::rng::samplers::binomial;
use crate::rng::stream::Stream;
use crate::rng::thresholds::Thresholds;
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
    /// Each bin draws its load independently from the stationary law of one bin, in each replica afresh: exact or in
    /// the limit of many bins, whichever [`theory`](crate::theory::leaky) has.
    MeanField,
    /// One load a bin, read from a text file of integers separated by white space or commas.
    File(PathBuf),
}

const FORMS: &str = "use empty, each:H, one-bin:H, random:H (H at most 2^31), mean-field or file:PATH";

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
            None if text == "mean-field" => Ok(Start::MeanField),
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
            Start::MeanField => f.write_str("mean-field"),
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
    Independent(Thresholds),
    Loads(Vec<u32>),
}

impl Start {
    /// Checks the state against `bins`, reading the file if there is one. `stationary` makes the law of one bin, if it
    /// is needed.
    pub(crate) fn resolve(
        &self,
        bins: u64,
        stationary: impl FnOnce() -> Result<Thresholds, ParameterError>,
    ) -> Result<Initial, ParameterError> {
        let fail = |reason: String, remedy| ParameterError::Start { start: self.to_string(), reason, remedy };
        Ok(match self {
            Start::Each(h) | Start::OneBin(h) | Start::Random(h) if *h > MAX_START_LOAD => {
                return Err(fail("has more than 2^31 balls in a bin or in all".to_owned(), "use at most 2^31"));
            }
            Start::Empty => Initial::Same(0),
            Start::Each(h) => Initial::Same(*h),
            Start::OneBin(h) => Initial::OneBin(*h),
            Start::Random(h) => Initial::Random(*h),
            Start::MeanField => Initial::Independent(stationary()?),
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
                if loads.len() as u64 != bins {
                    let reason = format!("holds {} loads for {bins} bins", loads.len());
                    return Err(fail(reason, "write exactly one load for each bin, or change --n"));
                }
                Initial::Loads(loads)
            }
        })
    }
}

impl Initial {
    /// The initial state of a profile of `bins` bins: as it is, if its balls are few enough that no number of rounds
    /// carries them past 64 bits.
    pub(crate) fn for_profile(self, start: &Start, bins: u64) -> Result<Self, ParameterError> {
        const MAX_BALLS: u128 = 1 << 62;
        match self {
            Initial::Same(h) if u128::from(bins) * u128::from(h) > MAX_BALLS => Err(ParameterError::Start {
                start: start.to_string(),
                reason: "the bins hold more than 2^62 balls in all".to_owned(),
                remedy: "use fewer bins or a smaller load",
            }),
            other => Ok(other),
        }
    }

    /// Draws the initial profile of `n` bins, which has the law of what [`Initial::write`] writes.
    pub(crate) fn profile(&self, n: u64, stream: &mut Stream, thrower: &mut Thrower) -> Profile {
        let level = |load: u32, bins| Level { load: load.into(), bins };
        match self {
            Initial::Same(h) => Profile::new([level(*h, n)]),
            Initial::OneBin(h) => Profile::new([level(*h, 1), level(0, n - 1)]),
            Initial::Random(balls) => random_profile(u64::from(*balls), n, stream, thrower),
            Initial::Independent(law) => {
                let mut left = n;
                let mut below = 0;
                let ends = law.as_slice().iter().map(|&end| u128::from(end)).chain([1 << 64]);
                Profile::new((law.first()..).zip(ends).map(|(load, end)| {
                    let bins = binomial(stream, left, (end - below) as f64 / ((1 << 64) - end) as f64);
                    (left, below) = (left - bins, end);
                    level(load, bins)
                }))
            }
            Initial::Loads(loads) => Profile::new(loads.iter().map(|&load| level(load, 1))),
        }
    }

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
            Initial::Independent(law) => {
                let draws = Draws::new(seed, replica, 0);
                for (bin, load) in (0..).zip(loads) {
                    *load = law.draw(draws.uniform(Domain::Start, bin));
                }
            }
            Initial::Loads(given) => loads.copy_from_slice(given),
        }
    }
}

/// `balls` balls thrown into `n` bins. About balls / n loads occur, or n: the fewer are drawn, at most 2^16 in either
/// case.
fn random_profile(balls: u64, n: u64, stream: &mut Stream, thrower: &mut Thrower) -> Profile {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_round_trip() {
        for text in ["empty", "each:3", "one-bin:1000000", "random:7", "mean-field", "file:a/b.txt"] {
            assert_eq!(text.parse::<Start>().expect("a valid form").to_string(), text);
        }
        assert_eq!("one-bin:1e6".parse(), Ok(Start::OneBin(1_000_000)));
        for text in ["", "each", "each:", "each:-1", "each:2^32", "full", "file:", "mean-field:1"] {
            assert!(text.parse::<Start>().is_err(), "{text}");
        }
    }

    #[test]
    fn random_start_places_every_ball_and_differs_between_replicas() {
        let unused = || unreachable!("only a mean-field start asks for the law");
        let initial = Start::Random(1000).resolve(64, unused).expect("valid");
        let (mut a, mut b) = ([9; 64], [9; 64]);
        initial.write(1, 0, &mut a);
        initial.write(1, 1, &mut b);
        assert_eq!((a.iter().sum::<u32>(), b.iter().sum::<u32>()), (1000, 1000));
        assert_ne!(a, b);
    }
}
