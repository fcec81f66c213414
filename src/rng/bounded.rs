//! Exactly uniform bin indices, several out of one 32-bit word where they fit.
//!
//! # Method
//! `m` indices below `n` come out of one word `w` by repeated multiply-shift: `w * n` is 64 bits wide, its high half is
//! an index and its low half feeds the next. The tuple is exactly uniform over the `n^m` possible ones once the words
//! whose final low half, `w * n^m mod 2^32`, lies below `2^32 mod n^m` are rejected (Lemire 2019 for m = 1;
//! Brackett-Rozinsky and Lemire 2024 for m > 1).
//!
//! # Packing rule
//! `m` is the largest number for which `n^m <= 2^32` and a word is rejected with probability at most 1/256; one index
//! to a word is always allowed. A ball never shares a word partly: either a word serves whole balls (at most
//! [`MAX_BALLS_PER_WORD`]), or a ball owns whole words (1, 2, or a multiple of 4, so that it never straddles Philox
//! blocks needlessly). The rule reads `n` and `d` alone and fixes the stream.
//!
//! # Rejection
//! The rejected word number `j` of a round is redrawn from counter item `j`, attempts 1, 2, .., 255 of four words each.
//! The last word is taken as it is; with a rejection probability of at most one half per word that has probability
//! below 2^-1020.
//!
//! # Bias
//! None, up to that bound.

use super::{Domain, Draws};

/// A word serves at most this many balls.
pub const MAX_BALLS_PER_WORD: u32 = 4;
/// Most choices a ball may have.
pub const MAX_CHOICES: u32 = 256;
/// Redraw attempts of four words each after a first rejection.
pub const MAX_ATTEMPTS: u8 = 255;
/// Packing is worth it while at most one word in `2^32 / MAX_REJECTED` is rejected.
const MAX_REJECTED: u64 = 1 << 24;

/// How the indices of a round's balls are laid out in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Number of bins, the bound of every index.
    pub bins: u32,
    /// Indices a ball needs (d).
    pub choices: u32,
    /// Indices taken out of one word.
    pub indices_per_word: u32,
    /// Balls served by one word; 1 where a ball owns `words_per_ball` words.
    pub balls_per_word: u32,
    /// Words owned by a ball: 1, 2 or a multiple of 4; 1 where `balls_per_word > 1`.
    pub words_per_ball: u32,
    /// `bins^indices_per_word` modulo 2^32.
    pub product: u32,
    /// A word `w` is rejected where `w * product mod 2^32` is below this.
    pub threshold: u32,
}

/// Words `w` rejected for `m` indices below `n`, or `None` where `n^m` exceeds 2^32.
fn rejected(n: u32, m: u32) -> Option<u64> {
    let tuples = u64::from(n).checked_pow(m).filter(|&t| t <= 1 << 32)?;
    Some((1u64 << 32) % tuples)
}

impl Packing {
    /// The layout for balls with `choices` indices each below `bins`.
    ///
    /// # Panics
    /// If `bins` is 0 or `choices` is not in `1..=MAX_CHOICES`; processes validate both.
    #[must_use]
    pub fn new(bins: u32, choices: u32) -> Self {
        assert!(bins > 0 && (1..=MAX_CHOICES).contains(&choices), "validated by the process");
        let fits = |m: u32| rejected(bins, m).is_some_and(|r| r <= MAX_REJECTED);
        let shared = (1..=MAX_BALLS_PER_WORD).rev().find(|&b| fits(b * choices));
        let (indices_per_word, balls_per_word, words_per_ball) = match shared {
            Some(balls) => (balls * choices, balls, 1),
            None => {
                let m = (1..choices).rev().find(|&m| fits(m)).unwrap_or(1);
                let words = choices.div_ceil(m);
                (m, 1, if words <= 2 { words } else { words.next_multiple_of(4) })
            }
        };
        let tuples = u64::from(bins).pow(indices_per_word);
        let threshold = ((1u64 << 32) % tuples) as u32;
        Self { bins, choices, indices_per_word, balls_per_word, words_per_ball, product: tuples as u32, threshold }
    }

    /// Words that the first `balls` balls of a round occupy.
    #[must_use]
    pub fn words(&self, balls: u64) -> u64 {
        balls.div_ceil(u64::from(self.balls_per_word)) * u64::from(self.words_per_ball)
    }

    /// Whether `word` must be redrawn.
    #[inline]
    #[must_use]
    pub fn rejects(&self, word: u32) -> bool {
        word.wrapping_mul(self.product) < self.threshold
    }

    /// What replaces the rejected word number `index` of the round.
    #[cold]
    #[must_use]
    pub fn redraw(&self, draws: &Draws, domain: Domain, index: u32) -> u32 {
        let mut word = 0;
        for attempt in 1..=MAX_ATTEMPTS {
            for candidate in draws.block(domain, attempt, index) {
                word = candidate;
                if !self.rejects(word) {
                    return word;
                }
            }
        }
        word
    }

