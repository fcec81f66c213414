//! How many bins have each load.

/// Bins of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Their load, in balls.
    pub load: u64,
    /// Their number.
    pub bins: u64,
}

/// The loads of all bins, without their places: levels by ascending load, none of them without a bin.
///
/// Memory goes with the number of loads that occur, whatever n or the largest load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    levels: Vec<Level>,
}

impl Profile {
    /// The profile of these bins: levels in any order, the same load any number of times.
    #[must_use]
    pub fn new(levels: impl IntoIterator<Item = Level>) -> Self {
        let mut levels: Vec<Level> = levels.into_iter().filter(|level| level.bins > 0).collect();
        levels.sort_unstable_by_key(|level| level.load);
        levels.dedup_by(|next, kept| {
            let same = next.load == kept.load;
            if same {
                kept.bins += next.bins;
            }
            same
        });
        Self::ascending(levels)
    }

    /// The profile of levels that ascend strictly and have bins.
    pub(super) fn ascending(levels: Vec<Level>) -> Self {
        debug_assert!(levels.windows(2).all(|pair| pair[0].load < pair[1].load));
        Self { levels }
    }

    /// The levels by ascending load, each with at least one bin.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Takes the levels out, for their memory.
    pub(super) fn into_levels(self) -> Vec<Level> {
        self.levels
    }

    /// Number of bins.
    #[must_use]
    pub fn bins(&self) -> u64 {
        self.levels.iter().map(|level| level.bins).sum()
    }

    /// Balls in all bins.
    #[must_use]
    pub fn balls(&self) -> u128 {
        self.levels.iter().map(|level| u128::from(level.load) * u128::from(level.bins)).sum()
    }

    /// Largest load; 0 where there is no bin.
    #[must_use]
    pub fn max_load(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.load)
    }

    /// Bins of load 0.
    #[must_use]
    pub fn empty_bins(&self) -> u64 {
        self.levels.first().filter(|level| level.load == 0).map_or(0, |level| level.bins)
    }

    /// Takes from every bin the balls that it holds beyond `capacity`; returns how many these are.
    pub fn cap(&mut self, capacity: u64) -> u64 {
        let (mut over, mut full) = (0, 0);
        while let Some(&Level { load, bins }) = self.levels.last().filter(|level| level.load > capacity) {
            over += (load - capacity) * bins;
            full += bins;
            self.levels.pop();
        }
        match self.levels.last_mut() {
            Some(level) if level.load == capacity => level.bins += full,
            _ if full > 0 => self.levels.push(Level { load: capacity, bins: full }),
            _ => {}
        }
        over
    }

    /// Every non-empty bin deletes one ball; returns how many do.
    pub fn serve(&mut self) -> u64 {
        let empty = self.empty_bins();
        let served = self.bins() - empty;
        let busy = usize::from(empty > 0);
        for level in &mut self.levels[busy..] {
            level.load -= 1;
        }
        if empty > 0 && self.levels.get(1).is_some_and(|level| level.load == 0) {
            self.levels[1].bins += empty;
            self.levels.remove(0);
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(levels: &[(u64, u64)]) -> Profile {
        Profile::new(levels.iter().map(|&(load, bins)| Level { load, bins }))
    }

    #[test]
    fn levels_are_sorted_merged_and_never_without_a_bin() {
        let p = profile(&[(7, 1), (0, 3), (7, 2), (4, 0), (u64::from(u32::MAX), 1)]);
        assert_eq!(p, profile(&[(0, 3), (7, 3), (u64::from(u32::MAX), 1)]));
        assert_eq!(p.levels().len(), 3);
        assert_eq!((p.bins(), p.empty_bins(), p.max_load()), (7, 3, u64::from(u32::MAX)));
        assert_eq!(p.balls(), 21 + u128::from(u32::MAX));
    }

    #[test]
    fn a_cap_takes_what_is_beyond_it() {
        for (before, after, over) in [
            (profile(&[(0, 5), (2, 2), (3, 1), (9, 2)]), profile(&[(0, 5), (2, 5)]), 15),
            (profile(&[(0, 5), (9, 2)]), profile(&[(0, 5), (2, 2)]), 14),
            (profile(&[(3, 4)]), profile(&[(2, 4)]), 4),
            (profile(&[(0, 1), (2, 4)]), profile(&[(0, 1), (2, 4)]), 0),
        ] {
            let mut p = before;
            assert_eq!(p.cap(2), over);
            assert_eq!(p, after);
        }
    }

    #[test]
    fn serving_takes_a_ball_from_every_bin_that_has_one() {
        for (before, after, served) in [
            (profile(&[(0, 5), (1, 2), (2, 1)]), profile(&[(0, 7), (1, 1)]), 3),
            (profile(&[(0, 5), (3, 2)]), profile(&[(0, 5), (2, 2)]), 2),
            (profile(&[(1, 4)]), profile(&[(0, 4)]), 4),
            (profile(&[(2, 4)]), profile(&[(1, 4)]), 4),
            (profile(&[(0, 4)]), profile(&[(0, 4)]), 0),
        ] {
            let mut p = before;
            assert_eq!(p.serve(), served);
            assert_eq!(p, after);
        }
    }
}
