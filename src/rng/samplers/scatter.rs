//! Few balls in many bins, in time that grows with their collisions and not with their number.

use super::binomial;
use crate::rng::stream::Stream;

/// Throws `balls` balls into `bins` bins, each uniformly at random, and calls `visit` with each number k >= 1 of balls
/// that some bin got and how many bins did.
///
/// # Method
/// Let the bins hit so far be numbered 0, 1, .. in the order of their first ball. A ball draws a number below `bins`: it
/// joins the bin of that number if there is one, and is the first of its bin otherwise. Of `balls` balls only those that
/// draw a number below min(balls, bins) can join another; their number is binomial, their places in the sequence are
/// uniformly random, and the other balls need no look. Exact. Takes about balls^2 / bins steps.
pub fn scatter(stream: &mut Stream, balls: u64, bins: u64, visit: &mut impl FnMut(u64, u64)) {
    if bins == 1 || balls <= 1 {
        if balls > 0 {
            visit(balls, 1);
        }
        return;
    }
    let mut joined = joining(stream, balls, bins);
    joined.sort_unstable();
    let hit = balls - joined.len() as u64;
    let mut alone = hit;
    let mut first = 0;
    while first < joined.len() {
        let same = joined[first..].iter().take_while(|&&bin| bin == joined[first]).count();
        alone -= 1;
        visit(1 + same as u64, 1);
        first += same;
    }
    if alone > 0 {
        visit(1, alone);
    }
}

/// For each ball that joins a bin that was hit before, the number of that bin.
fn joining(stream: &mut Stream, balls: u64, bins: u64) -> Vec<u64> {
    let mut joined = Vec::new();
    let bound = balls.min(bins);
    // Where many balls draw so low, or there are few of them, all are looked at.
    if balls < 16 || bound > bins / 4 {
        for ball in 0..balls {
            let label = stream.below(bins);
            if label < ball - joined.len() as u64 {
                joined.push(label);
            }
        }
        return joined;
    }
    let low = binomial(stream, balls, bound as f64 / (bins - bound) as f64);
    let mut places: Vec<u64> = Vec::with_capacity(low as usize);
    while (places.len() as u64) < low {
        let place = stream.below(balls);
        if let Err(slot) = places.binary_search(&place) {
            places.insert(slot, place);
        }
    }
    for place in places {
        let label = stream.below(bound);
        if label < place - joined.len() as u64 {
            joined.push(label);
        }
    }
    joined
}
