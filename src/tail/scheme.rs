//! What the islands of a run have in common: the chain, and the stages that the pilot found.

use super::chain::{Bins, Chain, Profiles, Walker};
use super::estimate::Method;
use super::island::Island;
use super::one_bin::OneBin;
use super::pilot::{Explored, PILOT_STATES, Plan, shortest};
use super::plain::Course;
use super::question::Question;
use super::share::{Seen, Share};
use super::{MAX_ROUNDS, Spec, TailError};
use crate::backend::{Control, StreamKind, memory};
use crate::float::exp;
use crate::journal::start_sha256;
use crate::process::start::Start;
use crate::process::{Form, Process, ProcessSpec, TailBins};
use crate::profile::{Count, ProfileChain, TailChain};
use serde::{Deserialize, Serialize};

/// Relative variance of an island that is good enough: of 32 such islands a t interval makes sense.
const VARIANCE: f64 = 0.15;
/// That of what one bin says where all bins are followed too: about what these leave of it, in as much time.
const VARIANCE_BESIDE_ALL: f64 = 0.05;
/// Paths of all bins beside one bin.
const PATHS_BESIDE: u64 = 16;
/// Mean numbers of bins from which on those of two bins at the level at once are looked at.
const PAIRS: f64 = 1e-4;
/// Least weight of the mean number of bins: where there are always several, it adds more than it takes away.
const LEAST: f64 = 0.05;

/// What the pilot found, as far as estimates and reports need it beside the islands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Levels of the stages, ascending, and the excursions of each in an island.
    pub stages: Vec<(u64, u64)>,
    /// How each level asked for is estimated.
    pub methods: Vec<Method>,
    /// Whether several bins at once at that level count as often as they are.
    pub neglects_pairs: Vec<bool>,
    /// With a start of `file:PATH` the digest of the loads in it, as in the [journal](crate::journal) of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_sha256: Option<String>,
}

/// A run, ready for its islands: each is a function of this and its number.
pub(super) struct Scheme {
    chain: Form,
    seed: u64,
    question: Question,
    levels: Vec<u64>,
    start_sha256: Option<String>,
    /// The law of the balls of a bin where one is followed alone.
    one_bin: Option<[(f64, Count); 2]>,
    plan: Plan,
    /// The plain chain of all bins beside one bin alone.
    beside: Course,
    /// For each level, what the number of bins at it counts for beside that chain; `None` where this is not needed.
    controls: Vec<Option<f64>>,
}

impl Scheme {
    /// Builds the process and runs the pilot. The stationary state is begun from near it.
    pub(super) fn find(spec: &Spec, control: &Control) -> Result<Self, TailError> {
        let form = build(&spec.process, spec.states)?;
        let (question, levels) = (spec.question, &spec.levels);
        let has_file = question != Question::Stationary && matches!(spec.process.start(), Start::File(_));
        let start_sha256 = has_file.then(|| start_sha256(spec.seed, &form));
        let form = match question {
            Question::Stationary => build(&spec.process.with_start(spec.process.stationary_start()), spec.states)?,
            Question::AtRound(_) | Question::Within(_) => form,
        };
        let memory = if question == Question::Stationary { spec.memory() } else { 1.0 };
        let shortest = shortest(question, memory);
        if shortest.burn_in.saturating_add(shortest.looks) > MAX_ROUNDS {
            return Err(TailError::Endless { rounds: memory });
        }
        require_memory(&form, PILOT_STATES)?;
        // Profiles do not know which of their bins was at a level before.
        let one_bin = one_bin(&form).filter(|_| !matches!(question, Question::Within(_)));
        let walker = &mut Walker::new(spec.seed, u32::MAX, control);
        let asked = (question, &levels[..]);
        let explored = match (&form, one_bin) {
            (Form::Profile(chain), Some(law)) => {
                let highest = *levels.last().expect("a level is asked for");
                let bin = OneBin::new(&**chain, law, highest);
                Explored::find(Island::new(&bin, walker, question), asked, memory)?
            }
            (Form::Profile(chain), None) => {
                Explored::find(Island::new(&Profiles(of(&**chain)), walker, question), asked, memory)?
            }
            (Form::Bins(process), _) => {
                Explored::find(Island::new(&Bins(of_bins(&**process)), walker, question), asked, memory)?
            }
        };
        let mut controls = vec![None; levels.len()];
        if let (Form::Profile(chain), Some(_)) = (&form, one_bin) {
            for (control, p) in controls.iter_mut().zip(&explored.fractions) {
                let bins = chain.bins() as f64 * p;
                let weight = exp(-bins);
                *control = (chain.bins() > 1 && bins > PAIRS).then_some(if weight < LEAST { 0.0 } else { weight });
            }
        }
        let is_beside_all = controls.iter().any(Option::is_some);
        let plan = explored.plan(if is_beside_all { VARIANCE_BESIDE_ALL } else { VARIANCE });
        let beside = Course { every: shortest.looks, looks: shortest.looks.max(PATHS_BESIDE), ..shortest };
        require_memory(&form, plan.states())?;
        Ok(Self {
            chain: form,
            seed: spec.seed,
            question,
            levels: levels.clone(),
            start_sha256,
            one_bin,
            plan,
            beside,
            controls,
        })
    }

