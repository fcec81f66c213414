//! Self-stabilisation: how a process comes back from where it starts.
//!
//! Two things are followed: the max load and the number of balls at the end of a round, at rounds on a geometric grid; and
//! the first round that meets a level ([`Spec::level`]), exactly. Replicas run on the CPU, on the fast path of their
//! process; the outcome is made of integers, the same for any number of threads.

mod passage;
pub mod report;

use crate::backend::{Control, check_conservation, memory};
use crate::float;
use crate::process::{Process, ProcessSpec};
use crate::rng::MAX_ROUNDS;
use crate::run::{MAX_REPLICAS, RunError, SpecError};
use crate::stats::{Histogram, Tally};
use passage::Walker;
use rayon::prelude::*;
use std::num::NonZeroU16;

/// What to follow: all that fixes the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The process, its start included.
    pub process: ProcessSpec,
    /// Seed of all randomness.
    pub seed: u64,
    /// Independent replicas, numbered from 0.
    pub replicas: u64,
    /// The horizon: rounds of each replica; 0 looks at the start only.
    pub rounds: u64,
    /// Points of the grid from one power of ten to the next, where rounds are dense enough to have them.
    pub points_per_decade: NonZeroU16,
    /// A replica has recovered when its max load is at most this, in balls. Balls outside of the bins count as shared out
    /// equally on top of them: the max load and an n-th part of these balls are at most this.
    pub level: u64,
}

impl Spec {
    /// Checks all that does not belong to the process.
    ///
    /// # Errors
    /// [`SpecError`] says what is refused, why, and what to do.
    pub fn validate(&self) -> Result<(), SpecError> {
        if !(1..=MAX_REPLICAS).contains(&self.replicas) {
            return Err(SpecError::Replicas(self.replicas));
        }
        if self.rounds > MAX_ROUNDS {
            return Err(SpecError::Rounds(self.rounds));
        }
        Ok(())
    }

    /// The rounds that are looked at, ascending: 0, the powers of ten and the points between them, the horizon.
    #[must_use]
    pub fn grid(&self) -> Vec<u64> {
        let power = |i: u32| float::powf(10.0, f64::from(i) / f64::from(self.points_per_decade.get())).round() as u64;
        let mut grid = vec![0];
        grid.extend((0..).map(power).take_while(|&round| round < self.rounds));
        grid.push(self.rounds);
        grid.dedup();
        grid
    }
}

/// What the replicas were like after one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Rounds from the start.
    pub round: u64,
    /// Max load of each replica, in balls.
    pub max_load: Histogram,
    /// Balls of each replica, those outside of the bins included.
    pub total_load: Histogram,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The trajectory, on [`Spec::grid`].
    pub points: Vec<Point>,
    /// The first round after which the level was met, of each replica that has recovered.
    pub recovered: Histogram,
    /// Replicas that had not recovered at the horizon.
    pub censored: u64,
}

/// Follows all replicas.
///
/// # Errors
/// [`RunError`]: a refused specification, too little memory, balls that were not conserved, or a cancelled `control`.
pub fn run(spec: &Spec, control: &Control) -> Result<Outcome, RunError> {
    spec.validate()?;
    let process = spec.process.build()?;
    require_memory(&*process, spec.replicas)?;
    let grid = spec.grid();
    let seen = (0..spec.replicas)
        .into_par_iter()
        .try_fold(
            || (Walker::new(&*process, spec), Seen::new(&grid)),
            |(mut walker, mut seen), replica| {
                let first = walker.follow(replica as u32, control, &mut seen)?;
                match first {
                    Some(round) => seen.outcome.recovered.add(round, 1),
                    None => seen.outcome.censored += 1,
                }
                Ok::<_, RunError>((walker, seen))
            },
        )
        .map(|fold| fold.map(|(_, seen)| seen))
        .try_reduce(|| Seen::new(&grid), |a, b| Ok(a.merged(&b)))?;
    check_conservation(&seen.balls, &(0..spec.replicas))?;
    Ok(seen.outcome)
}

/// What some replicas have shown so far.
struct Seen {
    outcome: Outcome,
    /// Only the balls are counted here.
    balls: Tally,
}

impl Seen {
    fn new(grid: &[u64]) -> Self {
        let point = |&round| Point { round, max_load: Histogram::default(), total_load: Histogram::default() };
        let points = grid.iter().map(point).collect();
        let outcome = Outcome { points, recovered: Histogram::default(), censored: 0 };
        Self { outcome, balls: Tally::default() }
    }

    fn merged(mut self, other: &Self) -> Self {
        for (point, more) in self.outcome.points.iter_mut().zip(&other.outcome.points) {
            point.max_load.merge(&more.max_load);
            point.total_load.merge(&more.total_load);
        }
        self.outcome.recovered.merge(&other.outcome.recovered);
        self.outcome.censored += other.outcome.censored;
        self.balls.merge(&other.balls);
        self
    }
}

/// Refuses a run that the machine has no room for.
fn require_memory(process: &dyn Process, replicas: u64) -> Result<(), RunError> {
    // Three copies of the loads and the runner's memory of at most two words a bin.
    const WORKER_BYTES: u64 = 20;
    let workers = replicas.min(rayon::current_num_threads() as u64);
    let bins = u64::from(process.bins());
    let what = format!("following {workers} x {bins} bins at once");
    Ok(memory::require(what, workers * bins * WORKER_BYTES, "use fewer bins or fewer --threads")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_geometric_and_ends_at_the_horizon() {
        let grid = |rounds, points| {
            let points_per_decade = NonZeroU16::new(points).expect("not 0");
            let process = ProcessSpec::Leaky(Default::default());
            Spec { process, seed: 0, replicas: 1, rounds, points_per_decade, level: 0 }.grid()
        };
        assert_eq!(grid(0, 10), [0]);
        assert_eq!(grid(1, 10), [0, 1]);
        assert_eq!(grid(25, 10), [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25]);
        assert_eq!(grid(1_000_000, 1), [0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000]);
        assert_eq!(grid(12, 1000), (0..=12).collect::<Vec<_>>());
        assert_eq!(grid(MAX_ROUNDS, 65_535).last(), Some(&MAX_ROUNDS));
    }
}
