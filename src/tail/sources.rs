//! Weighted states from which levels are entered: all of those outside of a level stand for the law there.

use super::chain::Chain;
use crate::profile::CountTail;
use crate::rng::stream::Stream;

/// Sources that a stage leaves, for each of its excursions, to those after the next.
pub(super) const KEPT: usize = 2;

/// A weighted state.
#[derive(Clone, Debug)]
pub(super) struct Source<S> {
    pub(super) state: S,
    /// Its max load, or the largest of its way to here where that is asked for.
    pub(super) reached: u64,
    /// Rounds that are left to the horizon; without a meaning in the stationary state.
    pub(super) left: u64,
    /// Share of the law that it stands for.
    pub(super) weight: f64,
    /// By how much it is preferred for entrances.
    pub(super) guide: f64,
    /// The state of the plain chain, or the path, that it comes from.
    pub(super) ancestor: u32,
    /// The excursion of its stage that went through it.
    pub(super) excursion: u32,
}

/// The sources of one stage, or of the plain chain.
struct Batch<S> {
    sources: Vec<Source<S>>,
    /// Excursions that they come from; 0 for those of the plain chains.
    excursions: usize,
    /// For each target, the expected numbers of bins that reach it in the next round from each source; of the plain chain
    /// alone, whose sources serve all targets.
    expected: Option<Vec<Vec<f64>>>,
    /// Masses at the target that was weighed for last.
    masses: Vec<f64>,
}

/// The sources so far.
pub(super) struct Sources<S> {
    /// Levels to be entered, ascending.
    targets: Vec<u64>,
    /// Those of the plain chain, and of each stage.
    batches: Vec<Batch<S>>,
    /// Memory of the states of a stage, which are many until they are thinned.
    spare: Vec<Source<S>>,
}

impl<S: Clone> Sources<S> {
    /// The states of the plain chain as sources for all `targets`.
    pub(super) fn new<C: Chain<State = S>>(
        chain: &C,
        counts: &mut CountTail,
        plain: Vec<Source<S>>,
        targets: Vec<u64>,
    ) -> Self {
        let mut expected = vec![Vec::with_capacity(plain.len()); targets.len()];
        let mut of_source = Vec::with_capacity(targets.len());
        for source in &plain {
            of_source.clear();
            chain.expected_reaching(counts, &source.state, &targets, &mut of_source);
            expected.iter_mut().zip(&of_source).for_each(|(values, &value)| values.push(value));
        }
        let batches = vec![Batch { sources: plain, excursions: 0, expected: Some(expected), masses: Vec::new() }];
        Self { targets, batches, spare: Vec::new() }
    }

    pub(super) fn targets(&self) -> &[u64] {
        &self.targets
    }

    /// Adds the sources of a stage that so many excursions went through.
    pub(super) fn add(&mut self, sources: Vec<Source<S>>, excursions: usize) {
        self.batches.push(Batch { sources, excursions, expected: None, masses: Vec::new() });
    }

    /// Finds the mass of each source: its contribution to the expected number of entrances to the target of index `target`,
    /// as much larger as the source is preferred.
    pub(super) fn weigh<C: Chain<State = S>>(&mut self, chain: &C, counts: &mut CountTail, target: usize) {
        for Batch { sources, expected, masses, .. } in &mut self.batches {
            masses.clear();
            match expected {
                Some(of_targets) => masses.extend_from_slice(&of_targets[target]),
                None => sources.iter().for_each(|source| {
                    chain.expected_reaching(counts, &source.state, &self.targets[target..=target], masses);
                }),
            }
            masses.iter_mut().zip(sources).for_each(|(mass, source)| *mass *= source.weight * source.guide);
        }
    }

    /// The masses of each batch, summed over the sources that are of one piece: an ancestor of the plain chains, or an
    /// excursion of a stage.
    pub(super) fn by_origin(&self) -> Vec<Vec<f64>> {
        let of_batch = |batch: &Batch<S>| {
            let mut sums = vec![0.0; batch.excursions];
            let mut last = None;
            for (source, &mass) in batch.sources.iter().zip(&batch.masses) {
                match sums.last_mut() {
                    _ if batch.excursions > 0 => sums[source.excursion as usize] += mass,
                    Some(sum) if last == Some(source.ancestor) => *sum += mass,
                    _ => sums.push(mass),
                }
                last = Some(source.ancestor);
            }
            sums
        };
        self.batches.iter().map(of_batch).collect()
    }

