//! Numbers one after another: what samplers of any appetite read.
//!
//! A stream is the blocks 0, 1, 2, .. of one domain of one replica and round. A 64-bit number is two words, low word
//! first; where the next is read from depends on the numbers read before it in the same round and on nothing else, so
//! that a round is the same on any thread, in any block and after any other round.

use super::lanes::{Keys, Lanes};
use super::{Domain, Draws};

/// Blocks computed at a time.
const BLOCKS: usize = 16;

/// A reader of one round's numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    lanes: Lanes,
    keys: Keys,
    /// Counter of the next blocks to compute.
    counter: [u32; 4],
    words: [u32; 4 * BLOCKS],
    /// Words of `words` that were read.
    used: usize,
}

impl Stream {
    /// The numbers of `domain` in `draws`, from the first.
    #[must_use]
    pub fn new(draws: &Draws, domain: Domain) -> Self {
        let words = [0; 4 * BLOCKS];
        let used = words.len();
        Self { lanes: Lanes::best(), keys: Keys::new(draws.key()), counter: draws.counter(domain, 0, 0), words, used }
    }

    /// Goes to the first number of `domain` in `draws`, which has the seed that this stream was made with.
    pub fn restart(&mut self, draws: &Draws, domain: Domain) {
        self.counter = draws.counter(domain, 0, 0);
        self.used = self.words.len();
    }

    /// 64 uniform bits.
    ///
    /// # Panics
    /// After 2^33 numbers of a round: minutes of work that no round makes.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.used == self.words.len() {
            self.refill();
        }
        let pair = [self.words[self.used], self.words[self.used + 1]];
        self.used += 2;
        u64::from(pair[1]) << 32 | u64::from(pair[0])
    }

    /// A uniform number in (0, 1], small ones with their full relative precision: (bits + 1/2) / 2^64, rounded.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        (self.bits() as f64 + 0.5) * SCALE
    }

    /// An exactly uniform whole number below `bound` (Lemire 2019, with 64-bit words).
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut wide = u128::from(self.bits()) * u128::from(bound);
        if (wide as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (wide as u64) < threshold {
                wide = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.lanes.fill(&self.keys, self.counter, &mut self.words);
        self.counter[0] = self.counter[0].checked_add(BLOCKS as u32).expect("a round takes fewer than 2^33 numbers");
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_blocks_in_order() {
        let draws = Draws::new(3, 4, 1 << 40);
        let mut stream = Stream::new(&draws, Domain::Profile);
        let mut again = Stream::new(&Draws::new(3, 9, 0), Domain::Profile);
        again.bits();
        again.restart(&draws, Domain::Profile);
        for item in 0..100 {
            let w = draws.block(Domain::Profile, 0, item);
            for pair in w.chunks(2) {
                let expected = u64::from(pair[1]) << 32 | u64::from(pair[0]);
                assert_eq!((stream.bits(), again.bits()), (expected, expected));
            }
        }
    }

    #[test]
    fn bounded_numbers_are_uniform_where_rejection_is_common() {
        let bound = (1 << 63) + 1;
        let mut stream = Stream::new(&Draws::new(1, 0, 0), Domain::Profile);
        let low = (0..40_000).filter(|_| stream.below(bound) < bound / 3).count();
        // Five standard deviations of Binomial(40000, 1/3): alpha below 1e-6.
        assert!((low as f64 - 13_333.3).abs() < 471.5, "{low} of 40000 in the lower third, bound 471.5 from 13333.3");
        assert!((0..100).all(|_| stream.below(1) == 0));
    }
}
