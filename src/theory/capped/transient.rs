//! CAPPED(c, lambda) after any round, in the limit of many bins.
//!
//! The bins ask independently of each other: with `m = lambda + pool` balls competing for each bin, each is asked by
//! Poisson(`m`) of them, and the pool of the next round is what they reject. This is the map whose fixed point is the
//! stationary state.

use super::{MAX_CAPACITY, rejected};
use crate::process::capped::{Capacity, Parameters};
use crate::process::leaky::Arrivals;
use crate::process::start::{Initial, Start};
use crate::process::{Measure, Model};
use crate::theory::arrivals::{ArrivalLaw, beyond, poisson};
use crate::theory::leaky::{self};
use crate::theory::marginal::Marginal;
use crate::theory::population::Population;
use crate::theory::{Basis, Expected, Prediction, TheoryError, When, check_bins};

/// More balls competing for each bin than this: their Poisson law begins below the smallest `f64`.
const MOST_COMPETING: f64 = 600.0;

const CROWDED: &str = "the state after a round, with more than 600 balls a bin in the pool,";

/// Predicts the loads and the max load; the start matters for [`When::Round`] only.
///
/// # Errors
/// [`TheoryError`] says what is refused or unknown, why, and what to do.
pub fn predict(parameters: &Parameters, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
    let (round, c) = match (when, parameters.c) {
        (_, Capacity::Infinite) => {
            // Nobody waits but in a bin: for as many rounds, on average, as there are balls for each that arrives.
            let bins = parameters.as_leaky();
            let mut further = vec![("pool", 0.0)];
            if when == When::Stationary && parameters.lambda > 0.0 {
                let load = leaky::predict(&bins, when, Measure::Post)?.bins.mean_load();
                further.push(("waiting_time", load / parameters.lambda));
            }
            return Ok(Prediction { bounds: None, further, ..leaky::predict(&bins, when, measure)? });
        }
        (When::Stationary, c) => return super::stationary(parameters.n, c.finite(), parameters.lambda, measure),
        (When::Round(round), c) => (round, c),
    };
    if round == 0 && measure == Measure::Pre {
        return Err(TheoryError::NoRound);
    }
    let mut way = Way::new(parameters, c)?;
    for _ in 0..round {
        way.step()?;
    }
    let (bins, further) = (way.bins(measure), vec![("pool", way.pool * way.n)]);
    let (load_basis, max_basis) = (Basis::MeanField, Basis::IndependentBins);
    Ok(Prediction { bins, load_basis, max_basis, bounds: None, further })
}

/// The means at the end of each of `rounds`, which ascend; `None` from the first one on that is more than `budget`
/// operations away.
///
/// # Errors
/// [`TheoryError`] where they are not known.
pub fn trajectory(
    parameters: &Parameters,
    rounds: &[u64],
    mut budget: f64,
) -> Result<Vec<Option<Expected>>, TheoryError> {
    if parameters.c == Capacity::Infinite {
        return leaky::trajectory(&parameters.as_leaky(), rounds, budget);
    }
    let mut way = Way::new(parameters, parameters.c)?;
    let mut known = Vec::with_capacity(rounds.len());
    for &round in rounds {
        while way.round < round && budget >= 0.0 {
            budget -= way.work();
            way.step()?;
        }
        known.push((budget >= 0.0).then(|| way.expected()));
    }
    Ok(known)
}

/// Rounds after which the start is surely forgotten, rounded up to two digits: a surplus of balls drains at 1 - lambda
/// for each bin, and the rest relaxes within some autocorrelation times.
///
/// # Errors
/// lambda = 1, and an unusable start.
pub fn recovery_rounds(parameters: &Parameters) -> Result<u64, TheoryError> {
    let gap = 1.0 - parameters.lambda;
    if gap == 0.0 {
        return Err(TheoryError::NoStationaryLaw);
    }
    let time = parameters.autocorrelation_rounds();
    let start = if parameters.c == Capacity::Infinite {
        leaky::recovery_rounds(&parameters.as_leaky())? as f64
    } else {
        let way = Way::new(parameters, parameters.c)?;
        (way.bins(Measure::Post).mean_load() + way.pool) / gap
    };
    let rounds = (start + 20.0 * time).ceil() as u64;
    let unit = 10u64.pow(rounds.max(1).ilog10().saturating_sub(1));
    Ok(rounds.div_ceil(unit).saturating_mul(unit))
}

