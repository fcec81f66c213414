//! Philox in NEON.
//!
//! A vector holds one state word of four blocks. A widening multiplication makes two vectors of 64-bit products, which
//! two unzips split into high and low halves; the interleaving store writes the four blocks in natural order.

use super::Keys;
use crate::rng::philox::MULTIPLIERS;
use std::arch::aarch64::{
    uint32x4_t, uint32x4x4_t, vaddq_u32, vdupq_n_u32, veorq_u32, vget_low_u32, vld1q_u32, vmull_high_u32, vmull_u32,
    vreinterpretq_u32_u64, vst4q_u32, vuzp1q_u32, vuzp2q_u32,
};

/// Words of one group: four blocks.
const GROUP: usize = 16;
/// Groups computed together, to hide the latency of a round.
const TOGETHER: usize = 4;

/// Whether this machine has the instructions.
pub(super) fn detected() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// See [`super::Lanes::fill`].
#[target_feature(enable = "neon")]
pub(super) fn fill(keys: &Keys, counter: [u32; 4], words: &mut [u32]) {
    let mut first = counter;
    let (runs, rest) = words.as_chunks_mut::<{ GROUP * TOGETHER }>();
    for run in runs {
        groups::<TOGETHER, { GROUP * TOGETHER }>(keys, &mut first, run);
    }
    let (last, rest) = rest.as_chunks_mut::<GROUP>();
    for group in last {
        groups::<1, GROUP>(keys, &mut first, group);
    }
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        groups::<1, GROUP>(keys, &mut first, &mut group);
        rest.copy_from_slice(&group[..rest.len()]);
    }
}

/// `G` groups from `first` on, `W` words; moves `first` on to the next group.
#[inline]
#[target_feature(enable = "neon")]
fn groups<const G: usize, const W: usize>(keys: &Keys, first: &mut [u32; 4], words: &mut [u32; W]) {
    let [m0, m1] = MULTIPLIERS.map(|m| vdupq_n_u32(m));
    let [mut a, mut b, mut c, mut d] = first.map(|word| [vdupq_n_u32(word); G]);
    for (g, a) in a.iter_mut().enumerate() {
        let g = 4 * g as u32;
        let offsets = [g, g + 1, g + 2, g + 3];
        // SAFETY: the four offsets are the 16 bytes read.
        *a = vaddq_u32(*a, unsafe { vld1q_u32(offsets.as_ptr()) });
    }
    first[0] = first[0].wrapping_add(4 * G as u32);
    for key in &keys.0 {
        let [j, k] = key.map(|k| vdupq_n_u32(k));
        for g in 0..G {
            let ((p, p_low), (q, q_low)) = (multiply(a[g], m0), multiply(c[g], m1));
            // The inner term does not wait for the product.
            (a[g], b[g]) = (veorq_u32(q, veorq_u32(b[g], j)), q_low);
            (c[g], d[g]) = (veorq_u32(p, veorq_u32(d[g], k)), p_low);
        }
    }
    let (groups, _) = words.as_chunks_mut::<GROUP>();
    for (g, group) in groups.iter_mut().enumerate() {
        // SAFETY: the sixteen words are the 64 bytes written.
        unsafe { vst4q_u32(group.as_mut_ptr(), uint32x4x4_t(a[g], b[g], c[g], d[g])) }
    }
}

/// The high and the low halves of the products.
#[inline]
#[target_feature(enable = "neon")]
fn multiply(x: uint32x4_t, m: uint32x4_t) -> (uint32x4_t, uint32x4_t) {
    let first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(m)));
    let last = vreinterpretq_u32_u64(vmull_high_u32(x, m));
    (vuzp2q_u32(first, last), vuzp1q_u32(first, last))
}
