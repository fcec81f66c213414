//! The cells that loads are kept in, and the end of a round: deletions, and what is observed on the way.

use super::Order;
use crate::process::Measure;
use crate::stats::Histogram;
use bytemuck::Pod;

/// An unsigned integer that loads are kept in.
pub(super) trait Load: Pod + Ord + Into<u32> {
    /// Twice as wide: holds the sum of a [`STRETCH`] of sums of two.
    type Wide: Copy + Ord + Into<u64>;
    const NONE: Self::Wide;

    /// Largest load.
    const MAX: u32;

    /// `load`, modulo the range of a sum.
    fn wide(load: u32) -> Self::Wide;
    /// One ball more, modulo the range.
    fn one_more(self) -> Self;
    /// The load of the bin with the balls that joined.
    fn with_joined(cell: Cell<Self>) -> Self::Wide;
    /// The load of the bin less one ball, if it has one, with the balls that joined.
    fn discarded_then_joined(cell: Cell<Self>) -> Self::Wide;
    /// A cell of this load (modulo the range) that no ball has joined.
    fn rested(load: Self::Wide) -> Cell<Self>;
    /// `sum + load`.
    fn add(sum: Self::Wide, load: Self::Wide) -> Self::Wide;
    /// `count + 1` if so.
    fn count(count: Self::Wide, so: bool) -> Self::Wide;
    /// `load - 1`, or 0.
    fn one_less(load: Self::Wide) -> Self::Wide;
}

/// A bin: its load at the start of the round, and the balls that joined since, modulo the range.
///
/// They lie side by side because a ball that reads one often changes the other.
pub(super) type Cell<T> = [T; 2];

// Additions that cannot wrap within a `STRETCH` are written as wrapping ones: a check would keep builds that have checks
// from using vectors.
macro_rules! load {
    ($load:ty, $wide:ty) => {
        impl Load for $load {
            type Wide = $wide;
            const NONE: $wide = 0;

            const MAX: u32 = <$load>::MAX as u32;

            #[inline(always)]
            fn wide(load: u32) -> $wide {
                load as $wide
            }
            #[inline(always)]
            fn one_more(self) -> Self {
                self.wrapping_add(1)
            }
            #[inline(always)]
            fn with_joined(cell: Cell<Self>) -> $wide {
                // As one integer, so that the compiler need not take the cells apart.
                let cell: $wide = bytemuck::cast(cell);
                (cell & <$wide>::from(<$load>::MAX)).wrapping_add(cell >> <$load>::BITS)
            }
            #[inline(always)]
            fn discarded_then_joined(cell: Cell<Self>) -> $wide {
                let cell: $wide = bytemuck::cast(cell);
                (cell & <$wide>::from(<$load>::MAX)).saturating_sub(1).wrapping_add(cell >> <$load>::BITS)
            }
            #[inline(always)]
            fn rested(load: $wide) -> Cell<Self> {
                bytemuck::cast((load & <$wide>::from(<$load>::MAX)).to_le())
            }
            #[inline(always)]
            fn add(sum: $wide, load: $wide) -> $wide {
                sum.wrapping_add(load)
            }
            #[inline(always)]
            fn count(count: $wide, so: bool) -> $wide {
                count.wrapping_add(<$wide>::from(so))
            }
            #[inline(always)]
            fn one_less(load: $wide) -> $wide {
                load.saturating_sub(1)
            }
        }
    };
}
load!(u8, u16);
load!(u16, u32);
load!(u32, u64);

/// What the loads are after the throw of a round: before its deletions where these come last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Sum of the loads.
    pub(super) total: u64,
    /// Bins with a ball.
    pub(super) occupied: u64,
    /// Bins with two balls or more; counted in sampled rounds only, where the deletions come last.
    pub(super) shared: u64,
    /// Largest load.
    pub(super) max: u64,
}

/// Bins that are summed in the type [`Load::Wide`]: 128 loads of at most 510 stay below 2^16.
const STRETCH: usize = 128;