/// The bins on their way from the start.
struct Way {
    lambda: f64,
    n: f64,
    c: usize,
    /// Groups of bins that started alike: their number, and the laws of the load before and after the deletions.
    groups: Vec<(f64, Vec<f64>, Vec<f64>)>,
    /// Balls in the pool, for each bin.
    pool: f64,
    round: u64,
}

impl Way {
    fn new(parameters: &Parameters, c: Capacity) -> Result<Self, TheoryError> {
        check_bins(parameters.n)?;
        parameters.check()?;
        let Some(c) = c.finite().filter(|&c| c <= MAX_CAPACITY) else {
            return Err(unknown("the state after a round, for c > 2^14,"));
        };
        let n = parameters.n;
        if matches!(parameters.start, Start::File(_)) && n > crate::process::MAX_BINS {
            return Err(TheoryError::FileBins { n });
        }
        let bins = n as f64;
        let laws = match parameters.initial(n)? {
            Initial::Same(h) => vec![(bins, vec![(h, 1.0)])],
            Initial::OneBin(h) => vec![(1.0, vec![(h, 1.0)]), (bins - 1.0, vec![(0, 1.0)])],
            Initial::Random(h) if f64::from(h) > MOST_COMPETING * bins => return Err(unknown(CROWDED)),
            Initial::Random(h) => {
                let law = ArrivalLaw::one_bin(Arrivals::Fixed, n, f64::from(h) / bins).probabilities();
                vec![(bins, (0..).zip(law).collect())]
            }
            Initial::Independent(law) => vec![(bins, (law.first()..).zip(law.probabilities()).collect())],
            Initial::Loads(loads) => vec![(bins, loads.into_iter().map(|load| (load, 1.0 / bins)).collect())],
        };
        let mut pool = parameters.initial_pool(n)?.iter().map(|&balls| balls as f64).sum::<f64>() / bins;
        // What exceeds c waits.
        let mut capped = |(of, law): (f64, Vec<(u32, f64)>)| {
            let mut within = vec![0.0; 1];
            for (load, p) in law {
                let kept = u64::from(load).min(c);
                pool += of / bins * p * (u64::from(load) - kept) as f64;
                within.resize(within.len().max(kept as usize + 1), 0.0);
                within[kept as usize] += p;
            }
            (of, within.clone(), within)
        };
        let groups: Vec<_> = laws.into_iter().filter(|(bins, _)| *bins > 0.0).map(&mut capped).collect();
        Ok(Self { lambda: parameters.lambda, n: bins, c: c as usize, groups, pool, round: 0 })
    }

    fn step(&mut self) -> Result<(), TheoryError> {
        let competing = self.lambda + self.pool;
        if competing > MOST_COMPETING {
            return Err(unknown(CROWDED));
        }
        let asked = poisson(competing);
        let tail = beyond(&asked);
        let c = self.c;
        let mut pool = 0.0;
        for (bins, before, after) in &mut self.groups {
            pool += *bins / self.n * rejected(after, c, &tail);
            *before = vec![0.0; (after.len() + asked.len() - 1).min(c + 1)];
            for (load, p) in after.iter().enumerate() {
                for (k, q) in asked.iter().enumerate().take_while(|(k, _)| load + k < c) {
                    before[load + k] += p * q;
                }
                // P(asked >= c - load); a bin that is full stays full.
                let full = if load == c { 1.0 } else { tail.get(c - load - 1).copied().unwrap_or(0.0) };
                if let Some(at) = before.get_mut(c) {
                    *at += p * full;
                }
            }
            *after = before[1..].to_vec();
            after.resize(after.len().max(1), 0.0);
            after[0] += before[0];
        }
        self.pool = pool;
        self.round += 1;
        Ok(())
    }

