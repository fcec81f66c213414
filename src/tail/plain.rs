//! The chain as it is: where levels are not rare, and where the stages begin.

use super::TailError;
use super::chain::{Chain, Walker};
use super::question::Question;
use super::sources::Source;
use crate::float::{ln, powi};

/// States of a path that are kept, if it is short: of each round of a horizon as many as of any other..
const STATES_WITHIN: f64 = 64.0;
/// .. and those so many rounds before the round asked for; of earlier ones, fewer the earlier.
const STATES_BEFORE: f64 = 16.0;

/// The plain chains of an island.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    pub(super) question: Question,
    /// In the stationary state: rounds before it is looked at.
    pub(super) burn_in: u64,
    /// Looks at it: in the stationary state rounds after the burn-in, else paths from the start to the horizon.
    pub(super) looks: u64,
    /// In the stationary state: every so many rounds a state is kept for the stages.
    pub(super) every: u64,
}

impl Course {
    /// Rounds of a look.
    pub(super) fn rounds_of_a_look(&self) -> u64 {
        self.question.horizon().unwrap_or(1)
    }
}

/// What the plain chains have shown.
pub(super) struct Plain<S> {
    /// States that stand for all.
    pub(super) states: Vec<Source<S>>,
    /// For each counted level, looks that found it reached: numbers of successive ones.
    pub(super) visits: Vec<Vec<u64>>,
    /// For each counted level, the number of bins there, summed over the looks.
    pub(super) bins: Vec<u64>,
}

impl<S: Clone> Plain<S> {
    /// Follows `chain`; `counted` are levels.
    pub(super) fn follow<C: Chain<State = S>>(
        chain: &C,
        walker: &mut Walker<'_>,
        course: Course,
        counted: &[u64],
    ) -> Result<Self, TailError> {
        let (visits, bins) = (vec![Vec::new(); counted.len()], vec![0; counted.len()]);
        let mut plain = Self { states: Vec::new(), visits, bins };
        match course.question.horizon() {
            None => plain.stationary(chain, walker, course, counted)?,
            Some(rounds) => {
                for path in 0..course.looks as u32 {
                    plain.path(chain, walker, course.question, rounds, path, counted)?;
                }
                let paths = course.looks as f64;
                plain.states.iter_mut().for_each(|source| source.weight /= paths);
            }
        }
        Ok(plain)
    }

    /// One chain through the stationary state; each state is an ancestor.
    fn stationary<C: Chain<State = S>>(
        &mut self,
        chain: &C,
        walker: &mut Walker<'_>,
        course: Course,
        counted: &[u64],
    ) -> Result<(), TailError> {
        walker.step()?;
        let mut state = chain.start(walker);
        for _ in 0..course.burn_in {
            walker.round()?;
            chain.advance(walker, &mut state);
        }
        let mut inside = vec![false; counted.len()];
        let weight = 1.0 / course.looks.div_ceil(course.every) as f64;
        for round in 0..course.looks {
            walker.round()?;
            chain.advance(walker, &mut state);
            let max_load = chain.max_load(&state);
            for (at, &level) in counted.iter().enumerate() {
                match (max_load >= level, inside[at]) {
                    (true, true) => *self.visits[at].last_mut().expect("a visit has begun") += 1,
                    (true, false) => self.visits[at].push(1),
                    _ => {}
                }
                inside[at] = max_load >= level;
                if inside[at] {
                    self.bins[at] += chain.reaching(&state, level);
                }
            }
            if round.is_multiple_of(course.every) {
                let ancestor = self.states.len() as u32;
                self.states.push(Source {
                    state: state.clone(),
                    reached: max_load,
                    left: 0,
                    weight,
                    guide: 1.0,
                    ancestor,
                    excursion: 0,
                });
            }
        }
        Ok(())
    }

    /// A path from the start, which is the ancestor of all its states.
    fn path<C: Chain<State = S>>(
        &mut self,
        chain: &C,
        walker: &mut Walker<'_>,
        question: Question,
        rounds: u64,
        path: u32,
        counted: &[u64],
    ) -> Result<(), TailError> {
        walker.step()?;
        let mut state = chain.start(walker);
        let is_within = matches!(question, Question::Within(_));
        // What the start is does not count; without a round behind it nothing is reached.
        let mut reached = 0;
        for left in (1..=rounds).rev() {
            let wanted = if is_within { STATES_WITHIN / rounds as f64 } else { STATES_BEFORE / left as f64 };
            if walker.stream.unit() <= wanted {
                let (weight, guide) = (1.0 / wanted.min(1.0), question.guide(left));
                let state = state.clone();
                self.states.push(Source { state, reached, left, weight, guide, ancestor: path, excursion: 0 });
            }
            walker.round()?;
            chain.advance(walker, &mut state);
            let max_load = chain.max_load(&state);
            reached = if is_within { reached.max(max_load) } else { max_load };
        }
        for (at, &level) in counted.iter().enumerate().filter(|(_, level)| reached >= **level) {
            self.visits[at].push(1);
            self.bins[at] += chain.reaching(&state, level);
        }
        Ok(())
    }
}

impl Question {
    /// By how much an entrance with so many rounds left, its own included, is preferred.
    ///
    /// Which moments lead to high levels in the end is not known: late ones where visits are short, for few of the early
    /// ones last; early ones where loads build up slowly, or where a horizon is short. Each has its part of the entrances,
    /// so that none can waste more than a small factor, or at a round a logarithm.
    pub(super) fn guide(self, left: u64) -> f64 {
        let rounds = self.horizon().unwrap_or(1) as f64;
        let part = left as f64 / rounds;
        match self {
            Question::Stationary => 1.0,
            Question::AtRound(_) => 1.0 / left as f64 + (1.0 + ln(rounds)) / rounds,
            Question::Within(_) => 1.0 + 2.0 * part + 5.0 * powi(part, 4),
        }
    }
}
