//! The burn-in found by a pilot: rounds after which a run no longer shows its start.
//!
//! # Method
//! A few replicas run from the run's own start and, **with the same randomness**, from the two extremes: from `empty`
//! and from the overloaded start `each:H`, H being twice the mean load of the replicas from `empty` and one more
//! (chosen again as that load grows). What a start leaves behind is the difference from the same replica with another
//! start; what the randomness does is largely the same in both and drops out. With one choice the loads of two such
//! runs become equal bin by bin, as each bin has been empty once, and stay so.
//!
//! Rounds are divided into windows that end at 16, 24, 36, .. (each half as long again). In a window the starts *agree*
//! if for each extreme, for the max load, the total load and the numbers that the process observes beside, the t interval of the mean paired difference lies
//! within [`FRACTION`] of the mean from the run's own start. The intervals of a window hold together with confidence
//! [`CONFIDENCE`] (Bonferroni), so that neither a small pilot nor chance makes starts agree that differ by more. The
//! burn-in ends with the first window in which they agree, if they agree in the next one, too.
//!
//! Where no ball arrives or leaves, the extremes are `random:M` and `one-bin:M`, M being the number of balls of the start.
//!
//! A start is thus compared with both extremes: from `one-bin:1e6` the burn-in covers the draining of that bin.
//!
//! # Randomness
//! The pilot has the seed of the run and replica numbers from 2^32 - 1 downwards, which a run of fewer than
//! 2^32 - [`REPLICAS`] replicas does not use: the choice is independent of what it then sees, and follows from the
//! specification. It is computed on the CPU, whatever computes the run.

use super::{RunError, Schedule, Spec, SpecError};
use crate::backend::{self, BackendError, Control, Job, memory};
use crate::process::start::{MAX_START_LOAD, Start};
use crate::process::{MAX_BINS, Process};
use crate::stats::special::student;
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;

/// Differences below this fraction of the value are forgotten.
pub const FRACTION: f64 = 0.02;
/// Confidence of all comparisons of one window together.
pub const CONFIDENCE: f64 = 0.95;
/// Most replicas of a pilot.
pub const REPLICAS: u64 = 32;
/// Fewest replicas, where they have many bins and differ little.
const FEWEST_REPLICAS: u64 = 4;
/// Bins of all pilot replicas with one start, unless these are the fewest.
const PILOT_BINS: u64 = 1 << 24;
/// Rounds of the first window.
const FIRST_WINDOW: u64 = 16;

/// A burn-in and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurnIn {
    /// Rounds before sampling should begin.
    pub rounds: u64,
    /// Rounds of each replica of the pilot.
    pub pilot_rounds: u64,
    /// Replicas of the pilot, with each start.
    pub replicas: u64,
    /// The starts compared, that of the run first.
    pub starts: Vec<Start>,
}

impl BurnIn {
    /// Finds the burn-in of `spec`, whose own is not looked at.
    ///
    /// # Errors
    /// [`SpecError::StartShows`] where it would not be below the rounds of the run; [`RunError`] where the
    /// specification is refused or has too many bins, the memory does not suffice or `control` is cancelled.
    pub fn find(spec: &Spec, control: &Control) -> Result<Self, RunError> {
        spec.validate()?;
        let bins = spec.process.bins();
        if bins > MAX_BINS {
            return Err(SpecError::PilotBins(bins).into());
        }
        let start = spec.process.start();
        let mut pilots = vec![Pilot::new(spec, start.clone())?];
        // Of an open process the last of the others starts empty: its load decides how high the overloaded start is.
        let (least, most) = if spec.process.is_closed() {
            let balls = pilots[0].balls()?;
            (Start::Random(balls), Start::OneBin(balls))
        } else {
            (Start::Empty, Start::Each(1))
        };
        if *start != least {
            pilots.push(Pilot::new(spec, least)?);
        }
        pilots[0].require_memory(pilots.len() as u64 + 1)?;
        let (mut height, mut overloaded) = (1, Pilot::new(spec, most)?);
        let mut windows: Vec<Range<u64>> = Vec::new();
        let mut window = 0..FIRST_WINDOW;
        loop {
            pilots.iter_mut().try_for_each(|pilot| pilot.run(&window, control))?;
            let load = pilots.last().map_or(0, |empty| empty.twice_the_load(&window));
            let wanted = (load + 1).min(MAX_START_LOAD.into()) as u32;
            if !spec.process.is_closed() && wanted > height {
                (height, overloaded) = (wanted, Pilot::new(spec, Start::Each(wanted))?);
                windows.iter().try_for_each(|window| overloaded.run(window, control))?;
            }
            overloaded.run(&window, control)?;
            windows.push(window.clone());

            let extremes: Vec<&Pilot> = pilots[1..].iter().chain([&overloaded]).collect();
            let starts = || pilots.iter().chain([&overloaded]).map(|pilot| pilot.start.clone()).collect();
            let last = windows.len() - 1;
            if last > 0 && pilots[0].agrees(&extremes, last - 1) && pilots[0].agrees(&extremes, last) {
                let replicas = pilots[0].replicas.len() as u64;
                return Ok(Self { rounds: window.start, pilot_rounds: window.end, replicas, starts: starts() });
            }
            if window.end >= spec.schedule.rounds {
                let (rounds, pilot_rounds) = (spec.schedule.rounds, window.end);
                return Err(SpecError::StartShows { rounds, pilot_rounds, starts: listed(&starts()) }.into());
            }
            window = window.end..window.end + window.end / 2;
        }
    }
}

