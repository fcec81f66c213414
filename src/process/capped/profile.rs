//! CAPPED(c, lambda) on profiles.
//!
//! The balls of one age are thrown uniformly on all bins, those that are full included, and what exceeds the capacity of a
//! bin goes back to the pool. A bin fills its places one after the other, so the bins in which place f went to a ball of
//! this age are those that have more than f balls after the throw, less those that had so many before.

use super::{AGES, Parameters};
use crate::process::start::Initial;
use crate::process::{Measure, ParameterError, profile_bins};
use crate::profile::{Balls, Profile, ProfileChain, State, Thrower, Total, Watch, one_choice_work};
use crate::rng::stream::Stream;
use crate::stats::{Flow, Further};

/// Most balls that compete in a round: whole numbers are exact in an `f64` up to here.
const MAX_COMPETING: u64 = 1 << 53;

/// The process with validated parameters.
#[derive(Clone, Debug)]
pub struct CappedProfile {
    bins: u64,
    capacity: u64,
    arrivals: Total,
    initial: Initial,
    initial_pool: Vec<u64>,
    drift: f64,
}

impl CappedProfile {
    /// Validates `parameters`.
    ///
    /// # Errors
    /// A parameter outside its range, or an unusable initial state.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let bins = profile_bins(parameters.n)?;
        parameters.check()?;
        let initial = parameters.initial(bins)?.for_profile(&parameters.start, bins)?;
        let initial_pool = parameters.initial_pool(bins)?;
        let waiting = parameters.most_waiting(&initial, &initial_pool);
        // Twice as many arrive as there are bins with a probability below 2^-64.
        if waiting.saturating_add(2 * bins) > MAX_COMPETING {
            let reason = format!("{waiting} balls wait, and those of a round are counted in 53 bits");
            let remedy = "use a smaller start or fewer bins";
            return Err(ParameterError::Start { start: parameters.start.to_string(), reason, remedy });
        }
        let arrivals = parameters.arrivals.total(parameters.lambda, bins);
        let capacity = parameters.c.finite().unwrap_or(u64::MAX);
        Ok(Self { bins, capacity, arrivals, initial, initial_pool, drift: 1.0 - parameters.lambda })
    }
}

impl ProfileChain for CappedProfile {
    fn bins(&self) -> u64 {
        self.bins
    }

    fn start(&self, stream: &mut Stream, thrower: &mut Thrower) -> State {
        let (mut bins, mut elsewhere) = (self.initial.profile(self.bins, stream, thrower), self.initial_pool.clone());
        elsewhere[0] += bins.cap(self.capacity);
        State { bins, elsewhere }
    }

    fn round(&self, stream: &mut Stream, thrower: &mut Thrower, state: &mut State, watch: &mut Watch<'_>) -> Flow {
        let State { bins, elsewhere: pool } = state;
        let new = self.arrivals.draw(stream);
        let mut arrived = 0;
        let oldest = pool.iter().rposition(|&balls| balls > 0).map_or(0, |i| i + 1);
        for age in (0..=oldest).rev() {
            let balls = if age == 0 { new } else { Balls::Exactly(std::mem::take(&mut pool[age - 1])) };
            let before = watch.further.is_some().then(|| bins.clone());
            let thrown = thrower.throw(stream, bins, balls, |_, _| 1.0);
            pool[age.min(AGES - 1)] += bins.cap(self.capacity);
            if let (Some(further), Some(before)) = (&mut watch.further, before) {
                count_places(&before, bins, age as u64, further);
            }
            arrived = thrown;
        }
        (watch.loads)(Measure::Pre, bins);
        let departed = bins.serve();
        (watch.loads)(Measure::Post, bins);
        if let Some(further) = &mut watch.further {
            further.number(0, pool.iter().sum());
        }
        Flow { arrived: arrived.into(), departed: departed.into() }
    }

    fn round_work(&self) -> f64 {
        one_choice_work(self.bins.min(self.capacity), self.drift)
    }
}

/// Counts age plus place for every place that was filled between `before` and `after`.
fn count_places(before: &Profile, after: &Profile, age: u64, further: &mut Further) {
    let (mut had, mut have) = (before.levels().iter().peekable(), after.levels().iter().peekable());
    // Bins with more than the loads passed so far.
    let (mut more_before, mut more_after) = (before.bins(), after.bins());
    let mut place = 0;
    loop {
        let next = [had.peek(), have.peek()].into_iter().flatten().map(|level| level.load).min();
        let Some(load) = next else { break };
        if more_after > more_before {
            (place..load).for_each(|place| further.count(0, age + place, (more_after - more_before).into()));
        }
        place = load;
        more_before -= had.next_if(|level| level.load == load).map_or(0, |level| level.bins);
        more_after -= have.next_if(|level| level.load == load).map_or(0, |level| level.bins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Level;

    #[test]
    fn places_are_those_between_the_loads() {
        let profile = |levels: &[(u64, u64)]| Profile::new(levels.iter().map(|&(load, bins)| Level { load, bins }));
        // Two bins from 0 to 2 and one to 1, one from 7 to 9; the bins with 4 balls rest.
        let (before, after) = (profile(&[(0, 5), (4, 3), (7, 1)]), profile(&[(0, 2), (1, 1), (2, 2), (4, 3), (9, 1)]));
        let (mut seen, mut meant) = (Further::default(), Further::default());
        count_places(&before, &after, 10, &mut seen);
        for (value, count) in [(10, 3), (11, 2), (17, 1), (18, 1)] {
            meant.count(0, value, count);
        }
        assert_eq!(seen, meant);
    }
}