    /// Chooses `entrances` sources in proportion to their masses (systematic resampling); returns them and the weight of
    /// each entrance, times the guide of its source. There are none where there is no mass.
    pub(super) fn choose(&self, stream: &mut Stream, entrances: u64) -> (Vec<Source<S>>, f64) {
        let masses = || self.batches.iter().flat_map(|batch| &batch.masses);
        let weight = masses().sum::<f64>() / entrances as f64;
        let mut chosen = Vec::with_capacity(entrances as usize);
        let mut next = stream.unit() * weight;
        let mut sum = 0.0;
        let mut last = None;
        let sources = self.batches.iter().flat_map(|batch| &batch.sources);
        for (source, &mass) in sources.zip(masses()).filter(|(_, mass)| **mass > 0.0) {
            sum += mass;
            last = Some(source);
            while next <= sum && (chosen.len() as u64) < entrances {
                chosen.push(source.clone());
                next += weight;
            }
        }
        // Rounding of the sums may leave out the last one.
        if let Some(last) = last {
            chosen.resize(entrances as usize, last.clone());
        }
        (chosen, weight)
    }

    /// Leaves of the last stage a few sources for each of its excursions, in proportion to their masses at its next, as far
    /// as that goes; each as much heavier as it was likely to be left out.
    pub(super) fn thin(&mut self, stream: &mut Stream) {
        let Some(batch) = self.batches.last_mut() else { return };
        let most = KEPT * batch.excursions;
        if most == 0 || batch.sources.len() <= most {
            return;
        }
        let spacing = batch.masses.iter().sum::<f64>() / most as f64;
        let (mut sum, mut next) = (0.0, stream.unit());
        let mut all = std::mem::take(&mut batch.sources);
        batch.sources.extend(all.drain(..).zip(&batch.masses).filter_map(|(source, &mass)| {
            let kept = if mass >= spacing { 1.0 } else { mass / spacing };
            sum += kept;
            (kept > 0.0 && sum >= next).then(|| {
                next += 1.0;
                Source { weight: source.weight / kept, ..source }
            })
        }));
        self.spare = all;
    }

    /// To keep at most so many of the states of a stage.
    pub(super) fn keep(&mut self, stream: &mut Stream, most: usize) -> Kept<S> {
        let sources = std::mem::take(&mut self.spare);
        Kept { sources, most, offset: stream.bits(), doublings: 0, seen: 0 }
    }
}

/// The states that the excursions of a stage go through, or so many of them, evenly.
///
/// State i of them all is kept where i = offset modulo the stride, a power of 2 that grows with their number; the offset
/// is random and drawn before: each state is kept with the same probability, whatever the excursions do.
pub(super) struct Kept<S> {
    sources: Vec<Source<S>>,
    most: usize,
    offset: u64,
    /// Logarithm to base 2 of the stride.
    doublings: u32,
    seen: u64,
}

impl<S: Clone> Kept<S> {
    pub(super) fn offer(&mut self, source: &Source<S>) {
        let mask = (1 << self.doublings) - 1;
        if self.seen & mask == self.offset & mask {
            self.sources.push(source.clone());
        }
        self.seen += 1;
        if self.sources.len() > self.most {
            let wanted = (self.offset >> self.doublings & 1) as usize;
            let mut place = 0..;
            self.sources.retain(|_| place.next().is_some_and(|at: usize| at % 2 == wanted));
            self.doublings += 1;
        }
    }

    /// The states kept, as heavy as all of them.
    pub(super) fn into_sources(mut self) -> Vec<Source<S>> {
        let stride = (1u64 << self.doublings) as f64;
        self.sources.iter_mut().for_each(|source| source.weight *= stride);
        self.sources
    }
}
