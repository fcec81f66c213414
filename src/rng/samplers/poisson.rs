//! Poisson numbers, one step at a time.

/// The Poisson law as a ladder: from a number that is at least k, the odds that it exceeds k.
///
/// A whole class of bins climbs it together: of those with at least k balls, a binomial number has more.
#[derive(Clone, Debug, Default)]
pub struct PoissonLadder {
    mean: f64,
    odds: Vec<f64>,
}

impl PoissonLadder {
    /// Odds of exceeding 0, 1, 2, .. up to a number that is exceeded with probability below 2^-120.
    ///
    /// # Numerics
    /// With `r_k` = P(K > k) / P(K = k), `r_k = mean / (k + 1) (1 + r_{k+1})`: positive terms only, and errors of the far
    /// end shrink on the way down. Relative error below 2^-50 wherever P(K > k) is above 2^-60.
    pub fn odds(&mut self, mean: f64) -> &[f64] {
        if self.mean != mean || self.odds.is_empty() {
            self.mean = mean;
            self.climb();
        }
        &self.odds
    }

    fn climb(&mut self) {
        /// 2^-120: that none of 2^53 bins gets there is certain up to 2^-67.
        const NEGLIGIBLE: f64 = 1.0 / (1u128 << 120) as f64;
        self.odds.clear();
        // P(K = k) over P(K = floor(mean)) bounds P(K >= k) up to a factor of order 1 where it is small.
        let mut weight = 1.0;
        while weight > NEGLIGIBLE {
            let ratio = self.mean / (self.odds.len() + 1) as f64;
            if ratio < 1.0 {
                weight *= ratio;
            }
            self.odds.push(ratio);
        }
        let mut above = 0.0;
        for odds in self.odds.iter_mut().rev() {
            *odds *= 1.0 + above;
            above = *odds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::rows;
    use super::*;

    #[test]
    fn odds_agree_with_high_precision_and_the_ladder_is_long_enough() {
        let mut ladder = PoissonLadder::default();
        for row in rows("poisson_odds") {
            let [mean, k, value] = row[..] else { panic!("three numbers: {row:?}") };
            let seen = ladder.odds(mean)[k as usize];
            assert!((seen / value - 1.0).abs() < 1.0 / (1u64 << 50) as f64, "mean {mean}, k {k}: {seen} for {value}");
        }
    }

    #[test]
    fn no_mean_and_a_huge_mean_have_ladders() {
        let mut ladder = PoissonLadder::default();
        assert_eq!(ladder.odds(0.0), [0.0]);
        let odds = ladder.odds(1e4);
        assert!(odds[0] == f64::INFINITY && odds.iter().all(|r| !r.is_nan()), "certain, where an f64 knows no more");
        // P(K > mean) / P(K = mean) is near sqrt(pi mean / 2) - 2/3.
        assert!((odds[10_000] - 124.7).abs() < 0.1 && odds.len() < 11_500, "{}, {}", odds[10_000], odds.len());
    }
}
