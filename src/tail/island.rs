//! One island: a plain chain, and the stages that climb from it.

use super::TailError;
use crate::backend::{BackendError, Control};
use crate::profile::{CountTail, Profile, TailChain, Thrower, Watch};
use crate::rng::stream::Stream;
use crate::rng::{Domain, Draws};

/// Rounds between two looks at the control.
const ROUNDS_PER_LOOK: u64 = 64;
/// Visited states that a stage leaves to the stages after the next, for each of its entrances.
const KEPT_PER_ENTRANCE: usize = 2;

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

/// A weighted state outside of a stage: all of them together stand for the stationary law there.
#[derive(Clone, Debug)]
pub(super) struct Source {
    profile: Profile,
    /// Share of the stationary law that it stands for.
    weight: f64,
    /// The state of the plain chain that it comes from.
    ancestor: u32,
    /// Expected number of bins that reach each of the last targets of the island in the next round.
    expected: Vec<f64>,
}

/// What the plain chain has shown.
#[derive(Debug)]
pub(super) struct Plain {
    states: Vec<Profile>,
    /// For each counted level, the numbers of successive rounds that the max load was at least that.
    pub(super) visits: Vec<Vec<u64>>,
}

/// A way of the chain from its entrance to a level until it is below it again.
#[derive(Clone, Debug)]
pub(super) struct Excursion {
    /// Probability of a round that it stands for, for each of its rounds.
    pub(super) weight: f64,
    pub(super) ancestor: u32,
    /// Rounds in which the max load was at least each counted level.
    pub(super) visits: Vec<u64>,
    /// Number of states that it left in [`Stage::states`].
    pub(super) states: usize,
}

/// The excursions of a stage.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) excursions: Vec<Excursion>,
    /// The states below the next stage that they went through.
    pub(super) states: Vec<Source>,
}

/// The chain of one island, with its random numbers.
pub(super) struct Island<'a> {
    chain: &'a dyn TailChain,
    control: &'a Control<'a>,
    seed: u64,
    number: u32,
    /// Rounds so far: the numbers of each are its own.
    step: u64,
    stream: Stream,
    thrower: Thrower,
    counts: CountTail,
    /// Levels that sources are for, ascending.
    targets: Vec<u64>,
    sources: Vec<Source>,
}