/// What was chosen, and from what.
impl fmt::Display for BurnIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, pilot_rounds, replicas, ref starts } = *self;
        write!(
            f,
            "{rounds} rounds: from then on to round {pilot_rounds} the max load and the total load from {} agree \
             within {} % in a pilot of {replicas} replicas",
            listed(starts),
            100.0 * FRACTION
        )
    }
}

fn listed(starts: &[Start]) -> String {
    starts.iter().map(Start::to_string).collect::<Vec<_>>().join(" and ")
}

/// The pilot replicas with one start.
struct Pilot {
    start: Start,
    process: Box<dyn Process>,
    seed: u64,
    schedule: Schedule,
    replicas: Vec<Replica>,
}

struct Replica {
    number: u32,
    loads: Vec<u32>,
    /// The sums over each window so far of the max load, of the total load and of the process's own numbers.
    sums: Vec<Vec<u128>>,
}

impl Pilot {
    fn new(spec: &Spec, start: Start) -> Result<Self, RunError> {
        let process = spec.process.with_start(start.clone()).build()?;
        let bins = process.bins();
        let count = (PILOT_BINS / u64::from(bins)).clamp(FEWEST_REPLICAS, REPLICAS) as u32;
        let numbers = (0..count).map(|i| u32::MAX - i);
        let replicas = numbers.map(|number| Replica { number, loads: Vec::new(), sums: Vec::new() }).collect();
        let schedule = Schedule { burn_in: 0, every: 1, loads_every: 0, ..spec.schedule };
        Ok(Self { start, process, seed: spec.seed, schedule, replicas })
    }

    /// Balls of a replica, which are the same number in each.
    fn balls(&self) -> Result<u32, SpecError> {
        let mut state = vec![0; self.process.words()];
        self.process.start(self.seed, u32::MAX, &mut state);
        let balls = state.iter().map(|&balls| u64::from(balls)).sum();
        u32::try_from(balls).ok().filter(|&balls| balls <= MAX_START_LOAD).ok_or(SpecError::PilotBalls(balls))
    }

    /// Refuses so many pilots that the machine has no room for.
    fn require_memory(&self, pilots: u64) -> Result<(), BackendError> {
        const RUNNER_BYTES: u64 = 8;
        let (bins, replicas) = (u64::from(self.process.bins()), self.replicas.len() as u64);
        let runners = replicas.min(rayon::current_num_threads() as u64);
        let what = format!("a pilot of {pilots} x {replicas} replicas of {bins} bins");
        let bytes = bins * (pilots * replicas * size_of::<u32>() as u64 + runners * RUNNER_BYTES);
        memory::require(what, bytes, "use fewer bins or a number for --burn-in")
    }

    /// Runs all replicas through the next window.
    fn run(&mut self, window: &Range<u64>, control: &Control) -> Result<(), BackendError> {
        let Self { process, seed, schedule, replicas, .. } = self;
        let job = Job { process: &**process, seed: *seed, schedule: *schedule, keep_loads: false };
        replicas.par_iter_mut().try_for_each_init(
            || job.process.runner(),
            |runner, Replica { number, loads, sums }| {
                if window.start == 0 {
                    *loads = vec![0; job.process.words()];
                    job.process.start(job.seed, *number, loads);
                }
                let seen = backend::advance(&job, &mut **runner, *number, loads, window.clone(), control)?;
                sums.push([seen.max_load.sum(), seen.total_load.sum].into_iter().chain(seen.further.sums()).collect());
                Ok(())
            },
        )
    }

