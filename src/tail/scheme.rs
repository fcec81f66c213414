//! What the islands of a run have in common: the chain, and the stages that the pilot found.

use super::chain::{Bins, Chain, Profiles, Walker};
use super::estimate::Method;
use super::island::{Course, Island};
use super::one_bin::OneBin;
use super::pilot::{Plan, shortest};
use super::share::{Seen, Share};
use super::{Spec, TailError};
use crate::backend::{Control, StreamKind};
use crate::float::exp;
use crate::process::{Form, Process, ProcessSpec, TailBins};
use crate::profile::{Count, ProfileChain, TailChain};

/// Relative variance of an island that is good enough: of 32 such islands a t interval makes sense.
const VARIANCE: f64 = 0.15;
/// That of what one bin says where all bins are followed too: about what these leave of it, in as much time.
const VARIANCE_BESIDE_ALL: f64 = 0.05;
/// Mean numbers of bins from which on those of two bins at the level at once are looked at.
const PAIRS: f64 = 1e-4;
/// Least weight of the mean number of bins: where there are always several, it adds more than it takes away.
const LEAST: f64 = 0.05;

/// A run, ready for its islands: each is a function of this and its number.
pub(super) struct Scheme {
    chain: Form,
    seed: u64,
    levels: Vec<u64>,
    /// The law of the balls of a bin where one is followed alone.
    one_bin: Option<[(f64, Count); 2]>,
    plan: Plan,
    /// The plain chain of all bins beside one bin alone.
    beside: Course,
    /// For each level, what the number of bins at it counts for beside that chain; `None` where this is not needed.
    controls: Vec<Option<f64>>,
}

impl Scheme {
    /// Builds the process and runs the pilot.
    pub(super) fn find(spec: &Spec, control: &Control) -> Result<Self, TailError> {
        // Without such a form there is no need to look at its mean field.
        build(&spec.process, spec.states)?;
        let form = build(&spec.process.with_start(spec.process.stationary_start()), spec.states)?;
        let (levels, memory, one_bin) = (&spec.levels, spec.memory(), one_bin(&form));
        let walker = &mut Walker::new(spec.seed, u32::MAX, control);
        let mut controls = vec![None; levels.len()];
        let plan = match (&form, one_bin) {
            (Form::Profile(chain), Some(law)) => {
                let highest = *levels.last().expect("a level is asked for");
                let bin = OneBin::new(&**chain, law, highest);
                let find = |walker, variance| Plan::find(Island::new(&bin, walker), levels, memory, variance);
                let mut plan = find(walker, VARIANCE)?;
                for (control, p) in controls.iter_mut().zip(&plan.fractions) {
                    let bins = chain.bins() as f64 * p;
                    let weight = exp(-bins);
                    *control = (chain.bins() > 1 && bins > PAIRS).then_some(if weight < LEAST { 0.0 } else { weight });
                }
                if controls.iter().any(Option::is_some) {
                    plan = find(&mut Walker::new(spec.seed, u32::MAX, control), VARIANCE_BESIDE_ALL)?;
                }
                plan
            }
            (Form::Profile(chain), None) => {
                Plan::find(Island::new(&Profiles(of(&**chain)), walker), levels, memory, VARIANCE)?
            }
            (Form::Bins(process), _) => {
                Plan::find(Island::new(&Bins(of_bins(&**process)), walker), levels, memory, VARIANCE)?
            }
        };
        let shortest = shortest(memory);
        let beside = Course { every: shortest.rounds, ..shortest };
        Ok(Self { chain: form, seed: spec.seed, levels: levels.clone(), one_bin, plan, beside, controls })
    }

    /// What a state of the chain is.
    pub(super) fn states(&self) -> StreamKind {
        self.chain.stream()
    }

    /// Levels of the stages, ascending, and the excursions of each in an island.
    pub(super) fn stages(&self) -> &[(u64, u64)] {
        &self.plan.stages
    }

    /// How the level of this index is estimated.
    pub(super) fn method(&self, level: usize) -> Method {
        let first = self.plan.stages.first().map_or(u64::MAX, |stage| stage.0);
        match (&self.one_bin, self.controls[level]) {
            (Some(_), Some(control)) if counts_little(control) => Method::Plain,
            (Some(_), _) => Method::OneBin,
            (None, _) if self.levels[level] < first => Method::Plain,
            (None, _) => Method::Stage,
        }
    }

    /// Whether several bins at once at the level of this index count as often as they are.
    pub(super) fn neglects_pairs(&self, level: usize) -> bool {
        self.one_bin.is_some() && self.chain.bins() > 1 && self.controls[level].is_none()
    }

