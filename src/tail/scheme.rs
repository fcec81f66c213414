//! What the islands of a run have in common: the chain, and the stages that the pilot found.

use super::island::Island;
use super::pilot::Plan;
use super::share::{Seen, Share};
use super::{Spec, TailError};
use crate::backend::{Control, StreamKind};
use crate::process::start::Start;
use crate::process::{Form, ProcessSpec};
use crate::profile::{ProfileChain, TailChain};

/// A run, ready for its islands: each is a function of this and its number.
pub(super) struct Scheme {
    chain: Box<dyn ProfileChain>,
    seed: u64,
    levels: Vec<u64>,
    plan: Plan,
}

impl Scheme {
    /// Builds the process and runs the pilot.
    pub(super) fn find(spec: &Spec, control: &Control) -> Result<Self, TailError> {
        let build = |process: &ProcessSpec| match process.build_for(StreamKind::Profile)? {
            Form::Profile(chain) if chain.tail().is_some() => Ok(chain),
            _ => Err(TailError::Unsupported(spec.process.name())),
        };
        // Without such a form there is no need to look at its mean field.
        build(&spec.process)?;
        let chain = build(&spec.process.with_start(Start::MeanField))?;
        let pilot = Island::new(of(&*chain), spec.seed, u32::MAX, control);
        let plan = Plan::find(pilot, &spec.levels, spec.memory())?;
        Ok(Self { chain, seed: spec.seed, levels: spec.levels.clone(), plan })
    }

    /// Levels of the stages, ascending, and the excursions of each in an island.
    pub(super) fn stages(&self) -> &[(u64, u64)] {
        &self.plan.stages
    }

    /// Computes the island of this number.
    pub(super) fn island(&self, number: u32, control: &Control) -> Result<Share, TailError> {
        let plan = &self.plan;
        let mut island = Island::new(of(&*self.chain), self.seed, number, control);
        let first = plan.stages.first().map_or(u64::MAX, |stage| stage.0);
        let (counted, _) = self.levels.split_at(self.levels.partition_point(|&k| k < first));
        let plain = island.plain(plan.course, counted)?;
        let rounds = plan.course.rounds as f64;
        let mut levels: Vec<Seen> =
            plain.visits.iter().map(|visits| Seen::of(visits.iter().map(|&v| v as f64 / rounds).zip(0..))).collect();
        if !plan.stages.is_empty() {
            island.begin(plain, plan.stages.iter().map(|stage| stage.0).collect());
        }
        let mut fresh = None;
        for (stage, &(level, entrances)) in plan.stages.iter().enumerate() {
            let next = plan.stages.get(stage + 1).map(|next| next.0);
            let end = next.unwrap_or(u64::MAX);
            let counted: Vec<u64> = self.levels.iter().copied().filter(|k| (level..end).contains(k)).collect();
            let seen = island.stage(stage, entrances, next, &counted)?;
            let of =
                |i: usize| seen.excursions.iter().map(move |way| (way.weight * way.visits[i] as f64, way.ancestor));
            levels.extend((0..counted.len()).map(|i| Seen::of(of(i))));
            if let Some((first, entrances)) = fresh {
                island.thin(first, entrances)?;
            }
            fresh = Some((island.add(seen.states, end), entrances));
        }
        Ok(Share { rounds: island.rounds(), levels })
    }
}

/// The form of a chain that is known to have it.
fn of(chain: &dyn ProfileChain) -> &dyn TailChain {
    chain.tail().expect("it was looked for")
}
