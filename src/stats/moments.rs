//! Exact power sums of wide-ranging values.

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
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.sum_squares += u128::from(value) * u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Mean value, or `None` where there is none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Mean squared deviation from the mean, or `None` where there is no value.
    ///
    /// # Numerics
    /// The squares are centred on the floor of the mean in exact integers; only then is there a rounding.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let count = u128::from(self.count);
        let centre = self.sum.checked_div(count)?;
        let rest = (self.sum - centre * count) as f64 / self.count as f64;
        // Intermediate terms may pass 2^128, the result is at most `sum_squares`: exact modulo 2^128.
        let cross = centre.wrapping_mul(self.sum).wrapping_mul(2);
        let square = centre.wrapping_mul(centre).wrapping_mul(count);
        let centred = self.sum_squares.wrapping_sub(cross).wrapping_add(square);
        Some(centred as f64 / self.count as f64 - rest * rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(of(&[0, far]).variance(), Some(2f64.powi(122)));
    }
}
