//! Philox in AVX2.
//!
//! Each 32-bit state word sits in the low half of its own 64-bit lane; what the high half holds does not matter,
//! because `vpmuludq` reads the low halves only. A round of four blocks is then 2 multiplications, 2 shifts and 4
//! exclusive ors, with no shuffles. The four lanes hold the items +0, +2, +1, +3, which is the order in which the
//! last step, two unpackings within 128-bit halves, leaves whole blocks in natural order.

use super::{Constants, Keys};
use crate::rng::philox::MULTIPLIERS;
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_blend_epi32, _mm256_mul_epu32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi32, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

/// Words of one group: four blocks.
const GROUP: usize = 16;
/// Groups computed together, to hide the latency of a round.
const TOGETHER: usize = 2;

/// Whether this machine has the instructions.
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx2")
}

/// See [`super::Lanes::fill`].
#[target_feature(enable = "avx2")]
pub(super) fn fill(keys: &Keys, counter: [u32; 4], words: &mut [u32]) {
    let constants = Constants::new(keys, counter);
    let mut items = _mm256_add_epi32(_mm256_set1_epi32(counter[0] as i32), _mm256_setr_epi64x(0, 2, 1, 3));
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
#[target_feature(enable = "avx2")]
fn groups<const G: usize, const W: usize>(
    keys: &Keys,
    constants: &Constants,
    mut items: __m256i,
    words: &mut [u32; W],
) -> __m256i {
    let every = |word: u32| _mm256_set1_epi32(word as i32);
    let (m0, m1) = (every(MULTIPLIERS[0]), every(MULTIPLIERS[1]));
    let xor = _mm256_xor_si256;
    let high = _mm256_srli_epi64::<32>;
    let [mut a, mut b, mut c, mut d] = [[_mm256_setzero_si256(); G]; 4];
    for g in 0..G {
        // Rounds 1 to 3, with all that is constant folded.
        let p = _mm256_mul_epu32(items, m0);
        items = _mm256_add_epi32(items, _mm256_set1_epi32(4));
        let q = _mm256_mul_epu32(xor(high(p), every(constants.c1)), m1);
        let a2 = xor(high(q), every(constants.a2));
        let c2 = xor(p, every(constants.c2));
        let (p3, q3) = (_mm256_mul_epu32(a2, m0), _mm256_mul_epu32(c2, m1));
        (a[g], b[g]) = (xor(high(q3), xor(q, every(keys.0[2][0]))), q3);
        (c[g], d[g]) = (xor(high(p3), every(constants.c3)), p3);
    }
    let mut round = |key: [u32; 2]| {
        let (j, k) = (every(key[0]), every(key[1]));
        for g in 0..G {
            let (p, q) = (_mm256_mul_epu32(a[g], m0), _mm256_mul_epu32(c[g], m1));
            // The inner term does not wait for the product.
            (a[g], b[g]) = (xor(high(q), xor(b[g], j)), q);
            (c[g], d[g]) = (xor(high(p), xor(d[g], k)), p);
        }
    };
    // Written out, because the compiler leaves a loop a loop.
    round(keys.0[3]);
    round(keys.0[4]);
    round(keys.0[5]);
    round(keys.0[6]);
    round(keys.0[7]);
    round(keys.0[8]);
    // The last round swaps the halves of the products, so that a lane holds two finished words in order.
    let [j, k] = keys.0[9].map(|k| _mm256_set1_epi64x(i64::from(k)));
    let zero = _mm256_setzero_si256();
    let low = _mm256_blend_epi32::<0b1010_1010>;
    let swap = _mm256_shuffle_epi32::<0b10_11_00_01>;
    let (halves, _) = words.as_chunks_mut::<8>();
    for (g, out) in halves.chunks_exact_mut(2).enumerate() {
        let (p, q) = (_mm256_mul_epu32(a[g], m0), _mm256_mul_epu32(c[g], m1));
        let ab = xor(swap(q), xor(low(b[g], zero), j));
        let cd = xor(swap(p), xor(low(d[g], zero), k));
        store(&mut out[0], _mm256_unpacklo_epi64(ab, cd));
        store(&mut out[1], _mm256_unpackhi_epi64(ab, cd));
    }
    items
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u32; 8], vector: __m256i) {
    // SAFETY: the eight words are the 32 bytes written, and the store asks for no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}
