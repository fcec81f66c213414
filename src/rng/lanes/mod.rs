//! Philox4x32-10 for many consecutive items at once, in whatever vector instructions the machine has.
//!
//! A **lane set** is one way of computing [`philox4x32`]: plain Rust, AVX2, AVX-512 or NEON. Which ones a machine has
//! is found at run time. All give the bits of [`philox4x32`]; each is held to published known answers and to
//! [`philox4x32`] when it is first looked for, and one that fails is never used.
//!
//! # Tested on
//! AVX2: AMD Zen 3. NEON: an emulated processor (QEMU) only. AVX-512: with its intrinsics replaced by their
//! definitions only, never on such a processor. Where that should hide an error, the check above is the protection.
//!
//! # Order
//! Words come in natural order: word `j` of a fill is word `j % 4` of block `first + j / 4`.
//!
//! # What stays constant
//! Only the first counter word, the item, varies within a fill. The vector code computes once what depends on the
//! others alone: all of one half of the first round, and half of what the second takes (`Constants`). That saves
//! 10 of 80 operations a block.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

use super::philox::{KEY_STEPS, MULTIPLIERS, ROUNDS, philox4x32};
use std::sync::OnceLock;

/// The instruction sets there is code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// A lane set that this machine has and that passed its check. There are no other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(Kind);