/// Deletes a ball from every bin that has one, before or after the joins as `order` says, and makes the result the loads
/// at the start of the next round.
#[inline(always)]
pub(super) fn finish<T: Load>(
    cells: &mut [Cell<T>],
    order: Order,
    sampled: bool,
    measure: Measure,
    histogram: Option<&mut Histogram>,
) -> End {
    let end = match (order, sampled) {
        (Order::ThrowThenDelete, false) => delete::<T, false>(cells),
        (Order::ThrowThenDelete, true) => delete::<T, true>(cells),
        (Order::DeleteThenThrow, _) => join::<T>(cells),
    };
    if let Some(histogram) = histogram {
        match measure {
            Measure::Post => count(cells, end.max, |load, bins| histogram.add(load, bins.into())),
            // What is left is one less than before the deletion, except in bins that were empty.
            Measure::Pre => {
                let empty = cells.len() as u64 - end.occupied;
                histogram.add(0, empty.into());
                count(cells, end.max, |load, bins| {
                    histogram.add(load + 1, if load == 0 { bins - empty } else { bins }.into());
                });
            }
        }
    }
    end
}

#[inline(always)]
fn delete<T: Load, const SAMPLED: bool>(cells: &mut [Cell<T>]) -> End {
    let mut end = End::default();
    for cells in cells.chunks_mut(STRETCH) {
        let [mut total, mut occupied, mut shared, mut max] = [T::NONE; 4];
        for cell in cells {
            let load = T::with_joined(*cell);
            let left = T::one_less(load);
            total = T::add(total, load);
            occupied = T::count(occupied, load > T::NONE);
            max = max.max(load);
            if SAMPLED {
                shared = T::count(shared, left > T::NONE);
            }
            *cell = T::rested(left);
        }
        end.total += total.into();
        end.occupied += occupied.into();
        end.shared += shared.into();
        end.max = end.max.max(max.into());
    }
    end
}

/// The deletions came before the joins.
#[inline(always)]
fn join<T: Load>(cells: &mut [Cell<T>]) -> End {
    let mut end = End::default();
    for cells in cells.chunks_mut(STRETCH) {
        let [mut total, mut occupied, mut max] = [T::NONE; 3];
        for cell in cells {
            let load = T::discarded_then_joined(*cell);
            total = T::add(total, load);
            occupied = T::count(occupied, load > T::NONE);
            max = max.max(load);
            *cell = T::rested(load);
        }
        end.total += total.into();
        end.occupied += occupied.into();
        end.max = end.max.max(max.into());
    }
    end
}

/// Where no load reaches this, loads are counted in vectors, one value after the other.
const LEVELS: u64 = 16;
/// Bins whose loads are counted before the next ones are looked at: they stay in the first-level cache.
const BLOCK: usize = 4096;

/// Calls `add` with every load up to `max`, the largest, and the bins that have it; with larger ones than 255 for each
/// bin.
#[inline(always)]
fn count<T: Load>(cells: &[Cell<T>], max: u64, mut add: impl FnMut(u64, u64)) {
    let mut counts = [0; 256];
    for cells in cells.chunks(BLOCK) {
        if max < LEVELS {
            for (level, count) in counts[..=max as usize].iter_mut().enumerate() {
                *count += equal_to(cells, level as u32);
            }
            continue;
        }
        for &[load, _] in cells {
            let load: u32 = load.into();
            match counts.get_mut(load as usize) {
                Some(count) => *count += 1,
                None => add(load.into(), 1),
            }
        }
    }
    for (load, &count) in (0..=max).zip(&counts) {
        add(load, count);
    }
}

/// Bins with this load.
#[inline(always)]
fn equal_to<T: Load>(cells: &[Cell<T>], load: u32) -> u64 {
    let load = T::wide(load);
    let count =
        |cells: &[Cell<T>]| cells.iter().fold(T::NONE, |sum, &cell| T::count(sum, T::with_joined(cell) == load));
    cells.chunks(STRETCH).map(|cells| count(cells).into()).sum()
}