    /// What the pilot found.
    pub(super) fn findings(&self) -> Findings {
        let levels = 0..self.levels.len();
        Findings {
            stages: self.plan.stages.clone(),
            methods: levels.clone().map(|level| self.method(level)).collect(),
            neglects_pairs: levels.map(|level| self.neglects_pairs(level)).collect(),
            start_sha256: self.start_sha256.clone(),
        }
    }

    /// How the level of this index is estimated.
    fn method(&self, level: usize) -> Method {
        let first = self.plan.stages.first().map_or(u64::MAX, |stage| stage.0);
        match (&self.one_bin, self.controls[level]) {
            (Some(_), Some(control)) if counts_little(control) => Method::Plain,
            (Some(_), _) => Method::OneBin,
            (None, _) if self.levels[level] < first => Method::Plain,
            (None, _) => Method::Stage,
        }
    }

    /// Whether several bins at once at the level of this index count as often as they are.
    fn neglects_pairs(&self, level: usize) -> bool {
        self.one_bin.is_some() && self.chain.bins() > 1 && self.controls[level].is_none()
    }

    /// Computes the island of this number.
    pub(super) fn island(&self, number: u32, control: &Control) -> Result<Share, TailError> {
        let walker = &mut Walker::new(self.seed, number, control);
        let chain = match &self.chain {
            Form::Profile(chain) => &**chain,
            Form::Bins(process) => {
                let bins = Bins(of_bins(&**process));
                let levels = self.climb(&mut Island::new(&bins, walker, self.question), 1.0)?;
                return Ok(Share { rounds: walker.rounds(), levels });
            }
        };
        let all = Profiles(of(chain));
        let Some(law) = self.one_bin else {
            let levels = self.climb(&mut Island::new(&all, walker, self.question), 1.0)?;
            return Ok(Share { rounds: walker.rounds(), levels });
        };
        let highest = *self.levels.last().expect("a level is asked for");
        let bin = OneBin::new(chain, law, highest);
        let bins = chain.bins();
        let mut levels = self.climb(&mut Island::new(&bin, walker, self.question), bins as f64)?;
        // A round of all bins is as many rounds of one.
        let of_one_bin = walker.rounds();
        let mut share = Share { rounds: of_one_bin.div_ceil(bins), levels: Vec::new() };
        let beside: Vec<_> = (0..levels.len()).filter_map(|level| Some((level, self.controls[level]?))).collect();
        if !beside.is_empty() {
            let counted: Vec<u64> = beside.iter().map(|(level, _)| self.levels[*level]).collect();
            let plain = Island::new(&all, walker, self.question).plain(self.beside, &counted)?;
            let looks = self.beside.looks;
            for (((level, control), visits), reaching) in beside.into_iter().zip(plain.visits).zip(plain.bins) {
                let of_one = std::mem::take(&mut levels[level]);
                let of_all = Seen::of_visits(&visits, looks, 1.0);
                let bins_there = reaching as f64 / looks as f64;
                let probability = of_all.probability + control * (of_one.probability - bins_there);
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
        let of_visits = |visits: &Vec<u64>| Seen::of_visits(visits, plan.course.looks, bins);
        let mut levels: Vec<Seen> = plain.visits.iter().map(of_visits).collect();
        if !plan.stages.is_empty() {
            island.begin(plain.states, plan.stages.iter().map(|stage| stage.0).collect());
        }
        for (stage, &(level, entrances)) in plan.stages.iter().enumerate() {
            let next = plan.stages.get(stage + 1).map(|next| next.0);
            let end = next.unwrap_or(u64::MAX);
            let counted: Vec<u64> = self.levels.iter().copied().filter(|k| (level..end).contains(k)).collect();
            let seen = island.stage(stage, entrances, next, &counted)?;
            let of =
                |i: usize| seen.excursions.iter().map(move |way| (bins * way.weight * way.visits[i], way.ancestor));
            levels.extend((0..counted.len()).map(|i| Seen::of(of(i))));
            if next.is_some() {
                island.add(seen, stage + 1);
            }
        }
        Ok(levels)
    }
}

/// Refuses states bin by bin where those of the islands under way do not fit.
fn require_memory(form: &Form, states: u64) -> Result<(), TailError> {
    let Form::Bins(process) = form else { return Ok(()) };
    let bytes = 4 * u64::from(process.bins()) * rayon::current_num_threads() as u64;
    let what = format!("the {states} states of each island under way, of {} bins each,", process.bins());
    Ok(memory::require(what, bytes.saturating_mul(states), "use --states profile, or fewer bins or --threads")?)
}

/// Whether the rounds of all bins say more of a level than one bin with this `control`.
fn counts_little(control: f64) -> bool {
    control < 0.5
}

/// The process with `states` that it can be conditioned on.
fn build(process: &ProcessSpec, states: StreamKind) -> Result<Form, TailError> {
    let form = process.build_for(states)?;
    let other = match states {
        StreamKind::Bins => StreamKind::Profile,
        StreamKind::Profile => StreamKind::Bins,
    };
    match process.name() {
        _ if has_tail(&form) => Ok(form),
        name if process.build_for(other).is_ok_and(|form| has_tail(&form)) => {
            Err(TailError::UnsupportedStates { process: name, states })
        }
        name => Err(TailError::Unsupported(name)),
    }
}

/// Whether it can be conditioned on levels.
fn has_tail(form: &Form) -> bool {
    match form {
        Form::Profile(chain) => chain.tail().is_some(),
        Form::Bins(process) => process.tail().is_some(),
    }
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
