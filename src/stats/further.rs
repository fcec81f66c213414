//! What is seen of the observables that a process has beside those of all processes.
//!
//! They are told apart by their places among those of their kind, in the order in which the process lists them; what they
//! mean nobody needs to know here.

use super::{Histogram, Moments, Series};

/// What was seen in some rounds of ONE replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Further {
    /// Never ends in one without values, so that equal ones are equal values.
    numbers: Vec<Moments>,
    /// Neither does this.
    histograms: Vec<Histogram>,
}

impl Further {
    /// Records the value of a sampled round of number `place`, counted from 0 among the numbers of the process.
    pub fn number(&mut self, place: usize, value: u64) {
        at(&mut self.numbers, place).add(value);
    }

    /// Records the values of number `place` in some sampled rounds.
    pub fn numbers(&mut self, place: usize, values: &Moments) {
        if values.count > 0 {
            at(&mut self.numbers, place).merge(values);
        }
    }

    /// Counts `value` another `count` times in histogram `place`, counted from 0 among those of the process.
    pub fn count(&mut self, place: usize, value: u64, count: u128) {
        if count > 0 {
            at(&mut self.histograms, place).add(value, count);
        }
    }

    /// The numbers by their places, as far as there are samples.
    pub fn each_number(&self) -> impl Iterator<Item = Moments> {
        self.numbers.iter().copied()
    }

    /// The histograms by their places, as far as a value was counted.
    pub fn each_histogram(&self) -> impl Iterator<Item = &Histogram> {
        self.histograms.iter()
    }

    /// Sums of the numbers, as far as there are samples.
    pub fn sums(&self) -> impl Iterator<Item = u128> {
        self.numbers.iter().map(|values| values.sum)
    }

    /// Adds what was seen in other rounds of the same replica.
    ///
    /// # Panics
    /// If a sum passes its integer.
    pub fn merge(&mut self, other: &Further) {
        for (place, more) in other.numbers.iter().enumerate() {
            at(&mut self.numbers, place).merge(more);
        }
        for (place, more) in other.histograms.iter().enumerate() {
            at(&mut self.histograms, place).merge(more);
        }
    }
}

/// What was seen of some replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FurtherTally {
    /// The numbers, as far as there are samples.
    pub numbers: Vec<Series>,
    /// The histograms, as far as a value was counted.
    pub histograms: Vec<Histogram>,
}

impl FurtherTally {
    /// Adds one replica.
    ///
    /// # Panics
    /// If a sum passes its integer.
    pub fn add(&mut self, replica: &Further) {
        for (place, samples) in replica.numbers.iter().enumerate() {
            at(&mut self.numbers, place).add(samples);
        }
        for (place, counts) in replica.histograms.iter().enumerate() {
            at(&mut self.histograms, place).merge(counts);
        }
    }

    /// Adds other replicas.
    ///
    /// # Panics
    /// If a sum passes its integer.
    pub fn merge(&mut self, other: &FurtherTally) {
        for (place, more) in other.numbers.iter().enumerate() {
            at(&mut self.numbers, place).merge(more);
        }
        for (place, more) in other.histograms.iter().enumerate() {
            at(&mut self.histograms, place).merge(more);
        }
    }

    /// Whether every sum stays within its integer when `other` is merged.
    pub(super) fn can_merge(&self, other: &FurtherTally) -> bool {
        self.numbers.iter().zip(&other.numbers).all(|(a, b)| a.can_merge(b))
            && self.histograms.iter().zip(&other.histograms).all(|(a, b)| a.can_merge(b))
    }
}

/// The entry at `place`, made if it is not there.
fn at<T: Clone + Default>(entries: &mut Vec<T>, place: usize) -> &mut T {
    if place >= entries.len() {
        entries.resize(place + 1, T::default());
    }
    &mut entries[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_any_order_make_the_same_whole() {
        let round = |numbers: &[(usize, u64)], counts: &[(usize, u64, u128)]| {
            let mut seen = Further::default();
            numbers.iter().for_each(|&(place, value)| seen.number(place, value));
            counts.iter().for_each(|&(place, value, count)| seen.count(place, value, count));
            seen
        };
        let parts = [
            round(&[(0, 7), (1, 2)], &[(0, 3, 4)]),
            round(&[(0, 1), (1, 9)], &[(1, 0, 1), (0, 3, 0)]),
            round(&[(0, 0), (1, 0)], &[]),
        ];
        let mut whole = round(&[(0, 7), (1, 2), (0, 1), (1, 9), (0, 0), (1, 0)], &[(1, 0, 1), (0, 3, 4)]);
        let mut merged = Further::default();
        parts.iter().rev().for_each(|part| merged.merge(part));
        assert_eq!(merged, whole);
        whole.count(5, 1, 0);
        assert_eq!(merged, whole, "nothing was counted");

        let mut tallies = [FurtherTally::default(), FurtherTally::default()];
        parts.iter().for_each(|part| tallies[0].add(part));
        for part in &parts {
            let mut one = FurtherTally::default();
            one.add(part);
            assert!(tallies[1].can_merge(&one));
            tallies[1].merge(&one);
        }
        assert_eq!(tallies[0], tallies[1]);
        assert_eq!(tallies[0].numbers[1].replicas.sum_squares, 4 + 81);
        assert_eq!(tallies[0].histograms[0].count(3), 4);
    }
}
