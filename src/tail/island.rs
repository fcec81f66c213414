//! One island: plain chains, and the stages that climb from them.

use super::TailError;
use super::chain::{Chain, Walker};
use super::plain::{Course, Plain};
use super::question::Question;
use super::sources::{Kept, Source, Sources};

/// Visited states that a stage leaves to the next for each of its entrances.
pub(super) const KEPT_FOR_THE_NEXT: usize = 8;
/// Expected rounds that a path within a horizon is followed where it has left its level again.
const ROUNDS_AFTER: f64 = 64.0;

/// A way of the chain from its entrance to a level on.
#[derive(Clone, Debug)]
pub(super) struct Excursion {
    /// Probability of a look that it stands for, for each of its visits.
    pub(super) weight: f64,
    pub(super) ancestor: u32,
    /// For each counted level, looks that found it reached; of paths that were followed by chance, as many as these
    /// stand for.
    pub(super) visits: Vec<f64>,
}

/// The excursions of a stage.
pub(super) struct Stage<S> {
    pub(super) excursions: Vec<Excursion>,
    /// States below the next stage that they went through.
    pub(super) states: Vec<Source<S>>,
}

/// The climb of one island on a chain.
pub(super) struct Island<'i, 'w, C: Chain> {
    chain: &'i C,
    pub(super) walker: &'i mut Walker<'w>,
    question: Question,
    sources: Sources<C::State>,
}

impl<'i, 'w, C: Chain> Island<'i, 'w, C> {
    pub(super) fn new(chain: &'i C, walker: &'i mut Walker<'w>, question: Question) -> Self {
        let sources = Sources::new(chain, &mut walker.counts, Vec::new(), Vec::new());
        Self { chain, walker, question, sources }
    }

    /// Follows the plain chains; `counted` are levels.
    pub(super) fn plain(&mut self, course: Course, counted: &[u64]) -> Result<Plain<C::State>, TailError> {
        Plain::follow(self.chain, self.walker, course, counted)
    }

    /// Takes the states of plain chains below the first of `targets` as sources.
    pub(super) fn begin(&mut self, states: Vec<Source<C::State>>, targets: Vec<u64>) {
        let first = targets[0];
        let below = states.into_iter().filter(|source| source.reached < first).collect();
        self.sources = Sources::new(self.chain, &mut self.walker.counts, below, targets);
    }

    /// Enters the target of index `stage` from the sources and follows each excursion to its end. States that have not
    /// reached `next` are kept; looks that find `counted` levels reached, none below the target, are counted.
    pub(super) fn stage(
        &mut self,
        stage: usize,
        entrances: u64,
        next: Option<u64>,
        counted: &[u64],
    ) -> Result<Stage<C::State>, TailError> {
        let level = self.sources.targets()[stage];
        let Self { chain, walker, question, sources } = self;
        walker.step()?;
        sources.weigh(*chain, &mut walker.counts, stage);
        let (chosen, weight) = sources.choose(&mut walker.stream, entrances);
        sources.thin(&mut walker.stream);
        let kept = sources.keep(&mut walker.stream, KEPT_FOR_THE_NEXT * entrances as usize);
        let mut way = Way { chain: *chain, level, next, counted, question: *question, kept };
        let mut excursions = Vec::with_capacity(chosen.len());
        for (source, number) in chosen.into_iter().zip(0..) {
            let guide = source.guide;
            let mut begun = Source { excursion: number, ..source };
            walker.step()?;
            walker.round()?;
            chain.force(walker, &mut begun.state, level);
            // An entrance with several bins at the level was as many times as likely to be drawn.
            begun.weight = weight / guide / chain.reaching(&begun.state, level) as f64;
            begun.left = begun.left.saturating_sub(1);
            let (weight, ancestor) = (begun.weight, begun.ancestor);
            excursions.push(Excursion { weight, ancestor, visits: way.follow(walker, begun)? });
        }
        Ok(Stage { excursions, states: way.kept.into_sources() })
    }

    /// Adds the states of a stage below the target of index `next` as sources for it and those after it.
    pub(super) fn add(&mut self, seen: Stage<C::State>, next: usize) {
        let level = self.sources.targets()[next];
        let below = seen.states.into_iter().filter(|source| source.reached < level).collect();
        self.sources.add(below, seen.excursions.len());
    }

    /// Contributions to the expected number of entrances to the target of index `target`: of the plain chains by ancestor,
    /// and of each stage by excursion.
    pub(super) fn masses(&mut self, target: usize) -> Vec<Vec<f64>> {
        self.sources.weigh(self.chain, &mut self.walker.counts, target);
        self.sources.by_origin()
    }
}

/// How excursions of a stage are followed.
struct Way<'a, C: Chain> {
    chain: &'a C,
    level: u64,
    next: Option<u64>,
    counted: &'a [u64],
    question: Question,
    kept: Kept<C::State>,
}

impl<C: Chain> Way<'_, C> {
    /// Follows an excursion from its first state on; returns its visits.
    fn follow(&mut self, walker: &mut Walker<'_>, mut at: Source<C::State>) -> Result<Vec<f64>, TailError> {
        let mut visits = vec![0.0; self.counted.len()];
        let weight = at.weight;
        let (mut reached, mut is_after) = (0, false);
        loop {
            let max_load = self.chain.max_load(&at.state);
            let is_inside = max_load >= self.level;
            match self.question {
                Question::Stationary if !is_inside => break,
                Question::Stationary => {
                    at.reached = max_load;
                    self.count(&mut visits, 0..=max_load, 1.0);
                }
                Question::AtRound(_) if !is_inside => break,
                Question::AtRound(_) => {
                    at.reached = max_load;
                    if at.left == 0 {
                        self.count(&mut visits, 0..=max_load, 1.0);
                        break;
                    }
                }
                Question::Within(_) => {
                    at.reached = reached.max(max_load);
                    self.count(&mut visits, reached + 1..=at.reached, at.weight / weight);
                    reached = at.reached;
                    if at.left == 0 || self.next.is_some_and(|next| reached >= next) {
                        break;
                    }
                    // What comes later hardly matters, and takes long: it is followed by chance.
                    if !is_inside && !is_after {
                        is_after = true;
                        let followed = (ROUNDS_AFTER / at.left as f64).min(1.0);
                        if walker.stream.unit() > followed {
                            break;
                        }
                        at.weight /= followed;
                    }
                }
            }
            if self.next.is_some_and(|next| at.reached < next) {
                at.guide = self.question.guide(at.left);
                self.kept.offer(&at);
            }
            walker.round()?;
            self.chain.advance(walker, &mut at.state);
            at.left = at.left.saturating_sub(1);
        }
        Ok(visits)
    }

    /// Counts a look at the counted levels in `range`, which ends at what was reached, as so many.
    fn count(&self, visits: &mut [f64], range: std::ops::RangeInclusive<u64>, times: f64) {
        let reached = visits.iter_mut().zip(self.counted).take_while(|(_, level)| *level <= range.end());
        reached.filter(|(_, level)| range.contains(level)).for_each(|(visits, _)| *visits += times);
    }
}
