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
    fn narrow(index: u32) -> Self;
    fn wide(self) -> u32;
}

macro_rules! index {
    ($index:ty) => {
        impl Index for $index {
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

/// Turns the words of a round into joined bins; owns the buffers for that.
pub(super) struct Thrower {
    packing: Packing,
    lanes: Lanes,
    /// Round keys of the last seed.
    keys: Keys,
    key: [u32; 2],
    /// Words drawn at once: whole balls and whole blocks.
    chunk: u32,
    /// Indices from the first of a ball to the first of the next.
    stride: usize,
    /// Pairs of words.
    words: Vec<u64>,
    /// Indices of the chunk, then stale ones for looking ahead.
    gulps: Vec<u64>,
}

impl Thrower {
    pub(super) fn new(packing: Packing, lanes: Lanes) -> Self {
        let Packing { indices_per_word, balls_per_word, words_per_ball, .. } = packing;
        let unit = words_per_ball.max(4);
        let chunk = (CHUNK_INDICES / indices_per_word).min(CHUNK_WORDS).max(unit) / unit * unit;
        // A ball that shares its words uses all their indices: balls_per_word * choices = indices_per_word.
        let stride = (words_per_ball * indices_per_word / balls_per_word) as usize;
        let words = (chunk as usize).next_multiple_of(ROUND_UP);
        Self {
            packing,
            lanes,
            keys: Keys::new([0; 2]),
            key: [0; 2],
            chunk,
            stride,
            words: vec![0; words / 2],
            gulps: vec![0; words * indices_per_word as usize + AHEAD * stride],
        }
    }

    /// Throws the balls of a round: each adds one, modulo the range of `T`, to the bin it joins.
    #[inline(always)]
    pub(super) fn throw<T: Load>(&mut self, draws: &Draws, balls: u32, cells: &mut [Cell<T>]) {
        if self.packing.bins <= 1 << 16 {
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
            let (gulps, stride, mut join) = (&self.gulps[..], self.stride, Join(cells));
            match (self.packing.choices as usize, far) {
                (1, false) => join.in_gulps::<I, 1, false>(gulps, balls),
                (1, true) => join.in_gulps::<I, 1, true>(gulps, balls),
                (2, false) => join.in_gulps::<I, 2, false>(gulps, balls),
                (2, true) => join.in_gulps::<I, 2, true>(gulps, balls),
                (3, false) => join.one_by_one::<I, false>(gulps, balls, stride, 3),
                (3, true) => join.one_by_one::<I, true>(gulps, balls, stride, 3),
                (choices, false) => join.one_by_one::<I, false>(gulps, balls, stride, choices),
                (choices, true) => join.one_by_one::<I, true>(gulps, balls, stride, choices),
            }
        }
    }

    /// Writes the indices in the `count` words from word number `first` of the round on.
    #[inline(always)]
    fn draw<I: Index>(&mut self, draws: &Draws, first: u32, count: u32) {
        let words = &mut bytemuck::cast_slice_mut(&mut self.words)[..(count as usize).next_multiple_of(ROUND_UP)];
        self.lanes.fill(&self.keys, draws.counter(Domain::Choices, 0, first / 4), words);
        if expand::<I>(&self.packing, words, &mut self.gulps) {
            for (word, index) in words[..count as usize].iter_mut().zip(first..) {
                if self.packing.rejects(*word) {
                    *word = self.packing.redraw(draws, Domain::Choices, index);
                }
            }
            expand::<I>(&self.packing, words, &mut self.gulps);
        }
    }
}

/// Writes the indices that `words` hold, and says whether some word may have to be rejected.
#[inline(always)]
fn expand<I: Index>(packing: &Packing, words: &[u32], gulps: &mut [u64]) -> bool {
    match (packing.indices_per_word, size_of::<I>()) {
        (1, 2) => expand_gulps::<1, 2>(packing, words, gulps),
        (2, 2) => expand_gulps::<2, 1>(packing, words, gulps),
        (1, 4) => expand_gulps::<1, 1>(packing, words, gulps),
        (3, _) => expand_any(packing, words, bytemuck::cast_slice_mut::<u64, [I; 3]>(gulps).iter_mut()),
        (4, _) => expand_any(packing, words, bytemuck::cast_slice_mut::<u64, [I; 4]>(gulps).iter_mut()),
        (many, _) => {
            let indices: &mut [I] = bytemuck::cast_slice_mut(gulps);
            expand_any(packing, words, indices.chunks_exact_mut(many as usize))
        }
    }
}

/// The indices of `PAIRS` pairs of words, `M` a word, fill a gulp.
#[inline(always)]
fn expand_gulps<const M: usize, const PAIRS: usize>(packing: &Packing, words: &[u32], gulps: &mut [u64]) -> bool {
    if packing.threshold == 0 {
        expand_checked::<M, PAIRS, false>(packing, words, gulps)
    } else {
        expand_checked::<M, PAIRS, true>(packing, words, gulps)
    }
}

#[inline(always)]
fn expand_checked<const M: usize, const PAIRS: usize, const REJECT: bool>(
    packing: &Packing,
    words: &[u32],
    gulps: &mut [u64],
) -> bool {
    let bits = 32 / (M * PAIRS);
    let (bins, threshold) = (u64::from(packing.bins), u64::from(packing.threshold));
    // The top bit is set where some word is left with less than the threshold.
    let mut low = 0u64;
    // Pairs of words are read as one integer each, which is how the vector code likes them.
    let (pairs, _) = bytemuck::cast_slice::<u32, u64>(words).as_chunks::<PAIRS>();
    for (pairs, gulp) in pairs.iter().zip(gulps) {
        let mut packed = 0;
        for (p, &pair) in pairs.iter().enumerate() {
            let pair = if cfg!(target_endian = "little") { pair } else { pair.rotate_left(32) };
            for (w, mut word) in [pair & u64::from(u32::MAX), pair >> 32].into_iter().enumerate() {
                for m in 0..M {
                    let wide = word * bins;
                    packed |= (wide >> 32) << (bits * ((2 * p + w) * M + m));
                    word = wide & u64::from(u32::MAX);
                }
                if REJECT {
                    low |= word.wrapping_sub(threshold);
                }
            }
        }
        *gulp = packed.to_le();
    }
    low >> 63 == 1
}

/// The indices of a word fill one of `out`.
#[inline(always)]
fn expand_any<'a, I: Index, O: AsMut<[I]> + 'a>(
    packing: &Packing,
    words: &[u32],
    out: impl Iterator<Item = O>,
) -> bool {
    let mut least = u32::MAX;
    for (&word, mut indices) in words.iter().zip(out) {
        let mut word = word;
        for index in indices.as_mut() {
            let wide = u64::from(word) * u64::from(packing.bins);
            *index = I::narrow((wide >> 32) as u32);
            word = wide as u32;
        }
        least = least.min(word);
    }
    least < packing.threshold
}

/// The bins that balls join: n cells, and every index is below n, being the high half of a word times n.
struct Join<'a, T>(&'a mut [Cell<T>]);

impl<T: Load> Join<'_, T> {
    /// Every ball has `D` choices, 1 or 2, with none unused in between; their cells are asked for ahead if `FETCH`.
    #[inline(always)]
    fn in_gulps<I: Index, const D: usize, const FETCH: bool>(&mut self, gulps: &[u64], balls: usize) {
        let bits = 8 * size_of::<I>();
        let balls_per_gulp = 64 / bits / D;
        let index = |gulp: u64, k: usize| (gulp >> (k * bits)) as u32 & (u32::MAX >> (32 - bits));
        let whole = balls / balls_per_gulp;
        for (gulp, later) in gulps[..whole].iter().zip(&gulps[AHEAD..]) {
            let gulp = u64::from_le(*gulp);
            if FETCH {
                for k in 0..balls_per_gulp * D {
                    fetch(self.0, index(u64::from_le(*later), k));
                }
            }
            for ball in 0..balls_per_gulp {
                self.join(std::array::from_fn::<u32, D, _>(|k| index(gulp, ball * D + k)));
            }
        }
        for ball in 0..balls % balls_per_gulp {
            self.join(std::array::from_fn::<u32, D, _>(|k| index(u64::from_le(gulps[whole]), ball * D + k)));
        }
    }

    /// Every ball has this many choices, the first ones of `stride` indices.
    #[inline(always)]
    fn one_by_one<I: Index, const FETCH: bool>(&mut self, gulps: &[u64], balls: usize, stride: usize, choices: usize) {
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
