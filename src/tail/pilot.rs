//! The pilot: an island that finds out where the stages are and how much work each deserves.
//!
//! # Stages
//! The first stage is the lowest level that fewer than one in ten rounds reach. From each stage the next is the highest
//! level that its excursions are at in a fifth of their rounds, if not too few of them reach it, or the next level where
//! there is none: with two choices that is every level, with one choice one in many. Where there are more than 512
//! levels, so many of them, evenly, are looked at.
//!
//! # Work
//! Let the plain chains have relative variance `V / looks` at a cost of c rounds each, and stage i `V_i / entrances` at a
//! cost of `c_i`. The error is least, for the work, where looks go with `sqrt(V / c)` and entrances with
//! `sqrt(V_i / c_i)`. There are as many as keep the relative variance of an island below a bound, and no fewer than the
//! plain chain needs to forget its start.
//!
//! The pilot is a function of the seed. A poor one makes the islands slower and leaves them unbiased.

use super::TailError;
use super::chain::Chain;
use super::island::{Excursion, Island, KEPT_FOR_THE_NEXT};
use super::plain::Course;
use super::question::Question;
use super::sources::KEPT;

/// Largest fraction of rounds at the first stage.
const FIRST: f64 = 0.1;
/// Least fraction of the rounds of a stage at the next.
const STEP: f64 = 0.2;
/// Levels that a stage may have.
const MOST_TARGETS: u64 = 512;
/// Excursions of each stage of the pilot, and how many of them have to reach the next stage.
const ENTRANCES: u64 = 256;
const REACHING: usize = 12;
/// Fewest and most excursions of a stage of an island; from a start the moments of entrances matter too.
const FEWEST: f64 = 32.0;
const FEWEST_FROM_A_START: f64 = 256.0;
const MOST: f64 = 65_536.0;
/// Rounds of the plain chain in autocorrelation times: before it is looked at, and fewest after.
const BURN_IN: f64 = 5.0;
const ROUNDS: f64 = 20.0;
/// Fewest rounds of the plain chain.
const FEWEST_ROUNDS: f64 = 1024.0;
/// States that the pilot keeps of its plain chains and its first stages.
pub(super) const PILOT_STATES: u64 = ENTRANCES * (KEPT_FOR_THE_NEXT + KEPT) as u64;
/// Paths of the pilot, and fewest of an island.
const PATHS: u64 = 32;
const FEWEST_PATHS: u64 = 4;
/// States kept in an autocorrelation time.
const STATES: f64 = 8.0;

/// Least relative variance of a look at the plain chains.
const LEAST_VARIANCE: f64 = 1e-6;

/// What the islands of a run have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) course: Course,
    /// Levels of the stages, ascending, and the excursions of each.
    pub(super) stages: Vec<(u64, u64)>,
}

/// The shortest plain chains: in the stationary state, of a process that forgets its state in some `memory` rounds.
pub(super) fn shortest(question: Question, memory: f64) -> Course {
    if question.horizon().is_some() {
        return Course { question, burn_in: 0, looks: FEWEST_PATHS, every: 1 };
    }
    let (burn_in, every) = ((BURN_IN * memory).ceil() as u64, (memory / STATES).floor().max(1.0) as u64);
    Course { question, burn_in, looks: (ROUNDS * memory).max(FEWEST_ROUNDS).ceil() as u64, every }
}

impl Plan {
    /// About how many states an island keeps at once.
    pub(super) fn states(&self) -> u64 {
        let of_plain = if self.course.question.horizon().is_some() { 64 } else { 1 };
        let plain = of_plain * self.course.looks.div_ceil(self.course.every);
        let entrances = self.stages.iter().map(|stage| stage.1);
        let under_way = (1 + KEPT_FOR_THE_NEXT as u64) * entrances.clone().max().unwrap_or(0);
        plain + under_way + KEPT as u64 * entrances.sum::<u64>()
    }
}

/// What a pilot has seen.
pub(super) struct Explored {
    shortest: Course,
    /// Relative variance of a look.
    of_a_look: f64,
    stages: Vec<Climb>,
    /// Of the levels asked for, the fraction of the looks that reach each.
    pub(super) fractions: Vec<f64>,
}

