//! Philox in AVX-512: as in AVX2 (see there), with eight blocks a group and three-way exclusive ors.
//!
//! The eight lanes hold the items +0, +4, +1, +5, +2, +6, +3, +7: the two unpackings within 128-bit quarters leave
//! blocks 0 to 3 and 4 to 7 in natural order.

use super::{Constants, Keys};
use crate::rng::philox::MULTIPLIERS;
use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_maskz_mov_epi32, _mm512_mul_epu32, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setr_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

/// Words of one group: eight blocks.
const GROUP: usize = 32;
/// Groups computed together, to hide the latency of a round.
const TOGETHER: usize = 4;

/// Whether this machine has the instructions: those used here, and those that code compiled around it may use.
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// See [`super::Lanes::fill`].
#[target_feature(enable = "avx512f")]
pub(super) fn fill(keys: &Keys, counter: [u32; 4], words: &mut [u32]) {
    let constants = Constants::new(keys, counter);
    let lanes = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let mut items = _mm512_add_epi32(_mm512_set1_epi32(counter[0] as i32), lanes);
    let (runs, rest) = words.as_chunks_mut::<{ GROUP * TOGETHER }>();
    for run in runs {
        items = groups::<TOGETHER, { GROUP * TOGETHER }>(keys, &constants, items, run);
    }
    let (last, rest) = rest.as_chunks_mut::<GROUP>();
    for group in last {
        items = groups::<1, GROUP>(keys, &constants, items, group);
    }
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        groups::<1, GROUP>(keys, &constants, items, &mut group);
        rest.copy_from_slice(&group[..rest.len()]);
    }
}

/// `G` groups from `items` on, `W` words; the items of the next group.
#[inline]
#[target_feature(enable = "avx512f")]
fn groups<const G: usize, const W: usize>(
    keys: &Keys,
    constants: &Constants,
    mut items: __m512i,
    words: &mut [u32; W],
) -> __m512i {
    let every = |word: u32| _mm512_set1_epi32(word as i32);
    let (m0, m1) = (every(MULTIPLIERS[0]), every(MULTIPLIERS[1]));
    let xor = _mm512_xor_si512;
    let xor3 = _mm512_ternarylogic_epi32::<0b1001_0110>;
    let high = _mm512_srli_epi64::<32>;
    let [mut a, mut b, mut c, mut d] = [[_mm512_setzero_si512(); G]; 4];
    for g in 0..G {
        // Rounds 1 to 3, with all that is constant folded.
        let p = _mm512_mul_epu32(items, m0);
        items = _mm512_add_epi32(items, _mm512_set1_epi32(8));
        let q = _mm512_mul_epu32(xor(high(p), every(constants.c1)), m1);
        let a2 = xor(high(q), every(constants.a2));
        let c2 = xor(p, every(constants.c2));
        let (p3, q3) = (_mm512_mul_epu32(a2, m0), _mm512_mul_epu32(c2, m1));
        (a[g], b[g]) = (xor3(high(q3), q, every(keys.0[2][0])), q3);
        (c[g], d[g]) = (xor(high(p3), every(constants.c3)), p3);
    }
    for key in &keys.0[3..9] {
        let (j, k) = (every(key[0]), every(key[1]));
        for g in 0..G {
            let (p, q) = (_mm512_mul_epu32(a[g], m0), _mm512_mul_epu32(c[g], m1));
            (a[g], b[g]) = (xor3(high(q), b[g], j), q);
            (c[g], d[g]) = (xor3(high(p), d[g], k), p);
        }
    }
    // The last round swaps the halves of the products, so that a lane holds two finished words in order.
    let [j, k] = keys.0[9].map(|k| _mm512_set1_epi64(i64::from(k)));
    let low = |v| _mm512_maskz_mov_epi32(0b0101_0101_0101_0101, v);
    let swap = _mm512_shuffle_epi32::<0b10_11_00_01>;
    let (halves, _) = words.as_chunks_mut::<16>();
    for (g, out) in halves.chunks_exact_mut(2).enumerate() {
        let (p, q) = (_mm512_mul_epu32(a[g], m0), _mm512_mul_epu32(c[g], m1));
        let ab = xor3(swap(q), low(b[g]), j);
        let cd = xor3(swap(p), low(d[g]), k);
        store(&mut out[0], _mm512_unpacklo_epi64(ab, cd));
        store(&mut out[1], _mm512_unpackhi_epi64(ab, cd));
    }
    items
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut [u32; 16], vector: __m512i) {
    // SAFETY: the sixteen words are the 64 bytes written, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