    /// About how many operations the next round takes.
    fn work(&self) -> f64 {
        let competing = self.lambda + self.pool;
        let support = competing + 40.0 * competing.sqrt() + 150.0;
        self.groups.iter().map(|(_, _, after)| after.len() as f64 * support).sum()
    }

    fn bins(&self, measure: Measure) -> Population {
        let law = |before: &Vec<f64>, after: &Vec<f64>| {
            Marginal::new(0, if measure == Measure::Pre { before.clone() } else { after.clone() }, None)
        };
        Population::new(self.groups.iter().map(|(bins, before, after)| (*bins, law(before, after))).collect())
    }

    fn expected(&self) -> Expected {
        let bins = self.bins(Measure::Post);
        Expected { mean_max: bins.mean_max(), mean_total: (bins.mean_load() + self.pool) * self.n }
    }
}

fn unknown(question: &'static str) -> TheoryError {
    TheoryError::Unknown { process: "capped", question, remedy: "simulate it" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::capped::{MeanField, SmallCapped};

    fn parameters(n: u64, c: u64, lambda: f64) -> Parameters {
        Parameters { n, c: Capacity::Finite(c), lambda, ..Parameters::default() }
    }

    #[test]
    fn the_way_ends_in_the_stationary_state() {
        for (c, lambda, start) in [(1, 0.75, Start::Empty), (2, 0.9, Start::Each(7)), (5, 0.95, Start::Random(20_000))]
        {
            let parameters = Parameters { start, ..parameters(1000, c, lambda) };
            let mut way = Way::new(&parameters, Capacity::Finite(c)).expect("a way");
            for _ in 0..4000 {
                way.step().expect("a step");
            }
            let law = MeanField::new(Some(c), lambda).expect("a law");
            assert!((way.pool / law.pool() - 1.0).abs() < 1e-12, "c {c}: {} for {}", way.pool, law.pool());
            for k in 0..c {
                let (seen, meant) = (way.bins(Measure::Post).load_exceedance(k), law.load().exceedance(k));
                assert!((seen - meant).abs() < 1e-13, "c {c}, load {k}: {seen} for {meant}");
            }
        }
    }

    /// The mean field is the limit of the exact chains: their difference at round 3 halves with 1/n.
    #[test]
    fn few_bins_approach_the_way() {
        let limit = |n| {
            let mut way = Way::new(&parameters(n, 2, 0.75), Capacity::Finite(2)).expect("a way");
            (0..3).for_each(|_| way.step().expect("a step"));
            way.pool
        };
        let off: Vec<f64> = [4u64, 8, 16]
            .iter()
            .map(|&n| {
                let chain = SmallCapped::new(n, 2, 0.75, Arrivals::Fixed, 3 * n as u32).expect("a small chain");
                let law = &chain.at_rounds(&[3])[0];
                let pool: f64 = law.pool.iter().zip(0..).map(|(p, k)| p * f64::from(k)).sum();
                n as f64 * (limit(n) - pool / n as f64)
            })
            .collect();
        assert!(off.windows(2).all(|pair| (pair[0] / pair[1] - 1.0).abs() < 0.15), "n times the error: {off:?}");
    }

    #[test]
    fn the_first_round_is_a_throw() {
        let law = predict(&parameters(1000, 2, 0.5), When::Round(1), Measure::Pre).expect("a prediction").bins;
        let p = poisson(0.5);
        assert!((law.empty_fraction() - p[0]).abs() < 1e-15);
        assert!((law.load_exceedance(2) - (1.0 - p[0] - p[1])).abs() < 1e-15);
        assert_eq!(law.load_exceedance(3), 0.0);
        let full = Parameters { start: Start::Each(2), ..parameters(10, 2, 0.5) };
        let law = predict(&full, When::Round(1), Measure::Post).expect("a prediction").bins;
        assert_eq!((law.load_exceedance(1), law.load_exceedance(2)), (1.0, 0.0));
    }
}
