//! The throws of a round: words, indices, choices.
//!
//! What bounds the speed is the number of loads from memory, so that the indices travel in 64-bit **gulps**, four of 16
//! or two of 32 bits, of which one load serves several balls.

use super::finish::{Cell, Load};
use crate::rng::bounded::Packing;
use crate::rng::lanes::{Keys, Lanes};
use crate::rng::{Domain, Draws};
use bytemuck::Pod;
use std::hint::select_unpredictable;

/// Most words drawn at once: with their indices they stay in the first-level cache.
const CHUNK_WORDS: u32 = 512;
/// Most indices made at once, where a word holds many.
const CHUNK_INDICES: u32 = 2048;
/// Words are drawn in multiples of this (one vector group), so that no fill ends in the middle of one.
const ROUND_UP: usize = 16;
/// Gulps, or balls, ahead whose cells are asked for.
const AHEAD: usize = 12;
/// Cells of this many bytes and more are asked for ahead: they do not fit the first-level cache.
const FAR: usize = 1 << 14;

/// An unsigned integer that indices are kept in, little-endian.
trait Index: Pod {
    const BITS: usize;
    fn narrow(index: u32) -> Self;
    fn wide(self) -> u32;
}

macro_rules! index {
    ($index:ty) => {
        impl Index for $index {
            const BITS: usize = <$index>::BITS as usize;

            #[inline(always)]
            fn narrow(index: u32) -> Self {
                (index as $index).to_le()
            }
            #[inline(always)]
            fn wide(self) -> u32 {
                u32::from(<$index>::from_le(self))
            }
        }
    };
}
index!(u16);
index!(u32);

/// How indices lie in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Each gulp holds whole balls; where a word has three indices, one word and an unused quarter.
    Gulps,
    /// One after the other, a ball's at a fixed distance from the next ball's.
    Row,
}

/// Turns the words of a round into joined bins; owns the buffers for that.
pub(super) struct Thrower {
    packing: Packing,
    lanes: Lanes,
    /// Round keys of the last seed.
    keys: Keys,
    key: [u32; 2],
    shape: Shape,
    /// Words drawn at once: whole balls and whole blocks.
    chunk: u32,
    /// Indices from the first of a ball to the first of the next.
    stride: usize,
    /// Pairs of words.
    words: Vec<u64>,
    /// Indices of the chunk, then stale ones for looking ahead.
    gulps: Vec<u64>,
}

/// Bits that an index is kept in.
fn index_bits(packing: &Packing) -> u32 {
    if packing.bins <= 1 << 16 { 16 } else { 32 }
}

impl Thrower {
    pub(super) fn new(packing: Packing, lanes: Lanes) -> Self {
        let Packing { indices_per_word, balls_per_word, words_per_ball, .. } = packing;
        let unit = words_per_ball.max(4);
        let chunk = (CHUNK_INDICES / indices_per_word).min(CHUNK_WORDS).max(unit) / unit * unit;
        // A ball that shares its words uses all their indices: balls_per_word * choices = indices_per_word.
        let stride = (words_per_ball * indices_per_word / balls_per_word) as usize;
        let words = (chunk as usize).next_multiple_of(ROUND_UP);
        let shape = match (packing.choices, indices_per_word, index_bits(&packing)) {
            (1 | 3, 3, 16) | (1..=4, 1 | 2 | 4 | 8, 16) | (1 | 2, 1, 32) => Shape::Gulps,
            _ => Shape::Row,
        };
        Self {
            packing,
            lanes,
            shape,
            keys: Keys::new([0; 2]),
            key: [0; 2],
            chunk,
            stride,
            words: vec![0; words / 2],
            gulps: vec![0; words * indices_per_word as usize + AHEAD * stride],
        }
    }

    pub(super) fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// Throws the balls of a round: each adds one, modulo the range of `T`, to the bin it joins.
    #[inline(always)]
    pub(super) fn throw<T: Load>(&mut self, draws: &Draws, balls: u32, cells: &mut [Cell<T>]) {
        if index_bits(&self.packing) == 16 {
            self.throw_by::<T, u16>(draws, balls, cells);
        } else {
            self.throw_by::<T, u32>(draws, balls, cells);
        }
    }

