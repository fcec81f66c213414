//! Parts of a run for several machines.

use std::fmt;
use std::str::FromStr;

/// One of several parts of a run: every `count`-th block, beginning with block `index`, counted from 0.
///
/// Which blocks a shard owns follows from the specification alone. As text a shard is `1/4` to `4/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

/// Variables of a job scheduler that do not name a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment names no shard ({0}); {REMEDY}")]
pub struct EnvironmentError(String);

const REMEDY: &str = "start a job array (SLURM sets SLURM_ARRAY_TASK_ID, _COUNT, _MIN; a Kubernetes indexed job sets \
                      JOB_COMPLETION_INDEX and needs JOB_COMPLETIONS set to its number), or give --shard I/N";

impl Shard {
    /// The whole run.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`, counted from 0; `None` where there is no such part.
    #[must_use]
    pub fn new(index: u64, count: u64) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// The part that a job scheduler asks for in variables that `lookup` finds: of a SLURM array
    /// `SLURM_ARRAY_TASK_ID`, `_COUNT`, `_MIN` and, where set, `_STEP`; else of a Kubernetes indexed job
    /// `JOB_COMPLETION_INDEX` and `JOB_COMPLETIONS`.
    ///
    /// # Errors
    /// Says which variable is missing or does not fit.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let optional = |name: &str| {
            let wrong = |text| EnvironmentError(format!("{name} is '{text}', not a whole number"));
            lookup(name).map(|text| text.trim().parse::<u64>().map_err(|_| wrong(text))).transpose()
        };
        let number = |name| optional(name)?.ok_or_else(|| EnvironmentError(format!("{name} is not set")));
        if let Some(id) = optional("SLURM_ARRAY_TASK_ID")? {
            let (first, count) = (number("SLURM_ARRAY_TASK_MIN")?, number("SLURM_ARRAY_TASK_COUNT")?);
            let step = optional("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1);
            let index =
                id.checked_sub(first).filter(|after| after.checked_rem(step) == Some(0)).map(|after| after / step);
            let misfit = || {
                let ids = format!("{count} tasks from {first} in steps of {step}");
                EnvironmentError(format!("task {id} is not one of {ids}: an array with gaps has no shards"))
            };
            return index.and_then(|index| Self::new(index, count)).ok_or_else(misfit);
        }
        let (index, count) = (number("JOB_COMPLETION_INDEX")?, number("JOB_COMPLETIONS")?);
        let misfit = || EnvironmentError(format!("JOB_COMPLETION_INDEX is {index} of {count}"));
        Self::new(index, count).ok_or_else(misfit)
    }

    /// Whether it owns the block of this number, counted from 0.
    #[must_use]
    pub fn owns(self, block: u64) -> bool {
        block % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (part, count) = text.split_once('/')?;
            Self::new(part.parse::<u64>().ok()?.checked_sub(1)?, count.parse().ok()?)
        };
        parse()
            .ok_or_else(|| format!("'{text}' is not a shard; write I/N with 1 <= I <= N, such as 1/4 to 4/4, or auto"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Result<String, String> {
        let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Shard::from_environment(lookup).map(|shard| shard.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn shards_are_counted_from_one() {
        for text in ["1/1", "3/4", "18446744073709551615/18446744073709551615"] {
            assert_eq!(text.parse::<Shard>().map(|shard| shard.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        let third: Shard = "3/4".parse().expect("a shard");
        assert_eq!((0..12).filter(|&block| third.owns(block)).collect::<Vec<_>>(), [2, 6, 10]);
    }

    #[test]
    fn job_arrays_name_their_shards() {
        let slurm = |id, first, count| {
            [("SLURM_ARRAY_TASK_ID", id), ("SLURM_ARRAY_TASK_MIN", first), ("SLURM_ARRAY_TASK_COUNT", count)]
        };
        assert_eq!(environment(&slurm("0", "0", "4")), Ok("1/4".to_owned()));
        assert_eq!(environment(&slurm("7", "5", "3")), Ok("3/3".to_owned()));
        let step = |id| [&slurm(id, "1", "3")[..], &[("SLURM_ARRAY_TASK_STEP", "2")]].concat();
        assert_eq!(environment(&step("5")), Ok("3/3".to_owned()));
        let kubernetes = [("JOB_COMPLETION_INDEX", "2"), ("JOB_COMPLETIONS", "8")];
        assert_eq!(environment(&kubernetes), Ok("3/8".to_owned()));
        for (variables, reason) in [
            (&[][..], "JOB_COMPLETION_INDEX is not set"),
            (&kubernetes[..1], "JOB_COMPLETIONS is not set"),
            (&slurm("7", "5", "2"), "task 7 is not one of 2 tasks from 5 in steps of 1"),
            (&slurm("1", "2", "2"), "task 1 is not one of"),
            (&step("4"), "task 4 is not one of"),
            (&slurm("x", "2", "2"), "SLURM_ARRAY_TASK_ID is 'x', not a whole number"),
            (&slurm("1", "1", "2")[..2], "SLURM_ARRAY_TASK_COUNT is not set"),
        ] {
            let error = environment(variables).expect_err(reason);
            assert!(error.contains(reason) && error.contains("--shard I/N"), "{error}");
        }
    }
}
