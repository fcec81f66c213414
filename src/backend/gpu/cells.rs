//! The cells of replicas: their states as the device holds them between submissions.
//!
//! A narrow bin is one word; a wide one is two, of which the second has the joins of a round and is 0 between rounds. Behind
//! the bins of a replica lie the balls that are elsewhere, a word each. See `shaders/bins.wgsl`.

use super::plan::Form;
use crate::process::Kernel;
use bytemuck::pod_read_unaligned;
use rayon::prelude::*;
use std::borrow::Cow;

const WORD: usize = size_of::<u32>();

/// Where the numbers of a state are in its cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    bins: usize,
    /// Words of a state.
    words: usize,
    /// Cells of a bin.
    per_bin: usize,
}

impl Cells {
    /// The cells of `kernel` in this form.
    pub(super) fn new(kernel: &Kernel<'_>, form: Form) -> Self {
        let per_bin = if form.wide { 2 } else { 1 };
        Self { bins: kernel.packing.bins as usize, words: kernel.words(), per_bin }
    }

    /// The cells of `states`, which follow each other.
    pub(super) fn of<'s>(&self, states: &'s [u32]) -> Cow<'s, [u32]> {
        if self.per_bin == 1 {
            return Cow::Borrowed(states);
        }
        let wide = |state: &'s [u32]| {
            let (loads, elsewhere) = state.split_at(self.bins);
            loads.iter().flat_map(|&load| [load, 0]).chain(elsewhere.iter().copied())
        };
        Cow::Owned(states.par_chunks(self.words).flat_map_iter(wide).collect())
    }

    /// Bytes of a replica, and those of its bins.
    fn sizes(&self) -> (usize, usize) {
        let loads = self.bins * self.per_bin;
        (WORD * (loads + self.words - self.bins), WORD * loads)
    }

    /// Of each replica, the bytes of its bins and those of the balls elsewhere.
    fn replicas<'b>(&self, bytes: &'b [u8]) -> impl IndexedParallelIterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let (replica, loads) = self.sizes();
        bytes.par_chunks_exact(replica).map(move |replica| replica.split_at(loads))
    }

    /// Balls of each replica.
    pub(super) fn balls(&self, bytes: &[u8]) -> Vec<u128> {
        let bin = WORD * self.per_bin;
        let sum = |part: &[u8], stride| part.chunks_exact(stride).map(|of| u64::from(first_word(of))).sum::<u64>();
        let balls = self.replicas(bytes).map(|(loads, elsewhere)| {
            // Whole bins: a replica may have most of the bytes.
            let loads: u64 = loads.par_chunks(bin << 14).map(|part| sum(part, bin)).sum();
            u128::from(loads) + u128::from(sum(elsewhere, WORD))
        });
        balls.collect()
    }

    /// The loads of all bins, replica-major.
    pub(super) fn loads(&self, bytes: &[u8]) -> Vec<u32> {
        let bin = WORD * self.per_bin;
        self.replicas(bytes).flat_map(|(loads, _)| loads.par_chunks_exact(bin).map(first_word)).collect()
    }

    /// The state of the replica in `slot`.
    pub(super) fn state(&self, bytes: &[u8], slot: usize) -> Vec<u64> {
        let (replica, loads) = self.sizes();
        let (loads, elsewhere) = bytes[replica * slot..][..replica].split_at(loads);
        let words = loads.chunks_exact(WORD * self.per_bin).chain(elsewhere.chunks_exact(WORD));
        words.map(|word| first_word(word).into()).collect()
    }
}

/// What is read back is not aligned to a word on every platform.
fn first_word(bytes: &[u8]) -> u32 {
    pod_read_unaligned(&bytes[..WORD])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_their_cells() {
        let states: Vec<u32> = (1..=10).collect();
        let narrow = Cells { bins: 3, words: 5, per_bin: 1 };
        let wide = Cells { per_bin: 2, ..narrow };
        assert_eq!(*narrow.of(&states), states[..]);
        assert_eq!(*wide.of(&states), [1, 0, 2, 0, 3, 0, 4, 5, 6, 0, 7, 0, 8, 0, 9, 10]);
        for cells in [narrow, wide] {
            let words = cells.of(&states);
            let bytes = bytemuck::cast_slice(&words);
            assert_eq!([0, 1].map(|slot| cells.state(bytes, slot)), [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], "{cells:?}");
            assert_eq!(cells.loads(bytes), [1, 2, 3, 6, 7, 8], "{cells:?}");
            assert_eq!(cells.balls(bytes), [15, 40], "{cells:?}");
        }
    }
}