    #[inline(always)]
    fn throw_by<T: Load, I: Index>(&mut self, draws: &Draws, balls: u32, cells: &mut [Cell<T>]) {
        assert_eq!(cells.len(), self.packing.bins as usize, "one cell a bin");
        if self.key != draws.key() {
            self.key = draws.key();
            self.keys = Keys::new(self.key);
        }
        let words = self.packing.words(u64::from(balls)) as u32;
        let chunk_balls = self.chunk / self.packing.words_per_ball * self.packing.balls_per_word;
        let far = size_of_val(cells) >= FAR;
        let mut left = balls;
        for first in (0..words).step_by(self.chunk as usize) {
            self.draw::<I>(draws, first, self.chunk.min(words - first));
            let balls = left.min(chunk_balls) as usize;
            left -= balls as u32;
            let (gulps, mut join) = (&self.gulps[..], Join(cells));
            macro_rules! join {
                ($far:literal) => {
                    match (self.shape, self.packing.choices as usize, I::BITS) {
                        (Shape::Gulps, 1, 32) => join.in_gulps::<I, 1, 2, $far>(gulps, balls),
                        (Shape::Gulps, 2, 32) => join.in_gulps::<I, 2, 1, $far>(gulps, balls),
                        (Shape::Gulps, 1, _) if self.packing.balls_per_word == 3 => {
                            join.in_gulps::<I, 1, 3, $far>(gulps, balls)
                        }
                        (Shape::Gulps, 1, _) => join.in_gulps::<I, 1, 4, $far>(gulps, balls),
                        (Shape::Gulps, 2, _) => join.in_gulps::<I, 2, 2, $far>(gulps, balls),
                        (Shape::Gulps, 3, _) => join.in_gulps::<I, 3, 1, $far>(gulps, balls),
                        (Shape::Gulps, 4, _) => join.in_gulps::<I, 4, 1, $far>(gulps, balls),
                        (_, choices, _) => join.in_row::<I, $far>(gulps, balls, self.stride, choices),
                    }
                };
            }
            if far { join!(true) } else { join!(false) }
        }
    }

    /// Writes the indices in the `count` words from word number `first` of the round on.
    #[inline(always)]
    fn draw<I: Index>(&mut self, draws: &Draws, first: u32, count: u32) {
        let words = &mut bytemuck::cast_slice_mut(&mut self.words)[..(count as usize).next_multiple_of(ROUND_UP)];
        self.lanes.fill(&self.keys, draws.counter(Domain::Choices, 0, first / 4), words);
        if expand::<I>(&self.packing, self.shape, words, &mut self.gulps) {
            for (word, index) in words[..count as usize].iter_mut().zip(first..) {
                if self.packing.rejects(*word) {
                    *word = self.packing.redraw(draws, Domain::Choices, index);
                }
            }
            expand::<I>(&self.packing, self.shape, words, &mut self.gulps);
        }
    }
}

/// Writes the indices that `words` hold, and says whether some word may have to be rejected.
#[inline(always)]
fn expand<I: Index>(packing: &Packing, shape: Shape, words: &[u32], gulps: &mut [u64]) -> bool {
    match (packing.indices_per_word, I::BITS, shape) {
        (1, 16, _) => expand_pairs::<1, 2>(packing, words, gulps),
        (2, 16, _) => expand_pairs::<2, 1>(packing, words, gulps),
        (1, _, _) => expand_pairs::<1, 1>(packing, words, gulps),
        (3, 16, Shape::Gulps) => expand_words::<3, 1>(packing, words, gulps),
        (4, 16, _) => expand_words::<4, 1>(packing, words, gulps),
        (8, 16, _) => expand_words::<4, 2>(packing, words, gulps),
        (many, _, _) => {
            let indices: &mut [I] = bytemuck::cast_slice_mut(gulps);
            let mut rejected = false;
            for (&word, indices) in words.iter().zip(indices.chunks_exact_mut(many as usize)) {
                let mut word = word;
                for index in indices {
                    let wide = u64::from(word).wrapping_mul(packing.bins.into());
                    *index = I::narrow((wide >> 32) as u32);
                    word = wide as u32;
                }
                rejected |= word < packing.threshold;
            }
            rejected
        }
    }
}

/// Takes `M` indices out of a word (see [`crate::rng::bounded`]) and packs them; what is left of the word.
#[inline(always)]
fn pack<const M: usize>(word: u64, bins: u64, bits: usize) -> (u64, u64) {
    (0..M).fold((0, word), |(packed, word), m| {
        // Both have 32 bits. (A check would keep builds that have checks from using vectors.)
        let wide = word.wrapping_mul(bins);
        (packed | (wide >> 32) << (bits * m), wide & u64::from(u32::MAX))
    })
}