impl<'a> Island<'a> {
    pub(super) fn new(chain: &'a dyn TailChain, seed: u64, number: u32, control: &'a Control) -> Self {
        Self {
            chain,
            control,
            seed,
            number,
            step: 0,
            stream: Stream::new(&Draws::new(seed, number, 0), Domain::Tail),
            thrower: Thrower::default(),
            counts: CountTail::default(),
            targets: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Rounds so far, forced ones included.
    pub(super) fn rounds(&self) -> u64 {
        self.step
    }

    /// Goes to the random numbers of the next step.
    fn step(&mut self) -> Result<(), TailError> {
        if self.step.is_multiple_of(ROUNDS_PER_LOOK) {
            if self.control.is_cancelled() {
                return Err(BackendError::Cancelled.into());
            }
            self.control.advance(ROUNDS_PER_LOOK);
        }
        self.stream.restart(&Draws::new(self.seed, self.number, self.step), Domain::Tail);
        self.step += 1;
        Ok(())
    }

    fn advance(&mut self, profile: &mut Profile) -> Result<(), TailError> {
        self.step()?;
        let mut state = std::mem::take(profile).into();
        let mut watch = Watch { loads: &mut |_, _| {}, further: None };
        self.chain.round(&mut self.stream, &mut self.thrower, &mut state, &mut watch);
        *profile = state.bins;
        Ok(())
    }

    /// Runs the plain chain; `counted` are levels.
    pub(super) fn plain(&mut self, course: Course, counted: &[u64]) -> Result<Plain, TailError> {
        self.step()?;
        let mut profile = self.chain.start(&mut self.stream, &mut self.thrower).bins;
        for _ in 0..course.burn_in {
            self.advance(&mut profile)?;
        }
        let mut plain = Plain { states: Vec::new(), visits: vec![Vec::new(); counted.len()] };
        let mut inside = vec![false; counted.len()];
        for round in 0..course.rounds {
            self.advance(&mut profile)?;
            let max_load = profile.max_load();
            for ((&level, visits), inside) in counted.iter().zip(&mut plain.visits).zip(&mut inside) {
                match (max_load >= level, *inside) {
                    (true, true) => *visits.last_mut().expect("a visit has begun") += 1,
                    (true, false) => visits.push(1),
                    _ => {}
                }
                *inside = max_load >= level;
            }
            if round.is_multiple_of(course.every) {
                plain.states.push(profile.clone());
            }
        }
        Ok(plain)
    }

    /// Takes the states of the plain chain below the first of `targets` as sources.
    pub(super) fn begin(&mut self, plain: Plain, targets: Vec<u64>) {
        let weight = 1.0 / plain.states.len() as f64;
        self.targets = targets;
        let first = self.targets[0];
        for (state, ancestor) in plain.states.into_iter().zip(0..) {
            if state.max_load() < first {
                let source = self.source(state, weight, ancestor, 0);
                self.sources.push(source);
            }
        }
    }

    /// A source for the targets from that of index `from` on.
    fn source(&mut self, profile: Profile, weight: f64, ancestor: u32, from: usize) -> Source {
        let mut expected = Vec::new();
        self.chain.expected_reaching(&mut self.counts, &profile, &self.targets[from..], &mut expected);
        Source { profile, weight, ancestor, expected }
    }

    /// Contribution of `source` to the expected number of entrances to the target of index `stage`.
    fn mass(&self, source: &Source, stage: usize) -> f64 {
        let from_the_end = self.targets.len() - stage;
        source.weight * source.expected[source.expected.len() - from_the_end]
    }

    /// The masses of all sources so far.
    pub(super) fn masses(&self, stage: usize) -> Vec<f64> {
        self.sources.iter().map(|source| self.mass(source, stage)).collect()
    }

    /// The masses of the states of `seen` below the target of index `stage`, summed by excursion.
    pub(super) fn masses_by_excursion(&self, seen: &Stage, stage: usize) -> Vec<f64> {
        let mut states = seen.states.iter();
        let below = |source: &&Source| source.profile.max_load() < self.targets[stage];
        let mass = |source| self.mass(source, stage);
        seen.excursions.iter().map(|of| states.by_ref().take(of.states).filter(below).map(mass).sum()).collect()
    }

    /// Enters the target of index `stage` from the sources and follows each excursion to its end. States below `next`
    /// are kept; rounds at `counted` levels, none below the target, are counted.
    pub(super) fn stage(
        &mut self,
        stage: usize,
        entrances: u64,
        next: Option<u64>,
        counted: &[u64],
    ) -> Result<Stage, TailError> {
        let level = self.targets[stage];
        let mut seen = Stage { excursions: Vec::new(), states: Vec::new() };
        for (index, weight) in self.chosen(stage, entrances)? {
            let Source { ref profile, ancestor, .. } = self.sources[index];
            let mut profile = profile.clone();
            self.step()?;
            self.chain.force(&mut self.stream, &mut self.thrower, &mut self.counts, &mut profile, level);
            // An entrance with several bins at the level was as many times as likely to be drawn.
            let reached = profile.levels().iter().filter(|at| at.load >= level).map(|at| at.bins).sum::<u64>();
            let weight = weight / reached as f64;
            let mut excursion = Excursion { weight, ancestor, visits: vec![0; counted.len()], states: 0 };
            loop {
                let max_load = profile.max_load();
                if max_load < level {
                    break;
                }
                for (visits, &counted) in excursion.visits.iter_mut().zip(counted) {
                    *visits += u64::from(max_load >= counted);
                }
                if next.is_some_and(|next| max_load < next) {
                    let source = self.source(profile.clone(), weight, ancestor, stage + 1);
                    seen.states.push(source);
                    excursion.states += 1;
                }
                self.advance(&mut profile)?;
            }
            seen.excursions.push(excursion);
        }
        Ok(seen)
    }

    /// The sources to enter from, in proportion to their mass (systematic resampling), and the weight of each entrance;
    /// none where there is no mass.
    fn chosen(&mut self, stage: usize, entrances: u64) -> Result<Vec<(usize, f64)>, TailError> {
        self.step()?;
        let masses = self.masses(stage);
        let weight = masses.iter().sum::<f64>() / entrances as f64;
        let mut chosen = Vec::with_capacity(entrances as usize);
        let mut next = self.stream.unit() * weight;
        let mut sum = 0.0;
        let mut last = None;
        for (index, mass) in masses.into_iter().enumerate() {
            sum += mass;
            if mass > 0.0 {
                last = Some(index);
            }
            while mass > 0.0 && next <= sum && (chosen.len() as u64) < entrances {
                chosen.push((index, weight));
                next += weight;
            }
        }
        // Rounding of the sums may leave out the last one.
        if let Some(last) = last {
            chosen.resize(entrances as usize, (last, weight));
        }
        Ok(chosen)
    }

    /// Adds the states of a stage below `next` to the sources; returns where they begin.
    pub(super) fn add(&mut self, states: Vec<Source>, next: u64) -> usize {
        let first = self.sources.len();
        self.sources.extend(states.into_iter().filter(|source| source.profile.max_load() < next));
        first
    }

    /// Leaves of the sources from `first` on every r-th from a random one, r times as heavy: so many as entrances of a few
    /// stages need. What a stage contributes to others than the next is small.
    pub(super) fn thin(&mut self, first: usize, entrances: u64) -> Result<(), TailError> {
        let states = self.sources.len() - first;
        let ratio = states.div_ceil(KEPT_PER_ENTRANCE * entrances as usize);
        if ratio <= 1 {
            return Ok(());
        }
        self.step()?;
        let offset = self.stream.below(ratio as u64) as usize;
        let mut kept = Vec::with_capacity(states / ratio + 1);
        for (place, mut source) in self.sources.drain(first..).enumerate() {
            if place % ratio == offset {
                source.weight *= ratio as f64;
                kept.push(source);
            }
        }
        self.sources.append(&mut kept);
        Ok(())
    }
}
