//! The pilot: an island that finds out where the stages are and how much work each deserves.
//!
//! # Stages
//! The first stage is the lowest level that fewer than one in ten rounds reach. From each stage the next is the highest
//! level that its excursions reach in a fifth of their rounds, or the next whole number where there is none: with two
//! choices that is every level, with one choice one in many.
//!
//! # Work
//! Let the plain chain have relative variance `V / rounds`, and stage i `V_i / entrances` at a cost of `c_i` rounds each.
//! The error is least, for the work, where rounds go with `sqrt V` and entrances with `sqrt(V_i / c_i)`. There are as many
//! as keep the relative variance of an island below [`VARIANCE`], and no fewer than the plain chain needs to forget its
//! start.
//!
//! The pilot is a function of the seed. A poor one makes the islands slower and leaves them unbiased.

use super::TailError;
use super::island::{Course, Excursion, Island};

/// Relative variance of an island that is good enough: of 32 such islands a t interval makes sense.
const VARIANCE: f64 = 0.15;
/// Largest fraction of rounds at the first stage.
const FIRST: f64 = 0.1;
/// Least fraction of the rounds of a stage at the next.
const STEP: f64 = 0.2;
/// Excursions of each stage of the pilot.
const ENTRANCES: u64 = 64;
/// Fewest and most excursions of a stage of an island.
const FEWEST: f64 = 8.0;
const MOST: f64 = 4096.0;
/// Rounds of the plain chain in autocorrelation times: before it is looked at, and fewest after.
const BURN_IN: f64 = 5.0;
const ROUNDS: f64 = 20.0;
/// Fewest rounds of the plain chain.
const FEWEST_ROUNDS: f64 = 1024.0;
/// States kept in an autocorrelation time.
const STATES: f64 = 8.0;

/// Least relative variance of a round of the plain chain.
const LEAST_VARIANCE: f64 = 1e-6;

/// What the islands of a run have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) course: Course,
    /// Levels of the stages, ascending, and the excursions of each.
    pub(super) stages: Vec<(u64, u64)>,
}

impl Plan {
    /// The plan for the levels asked for, which ascend, of a chain that forgets its state in some `memory` rounds;
    /// `pilot` is an island of its own.
    pub(super) fn find(mut pilot: Island<'_>, levels: &[u64], memory: f64) -> Result<Self, TailError> {
        let (burn_in, every) = ((BURN_IN * memory).ceil() as u64, (memory / STATES).floor().max(1.0) as u64);
        let fewest_rounds = (ROUNDS * memory).max(FEWEST_ROUNDS).ceil();
        let course = |rounds: f64| Course { burn_in, rounds: rounds as u64, every };
        let highest = *levels.last().expect("a level is asked for");
        let all: Vec<u64> = (1..=highest).collect();
        let plain = pilot.plain(course(fewest_rounds), &all)?;
        let fractions: Vec<f64> =
            plain.visits.iter().map(|visits| visits.iter().sum::<u64>() as f64 / fewest_rounds).collect();
        let first = fractions.iter().position(|&fraction| fraction < FIRST).unwrap_or(all.len());
        let targets = all[first..].to_vec();

        // Relative variances for one round, or one entrance; and rounds that an entrance costs.
        let counted = levels.iter().filter(|&&k| k >= 1 && (k as usize) <= first).map(|&k| fractions[k as usize - 1]);
        let mut of_a_round = counted.map(|p| memory * (1.0 - p) / p).fold(0.0, f64::max);
        let mut stages: Vec<Climb> = Vec::new();
        if !targets.is_empty() {
            pilot.begin(plain, targets.clone());
            let bulk = pilot.masses(0).len();
            let (mut stage, mut fresh) = (0, bulk);
            loop {
                let level = targets[stage];
                let masses = pilot.masses(stage);
                let share = masses[..bulk].iter().sum::<f64>() / masses.iter().sum::<f64>();
                of_a_round = of_a_round.max(memory * share * share * relative_variance(&masses[..bulk]));

                let begun = pilot.rounds();
                let seen = pilot.stage(stage, ENTRANCES, Some(u64::MAX), &targets[stage..])?;
                if seen.excursions.is_empty() {
                    return Err(TailError::OutOfReach { level });
                }
                let cost = (pilot.rounds() - begun) as f64 / ENTRANCES as f64;
                pilot.thin(fresh, ENTRANCES)?;
                let rounds = |k: u64| {
                    let weighted = |of: &Excursion| of.weight * of.visits[(k - level) as usize] as f64;
                    seen.excursions.iter().map(weighted).collect::<Vec<f64>>()
                };
                let enough = STEP * rounds(level).iter().sum::<f64>();
                let reaches = |k: u64| rounds(k).iter().sum::<f64>() >= enough;
                let last = level == highest || reaches(highest);
                let next = (level + 1..=highest).rev().find(|&k| reaches(k)).unwrap_or(level + 1);
                let end = if last { highest + 1 } else { next };
                let asked = levels.iter().filter(|k| (level..end).contains(k));
                let mut variance = asked.map(|&k| relative_variance(&rounds(k))).fold(0.0, f64::max);
                if !last {
                    let next_stage = stage + (next - level) as usize;
                    let by_excursion = pilot.masses_by_excursion(&seen, next_stage);
                    let own: f64 = by_excursion.iter().sum();
                    let share = own / (own + pilot.masses(next_stage).iter().sum::<f64>());
                    variance = variance.max(share * share * relative_variance(&by_excursion));
                    fresh = pilot.add(seen.states, next);
                    stage = next_stage;
                }
                stages.push(Climb { level, cost, variance });
                if last {
                    break;
                }
            }
        }
        // A chain without any variance still needs a scale.
        let of_a_round = of_a_round.max(LEAST_VARIANCE);
        let sum: f64 = of_a_round.sqrt() + stages.iter().map(|s| (s.variance * s.cost).sqrt()).sum::<f64>();
        let scale = (fewest_rounds / of_a_round.sqrt()).max(sum / VARIANCE);
        let rounds = (scale * of_a_round.sqrt()).ceil().max(fewest_rounds);
        let entrances = |s: &Climb| (scale * (s.variance / s.cost).sqrt()).clamp(FEWEST, MOST).ceil() as u64;
        Ok(Self { course: course(rounds), stages: stages.iter().map(|s| (s.level, entrances(s))).collect() })
    }
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
