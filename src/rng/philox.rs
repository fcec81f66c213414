//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11), one block at a
//! time. [`super::lanes`] is the same function for many blocks.

/// Multipliers of the two halves of a round.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increments of the two key words between rounds (golden ratio, sqrt(3) - 1).
pub const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of the bijection.
pub const ROUNDS: u32 = 10;

/// (counter, key, block) as published with Random123: all zeros, all ones, digits of pi. For checks at run time; the
/// tests read the same from `tests/kat/philox4x32.txt`.
pub(crate) const PUBLISHED: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
    ([0; 4], [0; 2], [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]),
    ([u32::MAX; 4], [u32::MAX; 2], [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]),
    (
        [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
        [0xA409_3822, 0x299F_31D0],
        [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
    ),
];

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
