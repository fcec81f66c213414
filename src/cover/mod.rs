//! Balls with identities in repeated balls-into-bins: how long until every ball has been in every bin.
//!
//! Loads do not depend on which of its balls a bin gives; the ways of the balls do. A **queue discipline** says which it
//! is ([`Queue`]), and each ball keeps the set of the bins that it has been in, its first one included. The **parallel
//! cover time** is the first round after which every ball has been in every bin: O(n log^2 n) rounds for n balls, with high
//! probability (Becchetti, Clementi, Natale, Pasquale, Posta, SPAA 2015; Distributed Computing 2019); Theta(m log m)
//! for m balls, n <= m <= poly(n) (Los, Sauerwald, STACS 2023).
//!
//! Replicas run on the CPU, [one after the other](Traversal) on each thread; the outcome is made of integers, the same for
//! any number of threads. The loads of a replica are those of `leakybins run repeated` with the same seed, bit for bit.

pub mod report;
mod traversal;

pub use traversal::{Queue, Traversal};

use crate::backend::{BackendError, Control, check_conservation, memory};
use crate::process::repeated::Parameters;
use crate::process::{Model, ParameterError};
use crate::rng::MAX_ROUNDS;
use crate::run::{MAX_REPLICAS, RunError, SpecError};
use crate::stats::{Flow, Histogram, Tally};
use rayon::prelude::*;

/// What to follow: all that fixes the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The bins and the balls that they start with.
    pub parameters: Parameters,
    /// Which of its balls a bin gives.
    pub queue: Queue,
    /// Seed of all randomness.
    pub seed: u64,
    /// Independent replicas, numbered from 0.
    pub replicas: u64,
    /// Most rounds of a replica; it ends before, when every ball has been in every bin.
    pub rounds: u64,
}

impl Spec {
    /// Checks all that does not need the machine.
    ///
    /// # Errors
    /// [`RunError`] says what is refused, why, and what to do.
    pub fn validate(&self) -> Result<(), RunError> {
        self.parameters.build()?;
        self.balls()?;
        if !(1..=MAX_REPLICAS).contains(&self.replicas) {
            return Err(SpecError::Replicas(self.replicas).into());
        }
        if self.rounds > MAX_ROUNDS {
            return Err(SpecError::Rounds(self.rounds).into());
        }
        Ok(())
    }

    /// Number of balls, m.
    ///
    /// # Errors
    /// [`ParameterError`] where there is none, or more than 32 bits can number.
    pub fn balls(&self) -> Result<u32, ParameterError> {
        let start = &self.parameters.start;
        let refuse = |reason: String, remedy| Err(ParameterError::Start { start: start.to_string(), reason, remedy });
        match u32::try_from(self.parameters.balls()?) {
            Ok(0) => refuse("there is no ball to follow".to_owned(), "use each:1"),
            Ok(balls) => Ok(balls),
            Err(_) => refuse("balls are numbered in 32 bits".to_owned(), "use fewer than 2^32 balls in all"),
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The first round after which every ball has been in every bin, of each replica that came so far.
    pub covered: Histogram,
    /// The first round after which some ball has been in every bin, of each replica that came so far.
    pub first: Histogram,
    /// The most rounds that a ball stayed in a bin while the bin gave others, of each replica up to its end.
    pub max_delay: Histogram,
    /// Balls that bins gave, over all rounds and replicas.
    pub moves: u128,
    /// Rounds of all balls of all replicas: each ball moves or stays in each of them.
    pub ball_rounds: u128,
}

impl Outcome {
    fn merged(mut self, other: &Self) -> Self {
        self.covered.merge(&other.covered);
        self.first.merge(&other.first);
        self.max_delay.merge(&other.max_delay);
        self.moves += other.moves;
        self.ball_rounds += other.ball_rounds;
        self
    }
}

/// Bins and balls passed between two looks at the control.
const WORK_PER_LOOK: u64 = 1 << 16;

/// Follows all replicas.
///
/// # Errors
/// [`RunError`]: a refused specification, too little memory, a ball that is not in exactly one queue, or a cancelled
/// `control`.
pub fn run(spec: &Spec, control: &Control) -> Result<Outcome, RunError> {
    spec.validate()?;
    let workers = spec.replicas.min(rayon::current_num_threads() as u64);
    require_memory(spec, workers)?;
    (0..spec.replicas)
        .into_par_iter()
        .try_fold(
            || (None, Outcome::default()),
            |(traversal, mut outcome), replica| {
                let mut traversal = traversal.map_or_else(|| Traversal::new(spec), Ok)?;
                follow(&mut traversal, spec, replica, control, &mut outcome)?;
                Ok::<_, RunError>((Some(traversal), outcome))
            },
        )
        .map(|fold| fold.map(|(_, outcome)| outcome))
        .try_reduce(Outcome::default, |a, b| Ok(a.merged(&b)))
}

/// Follows `replica` until every ball has been in every bin, or to the last round.
fn follow(
    traversal: &mut Traversal,
    spec: &Spec,
    replica: u64,
    control: &Control,
    outcome: &mut Outcome,
) -> Result<(), BackendError> {
    traversal.restart(replica as u32);
    let balls = u64::from(traversal.balls());
    let step = (WORK_PER_LOOK / balls.max(spec.parameters.n)).max(1);
    while traversal.covered().is_none() && traversal.rounds() < spec.rounds {
        if control.is_cancelled() {
            return Err(BackendError::Cancelled);
        }
        let before = traversal.rounds();
        while traversal.covered().is_none() && traversal.rounds() < spec.rounds.min(before + step) {
            traversal.round();
        }
        control.advance(traversal.rounds() - before);
    }
    let (moves, left) = (u128::from(traversal.moves()), traversal.balls_in_one_queue());
    let (initial_balls, final_balls) = (balls.into(), left.into());
    let flow = Flow { arrived: moves, departed: moves };
    let tally = Tally { initial_balls, final_balls, flow, ..Tally::default() };
    check_conservation(&tally, &(replica..replica + 1))?;
    traversal.covered().into_iter().for_each(|round| outcome.covered.add(round, 1));
    traversal.first().into_iter().for_each(|round| outcome.first.add(round, 1));
    outcome.max_delay.add(traversal.max_delay(), 1);
    outcome.moves += moves;
    outcome.ball_rounds += u128::from(balls) * u128::from(traversal.rounds());
    Ok(())
}

/// Refuses what the machine has no room for, if so many threads follow a replica each.
fn require_memory(spec: &Spec, workers: u64) -> Result<(), RunError> {
    let (bins, balls) = (spec.parameters.n, spec.balls()?);
    let what = format!("following {workers} x {balls} balls through {bins} bins at once");
    let bytes = workers.saturating_mul(Traversal::bytes(bins, balls.into()));
    Ok(memory::require(what, bytes, "use fewer bins, fewer balls or fewer --threads")?)
}
