//! Rounds of the leaky bins that are made to raise a bin to a level, on profiles and bin by bin.

use super::profile::weight;
use super::{Leaky, LeakyProfile};
use crate::process::TailBins;
use crate::profile::{Balls, CountTail, Level, Profile, TailChain, Throw, Thrower, Total};
use crate::rng::stream::Stream;

/// The throw and the deletions of a round of `bins` bins.
fn throw(balls: Total, bins: u64, d: u32) -> Throw<impl Fn(u64, u64) -> f64> {
    Throw { balls, weight: move |at_least, above| weight(bins, d, at_least, above), deleted: 1 }
}

impl TailChain for LeakyProfile {
    fn expected_reaching(&self, counts: &mut CountTail, profile: &Profile, levels: &[u64], expected: &mut Vec<f64>) {
        throw(self.arrivals, self.bins, self.d).expected_reaching(counts, profile, levels, expected);
    }

    fn force(
        &self,
        stream: &mut Stream,
        thrower: &mut Thrower,
        counts: &mut CountTail,
        profile: &mut Profile,
        level: u64,
    ) {
        throw(self.arrivals, self.bins, self.d).force(stream, thrower, counts, profile, level);
    }
}

impl Leaky {
    fn throw(&self) -> Throw<impl Fn(u64, u64) -> f64> {
        throw(self.total, self.bins.into(), self.packing.choices)
    }

    /// Throws `balls` balls that see `loads`, none of them into the bin `barred`; returns how many join each bin.
    fn joining(&self, stream: &mut Stream, loads: &[u32], balls: u64, barred: Option<usize>) -> Vec<u32> {
        let mut joined = vec![0; loads.len()];
        for _ in 0..balls {
            let bin = loop {
                let mut best = stream.below(self.bins.into()) as usize;
                for _ in 1..self.packing.choices {
                    let bin = stream.below(self.bins.into()) as usize;
                    if loads[bin] < loads[best] {
                        best = bin;
                    }
                }
                // A ball of another bin has the law of a ball that happens not to join this one.
                if barred != Some(best) {
                    break best;
                }
            };
            joined[bin] += 1;
        }
        joined
    }
}

/// Every bin gets its balls and deletes one.
fn serve(loads: &mut [u32], joined: &[u32]) {
    for (load, joined) in loads.iter_mut().zip(joined) {
        *load = (*load + joined).saturating_sub(1);
    }
}

/// The numbers of bins of each of `loads`.
fn profile(loads: &[u32]) -> Profile {
    Profile::new(loads.iter().map(|&load| Level { load: load.into(), bins: 1 }))
}

impl TailBins for Leaky {
    fn advance(&self, stream: &mut Stream, loads: &mut [u32]) {
        let balls = self.arrivals.draw(stream.bits());
        let joined = self.joining(stream, loads, balls.into(), None);
        serve(loads, &joined);
    }

    fn expected_reaching(&self, counts: &mut CountTail, loads: &[u32], levels: &[u64], expected: &mut Vec<f64>) {
        self.throw().expected_reaching(counts, &profile(loads), levels, expected);
    }

    fn force(&self, stream: &mut Stream, thrower: &mut Thrower, counts: &mut CountTail, loads: &mut [u32], level: u64) {
        let raised = self.throw().raise(stream, counts, &profile(loads), level);
        let place = stream.below(raised.among.bins) as usize;
        let alike = loads.iter().enumerate().filter(|(_, load)| u64::from(**load) == raised.among.load);
        let (bin, _) = { alike }.nth(place).expect("so many bins have this load");
        let others = match raised.others {
            Balls::Exactly(balls) => balls,
            Balls::Poisson(mean) => thrower.number(stream, mean, self.bins.into()),
        };
        let mut joined = self.joining(stream, loads, others, Some(bin));
        joined[bin] = raised.balls as u32;
        serve(loads, &joined);
    }
}
