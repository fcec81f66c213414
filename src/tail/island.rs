//! One island: a plain chain, and the stages that climb from it.

use super::TailError;
use super::chain::{Chain, Walker};
use super::sources::{Kept, Source, Sources};

/// Visited states that a stage leaves to the next for each of its entrances, and to those after it.
const KEPT_FOR_THE_NEXT: usize = 8;
const KEPT: usize = 2;

/// The plain chain of an island.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// Rounds before it is looked at.
    pub(super) burn_in: u64,
    /// Rounds after them.
    pub(super) rounds: u64,
    /// Every so many of them a state is kept for the stages.
    pub(super) every: u64,
}

/// What the plain chain has shown.
#[derive(Debug)]
pub(super) struct Plain<S> {
    states: Vec<S>,
    /// For each counted level, the numbers of successive rounds that the max load was at least that.
    pub(super) visits: Vec<Vec<u64>>,
    /// For each counted level, the number of bins of at least that load, summed over the rounds.
    pub(super) bins: Vec<u64>,
}

/// A way of the chain from its entrance to a level until it is below it again.
#[derive(Clone, Debug)]
pub(super) struct Excursion {
    /// Probability of a round that it stands for, for each of its rounds.
    pub(super) weight: f64,
    pub(super) ancestor: u32,
    /// Rounds in which the max load was at least each counted level.
    pub(super) visits: Vec<u64>,
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
    sources: Sources<C::State>,
}

impl<'i, 'w, C: Chain> Island<'i, 'w, C> {
    pub(super) fn new(chain: &'i C, walker: &'i mut Walker<'w>) -> Self {
        let sources = Sources::new(chain, &mut walker.counts, Vec::new(), Vec::new());
        Self { chain, walker, sources }
    }

    fn advance(&mut self, state: &mut C::State) -> Result<(), TailError> {
        self.walker.round()?;
        self.chain.advance(self.walker, state);
        Ok(())
    }

    /// Runs the plain chain; `counted` are levels.
    pub(super) fn plain(&mut self, course: Course, counted: &[u64]) -> Result<Plain<C::State>, TailError> {
        self.walker.step()?;
        let mut state = self.chain.start(self.walker);
        for _ in 0..course.burn_in {
            self.advance(&mut state)?;
        }
        let (visits, bins) = (vec![Vec::new(); counted.len()], vec![0; counted.len()]);
        let mut plain = Plain { states: Vec::new(), visits, bins };
        let mut inside = vec![false; counted.len()];
        for round in 0..course.rounds {
            self.advance(&mut state)?;
            let max_load = self.chain.max_load(&state);
            for (at, &level) in counted.iter().enumerate() {
                match (max_load >= level, inside[at]) {
                    (true, true) => *plain.visits[at].last_mut().expect("a visit has begun") += 1,
                    (true, false) => plain.visits[at].push(1),
                    _ => {}
                }
                inside[at] = max_load >= level;
                if inside[at] {
                    plain.bins[at] += self.chain.reaching(&state, level);
                }
            }
            if round.is_multiple_of(course.every) {
                plain.states.push(state.clone());
            }
        }
        Ok(plain)
    }

    /// Takes the states of the plain chain below the first of `targets` as sources.
    pub(super) fn begin(&mut self, plain: Plain<C::State>, targets: Vec<u64>) {
        let weight = 1.0 / plain.states.len() as f64;
        let first = targets[0];
        let of_states = plain.states.into_iter().zip(0..);
        let below = of_states.filter(|(state, _)| self.chain.max_load(state) < first);
        let sources = below.map(|(state, ancestor)| Source { state, weight, ancestor, excursion: 0 }).collect();
        self.sources = Sources::new(self.chain, &mut self.walker.counts, sources, targets);
    }

    /// Enters the target of index `stage` from the sources and follows each excursion to its end. States below `next`
    /// are kept; rounds at `counted` levels, none below the target, are counted.
    pub(super) fn stage(
        &mut self,
        stage: usize,
        entrances: u64,
        next: Option<u64>,
        counted: &[u64],
    ) -> Result<Stage<C::State>, TailError> {
        let level = self.sources.targets()[stage];
        let Self { chain, walker, sources } = self;
        walker.step()?;
        let masses = sources.masses(*chain, &mut walker.counts, stage);
        let (chosen, weight) = sources.choose(&mut walker.stream, &masses, entrances);
        let mut kept = Kept::new(&mut walker.stream, KEPT_FOR_THE_NEXT * entrances as usize);
        let mut excursions = Vec::with_capacity(chosen.len());
        for (&Source { ref state, ancestor, .. }, number) in chosen.into_iter().zip(0..) {
            let mut state = state.clone();
            walker.step()?;
            walker.round()?;
            chain.force(walker, &mut state, level);
            // An entrance with several bins at the level was as many times as likely to be drawn.
            let weight = weight / chain.reaching(&state, level) as f64;
            let mut excursion = Excursion { weight, ancestor, visits: vec![0; counted.len()] };
            loop {
                let max_load = chain.max_load(&state);
                if max_load < level {
                    break;
                }
                for (visits, _) in excursion.visits.iter_mut().zip(counted).take_while(|(_, level)| max_load >= **level)
                {
                    *visits += 1;
                }
                if next.is_some_and(|next| max_load < next) {
                    kept.offer(&state, weight, ancestor, number);
                }
                walker.round()?;
                chain.advance(walker, &mut state);
            }
            excursions.push(excursion);
        }
        Ok(Stage { excursions, states: kept.into_sources() })
    }

    /// Adds the states of a stage below the target of index `next` as sources for it and those after it. Those of the
    /// stage before, which had so many `entrances`, have served its next, and are thinned.
    pub(super) fn add(
        &mut self,
        states: Vec<Source<C::State>>,
        next: usize,
        entrances_before: Option<u64>,
    ) -> Result<(), TailError> {
        let level = self.sources.targets()[next];
        let below = states.into_iter().filter(|source| self.chain.max_load(&source.state) < level).collect();
        self.sources.add(below);
        if let Some(entrances) = entrances_before {
            self.walker.step()?;
            self.sources.thin(&mut self.walker.stream, KEPT * entrances as usize);
        }
        Ok(())
    }

    /// Contributions to the expected number of entrances to the target of index `target`: of each source of the plain
    /// chain and of each stage.
    pub(super) fn masses(&mut self, target: usize) -> Vec<Vec<f64>> {
        self.sources.masses(self.chain, &mut self.walker.counts, target)
    }

    /// Of the `masses` those of the last stage, summed by excursion.
    pub(super) fn by_excursion(&self, masses: &[Vec<f64>], excursions: usize) -> Vec<f64> {
        self.sources.by_excursion(masses, excursions)
    }
}
