//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11), one block at a
//! time. [`super::lanes`] is the same function for many blocks.

/// Multipliers of the two halves of a round.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increments of the two key words between rounds (golden ratio, sqrt(3) - 1).
pub const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of the bijection.
pub const ROUNDS: u32 = 10;

/// The block at `counter` under `key`: four uniform 32-bit words.
#[inline]
#[must_use]
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let p = u64::from(a) * u64::from(MULTIPLIERS[0]);
        let q = u64::from(c) * u64::from(MULTIPLIERS[1]);
        (a, b, c, d) = ((q >> 32) as u32 ^ b ^ k0, q as u32, (p >> 32) as u32 ^ d ^ k1, p as u32);
        k0 = k0.wrapping_add(KEY_STEPS[0]);
        k1 = k1.wrapping_add(KEY_STEPS[1]);
    }
    [a, b, c, d]
}