    /// Calls `visit` with the `choices` indices of `ball`, in order.
    #[inline]
    pub fn indices(&self, draws: &Draws, domain: Domain, ball: u32, mut visit: impl FnMut(u32)) {
        let first = ball / self.balls_per_word * self.words_per_ball;
        let skip = ball % self.balls_per_word * self.choices;
        let mut left = self.choices;
        for index in first..first + self.words_per_ball {
            let mut word = draws.block(domain, 0, index / 4)[(index % 4) as usize];
            if self.rejects(word) {
                word = self.redraw(draws, domain, index);
            }
            let from = if index == first { skip } else { 0 };
            for position in 0..self.indices_per_word {
                let wide = u64::from(word) * u64::from(self.bins);
                word = wide as u32;
                if position >= from && left > 0 {
                    left -= 1;
                    visit((wide >> 32) as u32);
                }
            }
        }
    }
}

/// A number below `bound`, exactly uniform (Lemire 2019): of the words of block `item`, then of those of its attempts 1,
/// 2, .., [`MAX_ATTEMPTS`], the first that is not rejected, times `bound`, over 2^32. The last word is taken as it is, with
/// a probability below 2^-1020.
///
/// # Panics
/// If `bound` is 0.
#[must_use]
pub fn below(draws: &Draws, domain: Domain, item: u32, bound: u32) -> u32 {
    let threshold = bound.wrapping_neg() % bound;
    let mut wide = 0;
    for word in (0..=MAX_ATTEMPTS).flat_map(|attempt| draws.block(domain, attempt, item)) {
        wide = u64::from(word) * u64::from(bound);
        if wide as u32 >= threshold {
            break;
        }
    }
    (wide >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packing(n: u32, d: u32) -> (u32, u32, u32) {
        let p = Packing::new(n, d);
        (p.indices_per_word, p.balls_per_word, p.words_per_ball)
    }

    #[test]
    fn the_rule_gives_these_layouts() {
        // (indices a word, balls a word, words a ball): pinned, because they fix the stream.
        assert_eq!(packing(1, 2), (8, 4, 1));
        assert_eq!(packing(64, 1), (4, 4, 1));
        assert_eq!(packing(64, 2), (4, 2, 1));
        assert_eq!(packing(256, 2), (4, 2, 1));
        assert_eq!(packing(1000, 1), (2, 2, 1));
        assert_eq!(packing(1024, 1), (3, 3, 1));
        assert_eq!(packing(1024, 2), (2, 1, 1));
        assert_eq!(packing(1024, 5), (3, 1, 2));
        assert_eq!(packing(65_536, 2), (2, 1, 1));
        assert_eq!(packing(100_000, 1), (1, 1, 1));
        assert_eq!(packing(100_000, 2), (1, 1, 2));
        assert_eq!(packing(100_000, 3), (1, 1, 4));
        assert_eq!(packing(100_000, 5), (1, 1, 8));
        assert_eq!(packing((1 << 31) + 1, 2), (1, 1, 2));
    }

    #[test]
    fn accepted_words_give_every_tuple_equally_often() {
        // The words of tuple t are the w with floor(w * n^m / 2^32) = t: enumerate them for a few t.
        for (n, m) in [(3u32, 14u32), (1000, 2), (1625, 2), (2048, 2), (7, 7), ((1 << 31) + 1, 1), (4_000_000_000, 1)] {
            let tuples = u64::from(n).pow(m);
            let threshold = (1u128 << 32) % u128::from(tuples);
            let first = |t: u64| (u128::from(t) << 32).div_ceil(u128::from(tuples));
            for t in [0, 1, 2, tuples / 3, tuples / 2, tuples - 2, tuples - 1] {
                let accepted = (first(t)..first(t + 1)).filter(|w| (w * u128::from(tuples)) % (1 << 32) >= threshold);
                assert_eq!(accepted.count() as u128, (1u128 << 32) / u128::from(tuples), "n {n}, m {m}, tuple {t}");
            }
        }
    }

    #[test]
    fn rejection_is_common_just_above_a_power_of_two_and_the_result_is_uniform() {
        let p = Packing::new((1 << 31) + 1, 1);
        let draws = Draws::new(5, 0, 0);
        let (mut rejected, mut low) = (0u32, 0u32);
        let balls = 40_000;
        for ball in 0..balls {
            let word = draws.block(Domain::Choices, 0, ball / 4)[(ball % 4) as usize];
            rejected += u32::from(p.rejects(word));
            p.indices(&draws, Domain::Choices, ball, |i| {
                assert!(i < p.bins);
                low += u32::from(i < p.bins / 3);
            });
        }
        // Five standard deviations of Binomial(40000, 1/2) and Binomial(40000, 1/3): alpha below 1e-6 each.
        assert!((f64::from(rejected) - 20_000.0).abs() < 500.0, "rejected {rejected} of {balls}");
        assert!((f64::from(low) - 13_333.3).abs() < 471.5, "{low} of {balls} in the lower third");
    }

    #[test]
    fn choices_of_a_ball_do_not_depend_on_other_balls() {
        for (n, d) in [(2, 1), (64, 2), (1000, 3), (1024, 1), (1024, 2), (100_000, 5), (7, 20)] {
            let p = Packing::new(n, d);
            let draws = Draws::new(1, 2, 3);
            for ball in [0, 1, 2, 3, 17] {
                let mut seen = 0;
                p.indices(&draws, Domain::Choices, ball, |i| {
                    assert!(i < n);
                    seen += 1;
                });
                assert_eq!(seen, d);
            }
        }
    }
}
