//! The throws of a round: words, indices, choices.

use super::finish::Load;
use crate::rng::bounded::Packing;
use crate::rng::lanes::{Keys, Lanes};
use crate::rng::{Domain, Draws};
use std::hint::select_unpredictable;

/// Most words drawn at once: with their indices they stay in the first-level cache.
const CHUNK_WORDS: u32 = 512;
/// Most indices made at once, where a word holds many.
const CHUNK_INDICES: u32 = 2048;
/// Words are drawn in multiples of this (one vector group), so that no fill ends in the middle of one.
const ROUND_UP: usize = 16;
/// Balls ahead whose loads are asked for.
const AHEAD: usize = 12;
/// Loads of this many bytes and more are asked for ahead: they do not fit the first-level cache.
const FAR: usize = 1 << 14;

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
    words: Vec<u32>,
    /// Indices of the chunk, then stale ones, all below n, for looking ahead.
    indices: Vec<u32>,
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
            words: vec![0; words],
            indices: vec![0; words * indices_per_word as usize + AHEAD * stride],
        }
    }

    /// Throws the balls of a round: each adds one, modulo the range of `T`, to the `after` of the bin it joins.
    #[inline(always)]
    pub(super) fn throw<T: Load>(&mut self, draws: &Draws, balls: u32, before: &[T], after: &mut [T]) {
        if self.key != draws.key() {
            self.key = draws.key();
            self.keys = Keys::new(self.key);
        }
        assert!(before.len() == self.packing.bins as usize && after.len() == before.len(), "one load a bin");
        let words = self.packing.words(u64::from(balls)) as u32;
        let chunk_balls = self.chunk / self.packing.words_per_ball * self.packing.balls_per_word;
        let mut left = balls;
        for first in (0..words).step_by(self.chunk as usize) {
            self.draw(draws, first, self.chunk.min(words - first));
            let now = left.min(chunk_balls);
            left -= now;
            let join = Join { indices: &self.indices, stride: self.stride, balls: now as usize, before, after };
            match self.packing.choices {
                1 => join.all::<1>(),
                2 => join.all::<2>(),
                3 => join.all::<3>(),
                4 => join.all::<4>(),
                choices => join.any(choices as usize),
            }
        }
    }

    /// Writes the indices in the `count` words from word number `first` of the round on.
    #[inline(always)]
    fn draw(&mut self, draws: &Draws, first: u32, count: u32) {
        let words = &mut self.words[..(count as usize).next_multiple_of(ROUND_UP)];
        self.lanes.fill(&self.keys, draws.counter(Domain::Choices, 0, first / 4), words);
        if expand(&self.packing, words, &mut self.indices) < self.packing.threshold {
            for (word, index) in words[..count as usize].iter_mut().zip(first..) {
                if self.packing.rejects(*word) {
                    *word = self.packing.redraw(draws, Domain::Choices, index);
                }
            }
            expand(&self.packing, words, &mut self.indices);
        }
    }
}

/// Writes the indices that `words` hold. Gives the least of what is left of a word after its last index,
/// `word * product mod 2^32`: if it is below the threshold, some word is rejected.
#[inline(always)]
fn expand(packing: &Packing, words: &[u32], indices: &mut [u32]) -> u32 {
    match packing.indices_per_word {
        1 => expand_by::<1>(packing.bins, words, indices),
        2 => expand_by::<2>(packing.bins, words, indices),
        3 => expand_by::<3>(packing.bins, words, indices),
        4 => expand_by::<4>(packing.bins, words, indices),
        many => {
            let out = indices.chunks_exact_mut(many as usize);
            words.iter().zip(out).map(|(&word, out)| split(packing.bins, word, out)).min().unwrap_or(u32::MAX)
        }
    }
}

#[inline(always)]
fn expand_by<const M: usize>(bins: u32, words: &[u32], indices: &mut [u32]) -> u32 {
    let (out, _) = indices.as_chunks_mut::<M>();
    words.iter().zip(out).fold(u32::MAX, |least, (&word, out)| least.min(split(bins, word, out)))
}

/// Takes indices out of a word by repeated multiply-shift (see [`crate::rng::bounded`]); what is left of the word.
#[inline(always)]
fn split(bins: u32, word: u32, indices: &mut [u32]) -> u32 {
    indices.iter_mut().fold(word, |word, index| {
        let wide = u64::from(word) * u64::from(bins);
        *index = (wide >> 32) as u32;
        wide as u32
    })
}

/// Balls that are about to join their bins.
///
/// Every index is below n, the length of `before` and `after`: each is the high half of a word times n.
struct Join<'a, T> {
    indices: &'a [u32],
    stride: usize,
    balls: usize,
    before: &'a [T],
    after: &'a mut [T],
}

impl<T: Load> Join<'_, T> {
    /// Every ball has `D` choices.
    #[inline(always)]
    fn all<const D: usize>(self) {
        if size_of_val(self.before) >= FAR {
            self.each::<D, true>();
        } else {
            self.each::<D, false>();
        }
    }

    #[inline(always)]
    fn each<const D: usize, const FETCH: bool>(mut self) {
        let here = self.indices.chunks_exact(self.stride);
        let ahead = self.indices[AHEAD * self.stride..].chunks_exact(self.stride);
        for (ball, later) in here.zip(ahead).take(self.balls) {
            if FETCH {
                for &index in &later[..D] {
                    fetch(self.before.as_ptr().wrapping_add(index as usize));
                    if D == 1 {
                        fetch(self.after.as_ptr().wrapping_add(index as usize));
                    }
                }
            }
            self.join(&ball[..D]);
        }
    }

    /// Every ball has this many choices.
    #[inline(always)]
    fn any(mut self, choices: usize) {
        for ball in self.indices.chunks_exact(self.stride).take(self.balls) {
            self.join(&ball[..choices]);
        }
    }

    /// The ball joins the first of its choices that attains the minimum. No branch depends on the loads.
    #[inline(always)]
    fn join(&mut self, choices: &[u32]) {
        // SAFETY: every index is below n.
        let load = |index: u32| unsafe { *self.before.get_unchecked(index as usize) };
        let (&first, others) = choices.split_first().expect("a ball samples at least one bin");
        let mut best = first;
        if !others.is_empty() {
            let mut least = load(first);
            for &index in others {
                let other = load(index);
                let less = other < least;
                best = select_unpredictable(less, index, best);
                least = select_unpredictable(less, other, least);
            }
        }
        // SAFETY: as above.
        let joined = unsafe { self.after.get_unchecked_mut(best as usize) };
        *joined = joined.one_more();
    }
}

/// Asks for the cache line at `address`, which need not be valid. No more than a hint, where there is such a thing.
#[inline(always)]
fn fetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