    /// Twice the mean load of a bin in the last window, and the balls that are elsewhere at its end, rounded up.
    fn twice_the_load(&self, window: &Range<u64>) -> u64 {
        let (bins, rounds) = (self.process.bins(), u128::from(window.end - window.start));
        let elsewhere = |replica: &Replica| replica.loads[bins as usize..].iter().map(|&b| u128::from(b)).sum::<u128>();
        let balls = |replica: &Replica| Some(replica.sums.last()?[1] + elsewhere(replica) * rounds);
        let total: u128 = self.replicas.iter().filter_map(balls).sum();
        (2 * total).div_ceil(u128::from(bins) * self.replicas.len() as u128 * rounds) as u64
    }

    /// Whether all observables agree with those of all `others` in the window of this index.
    fn agrees(&self, others: &[&Pilot], index: usize) -> bool {
        let replicas = self.replicas.len() as f64;
        let observables = self.replicas[0].sums[index].len();
        let miss = (1.0 - CONFIDENCE) / (observables * others.len()) as f64;
        let quantile = student::upper_quantile(0.5 * miss, self.replicas.len() as u64 - 1);
        others.iter().all(|other| {
            (0..observables).all(|observable| {
                let sum = |replica: &Replica| replica.sums[index][observable];
                let pairs = || self.replicas.iter().map(sum).zip(other.replicas.iter().map(sum));
                let value = pairs().map(|(own, _)| own as f64).sum::<f64>() / replicas;
                let differences: Vec<f64> = pairs().map(|(own, other)| own as f64 - other as f64).collect();
                let mean = differences.iter().sum::<f64>() / replicas;
                let squares: f64 = differences.iter().map(|difference| (difference - mean) * (difference - mean)).sum();
                let error = (squares / (replicas * (replicas - 1.0))).sqrt();
                mean.abs() + quantile * error <= FRACTION * value
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::leaky::Parameters;
    use crate::process::{Measure, ProcessSpec};
    use crate::stats::PowerSums;
    use crate::stats::interval::{Confidence, Interval};

    fn spec(parameters: Parameters, rounds: u64) -> Spec {
        let schedule = Schedule { rounds, burn_in: 0, every: 1, loads_every: 0, measure: Measure::Post };
        Spec { process: ProcessSpec::Leaky(parameters), seed: 1, replicas: 1, schedule, stopping: None }
    }

    #[test]
    fn starts_agree_within_the_t_interval_of_their_differences() {
        let mut pilots = [1, 2].map(|h| Pilot::new(&spec(Parameters::default(), 1), Start::Each(h)).expect("valid"));
        let differences: Vec<u64> = (0..REPLICAS).map(|i| (i * i) % 11).collect();
        let values = |value: u128, offset: u64| vec![0, value + u128::from(offset)];
        let miss = 1.0 - (1.0 - CONFIDENCE) / 2.0;
        let mut sums = PowerSums::default();
        differences.iter().for_each(|&d| sums.add(d.into()));
        let interval = Interval::student(sums, Confidence::new(miss).expect("valid")).expect("they differ");
        // The interval ends at the bound for this value, and the next whole ones lie on either side of it.
        let border = interval.high / FRACTION;
        for (value, agree) in [(border.floor() as u128, false), (border.ceil() as u128, true)] {
            let [own, other] = &mut pilots;
            for ((a, b), &d) in own.replicas.iter_mut().zip(&mut other.replicas).zip(&differences) {
                (a.sums, b.sums) = (vec![values(value, 0)], vec![values(value, d)]);
            }
            assert_eq!(pilots[0].agrees(&[&pilots[1]], 0), agree, "value {value}");
        }
    }

    #[test]
    fn a_process_without_memory_needs_only_the_first_window() {
        for (n, lambda) in [(1, 0.5), (10, 0.0)] {
            let found =
                BurnIn::find(&spec(Parameters { n, lambda, d: 1, ..Default::default() }, 1000), &Control::default());
            assert!(found.expect("a burn-in").rounds <= 24, "n {n}");
        }
    }

    #[test]
    fn a_start_that_shows_to_the_end_is_refused_with_the_numbers() {
        let slow = spec(Parameters { n: 64, lambda: 0.99, d: 1, ..Default::default() }, 100);
        let said = BurnIn::find(&slow, &Control::default()).expect_err("2 / (1 - lambda)^2 is 20,000").to_string();
        for text in ["no burn-in below rounds = 100", "from empty and each:", "after 121 rounds; use more --rounds"] {
            assert!(said.contains(text), "{said}");
        }
        let cancelled = Control::default();
        cancelled.cancel();
        assert!(matches!(BurnIn::find(&slow, &cancelled), Err(RunError::Backend(BackendError::Cancelled))));
    }
}
