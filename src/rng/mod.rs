//! Counter-based randomness: every draw is a pure function of (seed, replica, round, item).
//!
//! # The counter layout
//! One call of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11) gives four 32-bit words, a **block**.
//! * key = the 64-bit seed, low word first;
//! * counter = `[item, round (low 32 bits), replica, domain | attempt << 8 | round (high 16 bits) << 16]`.
//!
//! `item` counts the blocks drawn for one purpose within one round, `domain` names the purpose, and `attempt` is 0
//! except where a rejected word is redrawn ([`bounded`]). A draw therefore never depends on which thread, device,
//! batch or shard makes it: this is what lets all backends agree bit for bit, and what lets a block of replicas be
//! computed anywhere, or again. `shaders/philox.wgsl` mirrors this page; the [`Domain`] constants there are generated
//! from the table here.
//!
//! Any change to a drawn bit raises [`STREAM_VERSION`].

pub mod bounded;
mod dd;
pub mod lanes;
pub mod philox;
pub mod samplers;
pub mod stream;
pub mod thresholds;

/// Version of everything that fixes the drawn bits: the counter layout, the domains, the packing of bounded integers
/// and the threshold tables. Results of different stream versions are different samples of the same law.
pub const STREAM_VERSION: u32 = 1;

/// Rounds are counted in 48 bits.
pub const MAX_ROUNDS: u64 = 1 << 48;

/// What a draw is for. The discriminant is the low byte of the last counter word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// Number of balls that arrive in a round: item 0, words 0 (low) and 1 (high) are one 64-bit uniform.
    Arrivals = 1,
    /// Bins sampled by the balls of a round.
    Choices = 2,
    /// The initial state (round 0): the bins that its balls are thrown into, or item i for the load of bin i.
    Start = 3,
    /// All numbers of a round on the profile, read one after another ([`stream`]).
    Profile = 4,
    /// The place in its queue of the ball that a bin gives, where queues are served at random ([`crate::cover`]): item is
    /// the bin, read by [`bounded::below`].
    Queue = 5,
    /// All numbers of a step of an island ([`crate::tail`]), read one after another ([`stream`]); the replica is the
    /// island, the round the number of the step.
    Tail = 6,
}

impl Domain {
    /// Every domain with its name, the table that the shader constants are generated from.
    pub const ALL: &'static [(Domain, &'static str)] = &[
        (Domain::Arrivals, "ARRIVALS"),
        (Domain::Choices, "CHOICES"),
        (Domain::Start, "START"),
        (Domain::Profile, "PROFILE"),
        (Domain::Queue, "QUEUE"),
        (Domain::Tail, "TAIL"),
    ];
}

/// The randomness of one replica in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    key: [u32; 2],
    replica: u32,
    round: u64,
}

impl Draws {
    /// Draws of `replica` in `round` (counted from 0) under `seed`.
    ///
    /// # Panics
    /// If `round` is not below [`MAX_ROUNDS`]; a validated specification never asks for one.
    #[must_use]
    pub fn new(seed: u64, replica: u32, round: u64) -> Self {
        assert!(round < MAX_ROUNDS, "rounds are counted in 48 bits");
        Self { key: key_of(seed), replica, round }
    }

    /// The Philox key: the seed, low word first.
    #[must_use]
    pub fn key(&self) -> [u32; 2] {
        self.key
    }

    /// The Philox counter of `item` in `domain`; `attempt` is 0 for a first draw.
    #[must_use]
    pub fn counter(&self, domain: Domain, attempt: u8, item: u32) -> [u32; 4] {
        let high = (self.round >> 32) as u32;
        [item, self.round as u32, self.replica, domain as u32 | u32::from(attempt) << 8 | high << 16]
    }

    /// Four 32-bit words: block `item` of `domain`.
    #[must_use]
    pub fn block(&self, domain: Domain, attempt: u8, item: u32) -> [u32; 4] {
        philox::philox4x32(self.counter(domain, attempt, item), self.key)
    }

    /// A 64-bit uniform: words 0 (low) and 1 (high) of block `item` of `domain`.
    #[must_use]
    pub fn uniform(&self, domain: Domain, item: u32) -> u64 {
        let w = self.block(domain, 0, item);
        u64::from(w[1]) << 32 | u64::from(w[0])
    }

    /// The 64-bit uniform that decides the number of arrivals of the round.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.uniform(Domain::Arrivals, 0)
    }
}

/// The Philox key of a seed: low word first.
#[must_use]
pub fn key_of(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_fields_sit_where_the_layout_says() {
        let draws = Draws::new(0x1122_3344_5566_7788, 9, 0xABCD_1234_5678);
        assert_eq!(draws.key(), [0x5566_7788, 0x1122_3344]);
        assert_eq!(draws.counter(Domain::Choices, 7, 42), [42, 0x1234_5678, 9, 0xABCD_0702]);
    }

    #[test]
    fn domains_are_distinct() {
        let mut bytes: Vec<u8> = Domain::ALL.iter().map(|(d, _)| *d as u8).collect();
        bytes.dedup();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6]);
    }
}