/// The indices of `PAIRS` pairs of words, `M` a word, fill a gulp. (Pairs are read as one integer each, which spares
/// the vector code taking them apart.)
#[inline(always)]
fn expand_pairs<const M: usize, const PAIRS: usize>(packing: &Packing, words: &[u32], gulps: &mut [u64]) -> bool {
    let bits = 32 / (M * PAIRS);
    let (bins, threshold) = (u64::from(packing.bins), u64::from(packing.threshold));
    let (pairs, _) = bytemuck::cast_slice::<u32, u64>(words).as_chunks::<PAIRS>();
    // The top bit is set where some word is left with less than the threshold.
    let mut below = 0;
    let mut each = |checked: bool| {
        for (pairs, gulp) in pairs.iter().zip(&mut *gulps) {
            let mut packed = 0;
            for (p, &pair) in pairs.iter().enumerate() {
                let pair = if cfg!(target_endian = "little") { pair } else { pair.rotate_left(32) };
                let (first, left) = pack::<M>(pair & u64::from(u32::MAX), bins, bits);
                let (second, left_too) = pack::<M>(pair >> 32, bins, bits);
                packed |= (first | second << (bits * M)) << (2 * bits * M * p);
                if checked {
                    below |= left.wrapping_sub(threshold) | left_too.wrapping_sub(threshold);
                }
            }
            *gulp = packed.to_le();
        }
    };
    // Two loops: for a power of two nothing is ever rejected.
    if threshold == 0 {
        each(false);
    } else {
        each(true);
    }
    below >> 63 == 1
}

/// The indices of a word, `M` at a time, fill `GULPS` gulps.
#[inline(always)]
fn expand_words<const M: usize, const GULPS: usize>(packing: &Packing, words: &[u32], gulps: &mut [u64]) -> bool {
    let (bins, threshold) = (u64::from(packing.bins), u64::from(packing.threshold));
    let mut below = 0;
    for (&word, gulps) in words.iter().zip(gulps.as_chunks_mut::<GULPS>().0) {
        let mut left = u64::from(word);
        for gulp in gulps {
            let packed;
            (packed, left) = pack::<M>(left, bins, 16);
            *gulp = packed.to_le();
        }
        below |= left.wrapping_sub(threshold);
    }
    below >> 63 == 1
}

/// The bins that balls join: n cells, and every index is below n, being the high half of a word times n.
struct Join<'a, T>(&'a mut [Cell<T>]);

impl<T: Load> Join<'_, T> {
    /// A gulp serves `BALLS` balls of `D` choices each; their cells are asked for ahead if `FETCH`.
    #[inline(always)]
    fn in_gulps<I: Index, const D: usize, const BALLS: usize, const FETCH: bool>(
        &mut self,
        gulps: &[u64],
        balls: usize,
    ) {
        let index = |gulp: u64, k: usize| (gulp >> (k * I::BITS)) as u32 & (u32::MAX >> (32 - I::BITS));
        let ball = |gulp: u64, ball: usize| std::array::from_fn::<u32, D, _>(|k| index(gulp, ball * D + k));
        let whole = balls / BALLS;
        for (gulp, later) in gulps[..whole].iter().zip(&gulps[AHEAD..]) {
            let (gulp, later) = (u64::from_le(*gulp), u64::from_le(*later));
            if FETCH {
                for k in 0..BALLS * D {
                    fetch(self.0, index(later, k));
                }
            }
            for b in 0..BALLS {
                self.join(ball(gulp, b));
            }
        }
        for b in 0..balls % BALLS {
            self.join(ball(u64::from_le(gulps[whole]), b));
        }
    }

    /// Every ball has this many choices, the first ones of `stride` indices.
    #[inline(always)]
    fn in_row<I: Index, const FETCH: bool>(&mut self, gulps: &[u64], balls: usize, stride: usize, choices: usize) {
        let indices: &[I] = bytemuck::cast_slice(gulps);
        let later = indices[AHEAD * stride..].chunks_exact(stride);
        for (ball, later) in indices.chunks_exact(stride).zip(later).take(balls) {
            if FETCH {
                for index in &later[..choices] {
                    fetch(self.0, index.wide());
                }
            }
            self.join(ball[..choices].iter().map(|index| index.wide()));
        }
    }

    /// The ball joins the first of its choices that attains the minimum. No branch depends on the loads.
    #[inline(always)]
    fn join(&mut self, choices: impl IntoIterator<Item = u32>) {
        // SAFETY: every index is below n.
        let load = |index: u32| unsafe { self.0.get_unchecked(index as usize)[0] };
        let with_load = choices.into_iter().map(|index| (index, load(index)));
        let (best, _) = with_load
            .reduce(|best, next| {
                let less = next.1 < best.1;
                (select_unpredictable(less, next.0, best.0), select_unpredictable(less, next.1, best.1))
            })
            .expect("a ball samples at least one bin");
        // SAFETY: as above.
        let [_, joined] = unsafe { self.0.get_unchecked_mut(best as usize) };
        *joined = joined.one_more();
    }
}

/// Asks for the cache line of a cell that will be needed soon, where the machine has such a hint.
#[inline(always)]
fn fetch<T>(cells: &[Cell<T>], index: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses nothing, wherever its address points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(cells.as_ptr().wrapping_add(index as usize).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (cells, index);
}
