//! The end of a round: deletions, and what is observed on the way.

use crate::process::Measure;
use crate::stats::Histogram;

/// An unsigned integer that loads are kept in.
pub(super) trait Load: Copy + Ord + Into<u32> {
    /// Holds the sum of 255 loads.
    type Sum: Copy + Into<u64>;
    const ZERO: Self;
    const NOTHING: Self::Sum;

    /// `load` in this type; the caller knows that it fits.
    fn narrow(load: u32) -> Self;
    /// One ball more, modulo the range.
    fn one_more(self) -> Self;
    /// One ball less, if there is one.
    fn one_less(self) -> Self;
    /// `sum` and this load.
    fn added_to(self, sum: Self::Sum) -> Self::Sum;
}

macro_rules! load {
    ($load:ty, $sum:ty) => {
        impl Load for $load {
            type Sum = $sum;
            const ZERO: Self = 0;
            const NOTHING: $sum = 0;

            #[inline(always)]
            fn narrow(load: u32) -> Self {
                load as $load
            }
            #[inline(always)]
            fn one_more(self) -> Self {
                self.wrapping_add(1)
            }
            #[inline(always)]
            fn one_less(self) -> Self {
                self.saturating_sub(1)
            }
            #[inline(always)]
            fn added_to(self, sum: $sum) -> $sum {
                sum + <$sum>::from(self)
            }
        }
    };
}
load!(u8, u16);
load!(u16, u32);
load!(u32, u64);

/// What a round ends with, before its deletions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Sum of the loads.
    pub(super) total: u64,
    /// Bins with a ball.
    pub(super) occupied: u64,
    /// Bins with two balls or more; counted in sampled rounds only.
    pub(super) shared: u64,
    /// Largest load; found in sampled rounds only.
    pub(super) max: u64,
}

/// Columns that a pass sums separately, so that it runs in vectors.
const COLUMNS: usize = 32;
/// Rows after which the sums of a column are collected: a count of that many fits a byte, and a sum its [`Load::Sum`].
const ROWS: usize = 255;

/// Deletes a ball from every bin of `after` that has one, and makes `before` the same.
#[inline(always)]
pub(super) fn finish<T: Load>(
    before: &mut [T],
    after: &mut [T],
    sampled: bool,
    measure: Measure,
    histogram: Option<&mut Histogram>,
) -> End {
    if !sampled {
        return delete::<T, false>(before, after);
    }
    match (histogram, measure) {
        (None, _) => delete::<T, true>(before, after),
        (Some(histogram), Measure::Pre) => {
            count(after, histogram);
            delete::<T, true>(before, after)
        }
        (Some(histogram), Measure::Post) => {
            let end = delete::<T, true>(before, after);
            count(after, histogram);
            end
        }
    }
}

#[inline(always)]
fn delete<T: Load, const SAMPLED: bool>(before: &mut [T], after: &mut [T]) -> End {
    let mut end = End::default();
    for (before, after) in before.chunks_mut(ROWS * COLUMNS).zip(after.chunks_mut(ROWS * COLUMNS)) {
        let (before, before_rest) = before.as_chunks_mut::<COLUMNS>();
        let (after, after_rest) = after.as_chunks_mut::<COLUMNS>();
        let mut total = [T::NOTHING; COLUMNS];
        let mut occupied = [0u8; COLUMNS];
        let mut shared = [0u8; COLUMNS];
        let mut max = [T::ZERO; COLUMNS];
        for (before, after) in before.iter_mut().zip(after) {
            for column in 0..COLUMNS {
                let load = after[column];
                let left = load.one_less();
                total[column] = load.added_to(total[column]);
                occupied[column] += u8::from(load > T::ZERO);
                if SAMPLED {
                    shared[column] += u8::from(left > T::ZERO);
                    max[column] = max[column].max(load);
                }
                after[column] = left;
                before[column] = left;
            }
        }
        end.total += total.iter().map(|&sum| sum.into()).sum::<u64>();
        end.occupied += occupied.iter().map(|&count| u64::from(count)).sum::<u64>();
        end.shared += shared.iter().map(|&count| u64::from(count)).sum::<u64>();
        end.max = end.max.max(max.iter().map(|&load| u64::from(load.into())).max().unwrap_or(0));
        for (before, after) in before_rest.iter_mut().zip(after_rest) {
            let load: u64 = u64::from((*after).into());
            end.total += load;
            end.occupied += u64::from(load > 0);
            end.shared += u64::from(load > 1);
            end.max = end.max.max(load);
            *after = after.one_less();
            *before = *after;
        }
    }
    end
}

/// Adds every load to `histogram`.
fn count<T: Load>(loads: &[T], histogram: &mut Histogram) {
    let mut low = [0u64; 256];
    for &load in loads {
        let load: u32 = load.into();
        match low.get_mut(load as usize) {
            Some(count) => *count += 1,
            None => histogram.add(u64::from(load), 1),
        }
    }
    for (load, &count) in low.iter().enumerate() {
        histogram.add(load as u64, count);
    }
}