impl Lanes {
    /// The lane sets of this machine, slowest first; plain Rust is always among them.
    #[must_use]
    pub fn available() -> &'static [Lanes] {
        static AVAILABLE: OnceLock<Vec<Lanes>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let mut kinds = vec![Kind::Plain];
            #[cfg(target_arch = "x86_64")]
            {
                if avx2::detected() {
                    kinds.push(Kind::Avx2);
                }
                if avx512::detected() {
                    kinds.push(Kind::Avx512);
                }
            }
            #[cfg(target_arch = "aarch64")]
            if neon::detected() {
                kinds.push(Kind::Neon);
            }
            // Plain Rust is the definition in a loop: it stays, so that there is always a lane set.
            kinds.into_iter().map(Lanes).filter(|lanes| lanes.0 == Kind::Plain || lanes.gives_known_answers()).collect()
        })
    }

    /// The fastest lane set of this machine.
    #[must_use]
    pub fn best() -> Lanes {
        *Self::available().last().expect("plain Rust is always available")
    }

    /// Its name: `plain`, `avx2`, `avx512` or `neon`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
        }
    }

    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// Writes the blocks at `counter`, and at the counters whose first word is 1, 2, .. more (modulo 2^32), into
    /// `words`; the last one partly where `words` ends within it.
    #[inline]
    pub fn fill(self, keys: &Keys, counter: [u32; 4], words: &mut [u32]) {
        match self.0 {
            Kind::Plain => plain::fill(keys, counter, words),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Lanes` of this kind exists only where the instructions were detected.
            Kind::Avx2 => unsafe { avx2::fill(keys, counter, words) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kind::Avx512 => unsafe { avx512::fill(keys, counter, words) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            Kind::Neon => unsafe { neon::fill(keys, counter, words) },
        }
    }

    /// Whether this set gives the published answers of Random123 and agrees with [`philox4x32`] over a stretch that
    /// passes through every loop of the vector code and over the wrap of the item.
    fn gives_known_answers(self) -> bool {
        let published = [
            ([0; 4], [0; 2], [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]),
            (
                [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
                [0xA409_3822, 0x299F_31D0],
                [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
            ),
        ];
        published.into_iter().all(|(counter, key, answer)| {
            let mut words = [0; 397];
            self.fill(&Keys::new(key), counter, &mut words);
            let block =
                |i: usize| philox4x32([counter[0].wrapping_add(i as u32), counter[1], counter[2], counter[3]], key);
            words[..4] == answer && words.chunks(4).enumerate().all(|(i, w)| *w == block(i)[..w.len()])
        })
    }
}

/// The round keys of a key.
#[derive(Clone, Copy, Debug)]
pub struct Keys([[u32; 2]; ROUNDS as usize]);

impl Keys {
    /// The round keys of `key`.
    #[must_use]
    pub fn new(key: [u32; 2]) -> Self {
        let step = |round: usize, half: usize| key[half].wrapping_add(KEY_STEPS[half].wrapping_mul(round as u32));
        Self(std::array::from_fn(|round| [step(round, 0), step(round, 1)]))
    }
}

/// What the first three rounds take that does not depend on the item.
///
/// With state `[a, b, c, d]` and keys `[j, k]` a round is `[hi(M1 c) ^ b ^ j, lo(M1 c), hi(M0 a) ^ d ^ k, lo(M0 a)]`.
/// Of the counter `[item, b, c, d]` only the item varies. So after the first round `a` and `b` are constant, and
/// `c = hi(M0 item) ^ c1`, `d = lo(M0 item)`. After the second, `a = hi(M1 c) ^ a2`, `b = lo(M1 c)`, `c` is the old `d`
/// with `c2` on it and `d` is constant. In the third `hi(M0 a)` meets that constant `d`: `c3` is both it and the key.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "NEON multiplies in whole vectors either way"))]
struct Constants {
    c1: u32,
    a2: u32,
    c2: u32,
    c3: u32,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "NEON multiplies in whole vectors either way"))]
impl Constants {
    #[inline]
    fn new(keys: &Keys, [_, b, c, d]: [u32; 4]) -> Self {
        let product = |half: usize, word: u32| u64::from(MULTIPLIERS[half]) * u64::from(word);
        let [[j0, k0], [j1, k1], [_, k2], ..] = keys.0;
        let q = product(1, c);
        let p = product(0, (q >> 32) as u32 ^ b ^ j0);
        Self { c1: d ^ k0, a2: q as u32 ^ j1, c2: (p >> 32) as u32 ^ k1, c3: p as u32 ^ k2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(lanes: Lanes, counter: [u32; 4], key: [u32; 2], length: usize) {
        let mut words = vec![0; length + 1];
        words[length] = 0xDEAD_BEEF;
        lanes.fill(&Keys::new(key), counter, &mut words[..length]);
        assert_eq!(words[length], 0xDEAD_BEEF, "{} wrote past the end", lanes.name());
        for (j, word) in words[..length].iter().enumerate() {
            let item = counter[0].wrapping_add(j as u32 / 4);
            let block = philox4x32([item, counter[1], counter[2], counter[3]], key);
            assert_eq!(*word, block[j % 4], "{}: word {j} of {length} from {counter:x?}", lanes.name());
        }
    }

    #[test]
    fn every_lane_set_agrees_with_the_definition_at_every_length() {
        for &lanes in Lanes::available() {
            for length in 0..300 {
                agree(lanes, [length as u32 * 77, 5, 9, 2], [1, 2], length);
            }
        }
    }

    #[test]
    fn every_lane_set_agrees_at_extreme_counters_and_keys() {
        let extremes = [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 17, u32::MAX];
        for &lanes in Lanes::available() {
            for (i, &item) in extremes.iter().enumerate() {
                for &word in &extremes {
                    let others = [word, extremes[(i + 2) % 6], word.rotate_left(7)];
                    agree(lanes, [item, others[0], others[1], others[2]], [word ^ item, others[1]], 203);
                }
            }
        }
    }

    #[test]
    fn every_detected_lane_set_passes_its_check() {
        for &lanes in Lanes::available() {
            assert!(lanes.gives_known_answers(), "{}", lanes.name());
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!(avx2::detected(), Lanes::available().contains(&Lanes(Kind::Avx2)));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(avx512::detected(), Lanes::available().contains(&Lanes(Kind::Avx512)));
        #[cfg(target_arch = "aarch64")]
        assert_eq!(neon::detected(), Lanes::available().contains(&Lanes(Kind::Neon)));
    }
}
