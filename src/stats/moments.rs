//! Exact power sums of wide-ranging values.

/// A sum that wrapped would be a wrong result, not an absurd one: it is checked in every build.
pub(super) const TOO_LARGE: &str = "a sum of squares stays below 2^128";

/// Count, sum, sum of squares, smallest and largest of the values seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u128,
    /// Sum of their squares.
    pub sum_squares: u128,
    /// Smallest value; `u64::MAX` where there is none.
    pub min: u64,
    /// Largest value; 0 where there is none.
    pub max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, sum_squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Moments {
    /// Adds one value.
    ///
    /// # Panics
    /// If the sum of the squares passes 2^128: 2^28 samples of 2^50 balls.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        let square = u128::from(value) * u128::from(value);
        self.sum_squares = self.sum_squares.checked_add(square).expect(TOO_LARGE);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    ///
    /// # Panics
    /// If a sum passes its integer; that of the squares does so first, at 2^128.
    pub fn merge(&mut self, other: &Moments) {
        *self = self.checked_merge(other).expect(TOO_LARGE);
    }

    /// The values of both; `None` where a sum passes its integer.
    #[must_use]
    pub fn checked_merge(&self, other: &Moments) -> Option<Self> {
        let PowerSums { count, sum, sum_squares } = self.power_sums().checked_merge(other.power_sums())?;
        Some(Self { count, sum, sum_squares, min: self.min.min(other.min), max: self.max.max(other.max) })
    }

    /// Mean value, or `None` where there is none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Mean squared deviation from the mean, or `None` where there is no value.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.power_sums().scaled_squares() / (self.count as f64 * self.count as f64))
    }

    /// Without the extremes.
    #[must_use]
    pub fn power_sums(&self) -> PowerSums {
        PowerSums { count: self.count, sum: self.sum, sum_squares: self.sum_squares }
    }
}

/// Count, sum and sum of squares of some values: all that a mean and its error need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerSums {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u128,
    /// Sum of their squares.
    pub sum_squares: u128,
}

impl PowerSums {
    /// Adds one value.
    ///
    /// # Panics
    /// If a sum passes 2^128.
    pub fn add(&mut self, value: u128) {
        self.add_times(value, 1);
    }

    /// Adds one value `times` times.
    ///
    /// # Panics
    /// If a sum passes 2^128.
    pub fn add_times(&mut self, value: u128, times: u64) {
        let times_wide = u128::from(times);
        let squares = value.checked_mul(value).and_then(|square| square.checked_mul(times_wide));
        self.merge(PowerSums { count: times, sum: value * times_wide, sum_squares: squares.expect(TOO_LARGE) });
    }

    /// Adds all values of `other`.
    ///
    /// # Panics
    /// If a sum passes 2^128.
    pub fn merge(&mut self, other: PowerSums) {
        *self = self.checked_merge(other).expect(TOO_LARGE);
    }

    /// The values of both; `None` where a sum passes its integer.
    #[must_use]
    pub fn checked_merge(self, other: PowerSums) -> Option<Self> {
        Some(Self {
            count: self.count.checked_add(other.count)?,
            sum: self.sum.checked_add(other.sum)?,
            sum_squares: self.sum_squares.checked_add(other.sum_squares)?,
        })
    }

    /// Sum of the squared deviations from the mean; 0 where there is no value.
    #[must_use]
    pub fn centred_squares(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.scaled_squares() / self.count as f64 }
    }

    /// The number of values times the sum of their squared deviations from the mean.
    ///
    /// # Numerics
    /// The squares are centred on the floor of the mean in exact integers, and so is what the rest of the mean takes
    /// away wherever it matters: one rounding, whatever the mean.
    fn scaled_squares(&self) -> f64 {
        let count = u128::from(self.count);
        let Some(centre) = self.sum.checked_div(count) else { return 0.0 };
        let rest = self.sum - centre * count;
        // Intermediate terms may pass 2^128, the result is at most `sum_squares`: exact modulo 2^128.
        let cross = centre.wrapping_mul(self.sum).wrapping_mul(2);
        let square = centre.wrapping_mul(centre).wrapping_mul(count);
        let centred = self.sum_squares.wrapping_sub(cross).wrapping_add(square);
        match centred.checked_mul(count) {
            Some(scaled) => scaled.saturating_sub(rest * rest) as f64,
            // rest^2 / count is below 2^64 and so, for fewer than 2^43 values, below one rounding of `centred`.
            None => centred as f64 * count as f64,
        }
    }

    /// Kish's effective number of the values, (sum)^2 / (sum of squares): how many equal values would be spread as
    /// thinly. NaN where all are 0.
    pub(super) fn effective_count(&self) -> f64 {
        let sum = self.sum as f64;
        sum / self.sum_squares as f64 * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::powi;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&v| moments.add(v));
        moments
    }

    #[test]
    fn variance_survives_large_means() {
        assert_eq!(of(&[]).variance(), None);
        assert_eq!(of(&[7]).variance(), Some(0.0));
        assert_eq!(of(&[1, 2, 3, 4]).variance(), Some(1.25));
        let far = 1 << 62;
        assert_eq!(of(&[far + 1, far + 2, far + 3, far + 4]).variance(), Some(1.25));
        assert_eq!(of(&[0, far]).variance(), Some(powi(2.0, 122)));
    }
}