    /// Computes the island of this number.
    pub(super) fn island(&self, number: u32, control: &Control) -> Result<Share, TailError> {
        let walker = &mut Walker::new(self.seed, number, control);
        let chain = match &self.chain {
            Form::Profile(chain) => &**chain,
            Form::Bins(process) => {
                let levels = self.climb(&mut Island::new(&Bins(of_bins(&**process)), walker), 1.0)?;
                return Ok(Share { rounds: walker.rounds(), levels });
            }
        };
        let all = Profiles(of(chain));
        let Some(law) = self.one_bin else {
            let levels = self.climb(&mut Island::new(&all, walker), 1.0)?;
            return Ok(Share { rounds: walker.rounds(), levels });
        };
        let highest = *self.levels.last().expect("a level is asked for");
        let bin = OneBin::new(chain, law, highest);
        let bins = chain.bins();
        let mut levels = self.climb(&mut Island::new(&bin, walker), bins as f64)?;
        // A round of all bins is as many rounds of one.
        let of_one_bin = walker.rounds();
        let mut share = Share { rounds: of_one_bin.div_ceil(bins), levels: Vec::new() };
        let beside: Vec<_> = (0..levels.len()).filter_map(|level| Some((level, self.controls[level]?))).collect();
        if !beside.is_empty() {
            let counted: Vec<u64> = beside.iter().map(|(level, _)| self.levels[*level]).collect();
            let plain = Island::new(&all, walker).plain(self.beside, &counted)?;
            let rounds = self.beside.rounds as f64;
            for (((level, control), visits), reaching) in beside.into_iter().zip(plain.visits).zip(plain.bins) {
                let of_one = std::mem::take(&mut levels[level]);
                let of_all = Seen::of(visits.into_iter().map(|v| v as f64 / rounds).zip(0..));
                let probability = of_all.probability + control * (of_one.probability - reaching as f64 / rounds);
                let seen = if counts_little(control) { of_all } else { of_one };
                levels[level] = Seen { probability, ..seen };
            }
            share.rounds += walker.rounds() - of_one_bin;
        }
        Ok(Share { levels, ..share })
    }

    /// What the stages of an island say of the levels; each round stands for so many `bins`.
    fn climb<C: Chain>(&self, island: &mut Island<'_, '_, C>, bins: f64) -> Result<Vec<Seen>, TailError> {
        let plan = &self.plan;
        let first = plan.stages.first().map_or(u64::MAX, |stage| stage.0);
        let (counted, _) = self.levels.split_at(self.levels.partition_point(|&k| k < first));
        let plain = island.plain(plan.course, counted)?;
        let rounds = plan.course.rounds as f64 / bins;
        let of_visits = |visits: &Vec<u64>| Seen::of(visits.iter().map(|&v| v as f64 / rounds).zip(0..));
        let mut levels: Vec<Seen> = plain.visits.iter().map(of_visits).collect();
        if !plan.stages.is_empty() {
            island.begin(plain, plan.stages.iter().map(|stage| stage.0).collect());
        }
        let mut before = None;
        for (stage, &(level, entrances)) in plan.stages.iter().enumerate() {
            let next = plan.stages.get(stage + 1).map(|next| next.0);
            let end = next.unwrap_or(u64::MAX);
            let counted: Vec<u64> = self.levels.iter().copied().filter(|k| (level..end).contains(k)).collect();
            let seen = island.stage(stage, entrances, next, &counted)?;
            let of = |i: usize| {
                seen.excursions.iter().map(move |way| (bins * way.weight * way.visits[i] as f64, way.ancestor))
            };
            levels.extend((0..counted.len()).map(|i| Seen::of(of(i))));
            if next.is_some() {
                island.add(seen.states, stage + 1, before.replace(entrances))?;
            }
        }
        Ok(levels)
    }
}

/// Whether the rounds of all bins say more of a level than one bin with this `control`.
fn counts_little(control: f64) -> bool {
    control < 0.5
}

/// The process with states that it can be conditioned on, `wanted` ones where they matter.
fn build(process: &ProcessSpec, wanted: Option<StreamKind>) -> Result<Form, TailError> {
    let kinds = [StreamKind::Profile, StreamKind::Bins];
    for states in kinds.into_iter().filter(|kind| wanted.is_none_or(|wanted| wanted == *kind)) {
        let form = process.build_for(states)?;
        let has_tail = match &form {
            Form::Profile(chain) => chain.tail().is_some(),
            Form::Bins(process) => process.tail().is_some(),
        };
        if has_tail {
            return Ok(form);
        }
    }
    let process = process.name();
    Err(wanted.map_or(TailError::Unsupported(process), |states| TailError::UnsupportedStates { process, states }))
}

/// The law of the balls of a bin where one may be followed alone.
fn one_bin(form: &Form) -> Option<[(f64, Count); 2]> {
    match form {
        Form::Profile(chain) => chain.one_bin(),
        Form::Bins(_) => None,
    }
}

/// The form of a process that is known to have it.
fn of_bins(process: &dyn Process) -> &dyn TailBins {
    process.tail().expect("it was looked for")
}

/// The form of a chain that is known to have it.
fn of(chain: &dyn ProfileChain) -> &dyn TailChain {
    chain.tail().expect("it was looked for")
}