impl Explored {
    /// Finds the stages for the levels asked for, which ascend; looks of the plain chains are as good as independent
    /// after some `memory` of them. `pilot` is an island of its own, with a question.
    pub(super) fn find<C: Chain>(
        mut pilot: Island<'_, '_, C>,
        (question, levels): (Question, &[u64]),
        memory: f64,
    ) -> Result<Self, TailError> {
        let shortest = shortest(question, memory);
        let course = Course { looks: shortest.looks.max(PATHS), ..shortest };
        let looks = course.looks as f64;
        let highest = *levels.last().expect("a level is asked for");
        let spacing = highest.div_ceil(MOST_TARGETS) as usize;
        let all: Vec<u64> = (1..=highest).step_by(spacing).collect();
        let looked_at: Vec<u64> = all.iter().chain(levels).copied().collect();
        let plain = pilot.plain(course, &looked_at)?;
        let fraction = |visits: &Vec<u64>| visits.iter().sum::<u64>() as f64 / looks;
        let seen: Vec<f64> = plain.visits.iter().map(fraction).collect();
        let (of_all, of_levels) = seen.split_at(all.len());
        let first = of_all.iter().position(|&fraction| fraction < FIRST).unwrap_or(all.len());
        let targets = all[first..].to_vec();
        let lowest = targets.first().copied().unwrap_or(u64::MAX);

        // Relative variances for one look, or one entrance; and rounds that an entrance costs.
        let mut fractions: Vec<f64> =
            levels.iter().zip(of_levels).filter(|(k, _)| **k < lowest).map(|(_, &p)| p.max(1.0 / looks)).collect();
        let mut of_a_look = fractions.iter().map(|p| memory * (1.0 - p) / p).fold(0.0, f64::max);
        let mut stages: Vec<Climb> = Vec::new();
        if !targets.is_empty() {
            pilot.begin(plain.states, targets.clone());
            let mut stage = 0;
            loop {
                let level = targets[stage];
                let masses = pilot.masses(stage);
                let all: f64 = masses.iter().flatten().sum();
                for (place, of_origin) in masses.iter().enumerate() {
                    let share = of_origin.iter().sum::<f64>() / all;
                    let variance = share * share * relative_variance(of_origin);
                    match place.checked_sub(1) {
                        None => of_a_look = of_a_look.max(memory * variance),
                        Some(climbed) => stages[climbed].variance = stages[climbed].variance.max(variance),
                    }
                }

                let (begun, ahead) = (pilot.walker.rounds(), &targets[stage..]);
                let asked: Vec<u64> = levels.iter().copied().filter(|&k| k >= level).collect();
                let counted: Vec<u64> = merged(ahead, &asked);
                let seen = pilot.stage(stage, ENTRANCES, Some(u64::MAX), &counted)?;
                if seen.excursions.is_empty() {
                    return Err(TailError::OutOfReach { level });
                }
                let cost = (pilot.walker.rounds() - begun) as f64 / ENTRANCES as f64;
                let rounds = |k: u64| {
                    let at = counted.binary_search(&k).expect("it is counted");
                    let weighted = |of: &Excursion| of.weight * of.visits[at];
                    seen.excursions.iter().map(weighted).collect::<Vec<f64>>()
                };
                let enough = STEP * rounds(level).iter().sum::<f64>();
                let reaches = |k: u64| {
                    let rounds = rounds(k);
                    rounds.iter().sum::<f64>() >= enough && rounds.iter().filter(|r| **r > 0.0).count() >= REACHING
                };
                let further = ahead.iter().rposition(|&k| reaches(k)).unwrap_or(0).max(1);
                let next = ahead.get(further).copied().filter(|_| !reaches(highest));
                let end = next.unwrap_or(u64::MAX);
                let asked = || asked.iter().filter(|k| **k < end);
                let variance = asked().map(|&k| relative_variance(&rounds(k))).fold(0.0, f64::max);
                fractions.extend(asked().map(|&k| rounds(k).iter().sum::<f64>()));
                stages.push(Climb { level, cost, variance });
                if next.is_none() {
                    break;
                }
                stage += further;
                pilot.add(seen, stage);
            }
        }
        // A chain without any variance still needs a scale.
        Ok(Self { shortest, of_a_look: of_a_look.max(LEAST_VARIANCE), stages, fractions })
    }

    /// The plan by which an island has about this relative `variance`.
    pub(super) fn plan(&self, variance: f64) -> Plan {
        let Self { shortest, of_a_look, ref stages, .. } = *self;
        let cost_of_a_look = shortest.rounds_of_a_look() as f64;
        let sum: f64 =
            (of_a_look * cost_of_a_look).sqrt() + stages.iter().map(|s| (s.variance * s.cost).sqrt()).sum::<f64>();
        let effort = (of_a_look / cost_of_a_look).sqrt();
        let scale = (shortest.looks as f64 / effort).max(sum / variance);
        let looks = ((scale * effort).ceil() as u64).max(shortest.looks);
        let fewest = if shortest.question.horizon().is_some() { FEWEST_FROM_A_START } else { FEWEST };
        let entrances = |s: &Climb| (scale * (s.variance / s.cost).sqrt()).clamp(fewest, MOST).ceil() as u64;
        let stages = stages.iter().map(|s| (s.level, entrances(s))).collect();
        Plan { course: Course { looks, ..shortest }, stages }
    }
}

/// Ascending numbers of either list.
fn merged(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// A stage of the pilot.
struct Climb {
    level: u64,
    /// Rounds of an excursion, with its forced one.
    cost: f64,
    /// Relative variance of what it is for, for one entrance.
    variance: f64,
}

/// Variance over squared mean; 0 where the mean is 0.
fn relative_variance(values: &[f64]) -> f64 {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    if mean > 0.0 {
        values.iter().map(|value| (value / mean - 1.0) * (value / mean - 1.0)).sum::<f64>() / number
    } else {
        0.0
    }
}
