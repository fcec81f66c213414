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
}
