//! The structs that host and device share: `shaders/bindings.wgsl` has the same, and a test compares the offsets.

use crate::stats::Moments;
use bytemuck::{Pod, Zeroable};

/// One submission; see the shader for the meaning of each word.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[allow(missing_docs, reason = "documented in shaders/bindings.wgsl, whose names these are")]
pub struct Run {
    pub key_low: u32,
    pub key_high: u32,
    pub round_low: u32,
    pub round_high: u32,
    pub first_replica: u32,
    pub replicas: u32,
    pub rounds: u32,
    pub first_sample: u32,
    pub every: u32,
    pub first_loads: u32,
    pub loads_every: u32,
}

/// A replica's state beside its loads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[allow(missing_docs, reason = "documented in shaders/bindings.wgsl, whose names these are")]
pub struct State {
    pub total_low: u32,
    pub total_high: u32,
    pub occupied: u32,
    pub oldest: u32,
    pub balls: u32,
    pub flags: u32,
    pub departed: u32,
    pub empty: u32,
    pub highest: u32,
    pub replica: u32,
    pub ahead: u32,
}

/// Power sums in words, lowest first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[allow(missing_docs, reason = "documented in shaders/bindings.wgsl, whose names these are")]
pub struct MomentWords {
    pub sum_0: u32,
    pub sum_1: u32,
    pub sum_2: u32,
    pub squares_0: u32,
    pub squares_1: u32,
    pub squares_2: u32,
    pub squares_3: u32,
    pub squares_4: u32,
    pub largest_low: u32,
    pub largest_high: u32,
    pub complement_low: u32,
    pub complement_high: u32,
}

/// What a replica did during one submission.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[allow(missing_docs, reason = "documented in shaders/bindings.wgsl, whose names these are")]
pub struct Seen {
    pub rounds: u32,
    pub samples: u32,
    pub arrived_low: u32,
    pub arrived_high: u32,
    pub departed_low: u32,
    pub departed_high: u32,
    pub total_load: MomentWords,
    pub empty_bins: MomentWords,
    pub elsewhere: MomentWords,
}

/// A number from its two words.
pub(super) fn join_words(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl MomentWords {
    /// The sums as numbers; `count` samples were added.
    ///
    /// # Panics
    /// If the squares pass 2^128: the host's own sums would overflow there too.
    pub(super) fn moments(&self, count: u32) -> Moments {
        if count == 0 {
            return Moments::default();
        }
        assert_eq!(self.squares_4, 0, "a sum of squares stays below 2^128");
        let wide = |low, high| u128::from(high) << 64 | u128::from(low);
        Moments {
            count: u64::from(count),
            sum: wide(join_words(self.sum_0, self.sum_1), u64::from(self.sum_2)),
            sum_squares: wide(join_words(self.squares_0, self.squares_1), join_words(self.squares_2, self.squares_3)),
            min: !join_words(self.complement_low, self.complement_high),
            max: join_words(self.largest_low, self.largest_high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_the_moments_they_hold() {
        let words = MomentWords {
            sum_0: 1,
            sum_1: 2,
            sum_2: 3,
            squares_0: 4,
            squares_1: 5,
            squares_2: 6,
            squares_3: 7,
            largest_low: 8,
            largest_high: 9,
            complement_low: !10,
            complement_high: !11,
            ..MomentWords::default()
        };
        let expected = Moments {
            count: 5,
            sum: 3 << 64 | 2 << 32 | 1,
            sum_squares: 7 << 96 | 6 << 64 | 5 << 32 | 4,
            min: 11 << 32 | 10,
            max: 9 << 32 | 8,
        };
        assert_eq!(words.moments(5), expected);
        assert_eq!(MomentWords::default().moments(0), Moments::default());
    }
}
