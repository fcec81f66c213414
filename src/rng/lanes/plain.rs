//! Philox in plain Rust, for machines with none of the vector instruction sets.

use super::Keys;
use crate::rng::philox::philox4x32;

/// See [`super::Lanes::fill`].
pub(super) fn fill(keys: &Keys, counter: [u32; 4], words: &mut [u32]) {
    let key = keys.0[0];
    let [mut item, b, c, d] = counter;
    for block in words.chunks_mut(4) {
        block.copy_from_slice(&philox4x32([item, b, c, d], key)[..block.len()]);
        item = item.wrapping_add(1);
    }
}
