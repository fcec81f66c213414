//! The floor or ceiling of a product, right on average.

use crate::rng::dd::Dd;

/// Floor or ceiling of `rate * scale`, such that the mean is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    floor: u64,
    /// Uniform 64-bit numbers from here on give the ceiling.
    threshold: u128,
}

impl Rounded {
    /// The law for a `rate` in [0, 1] and a `scale` of at most 2^53.
    ///
    /// # Numerics
    /// The product is exact; the probability of the ceiling is rounded to a multiple of 2^-64.
    #[must_use]
    pub fn new(rate: f64, scale: u64) -> Self {
        let (floor, rest) = (Dd::from(rate) * Dd::from(scale as f64)).split_floor();
        Self { floor, threshold: (Dd::ONE - rest).scaled_64() }
    }

    /// Both values with their probabilities.
    #[must_use]
    pub fn values(&self) -> [(u64, f64); 2] {
        const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        let ceiling = ((1u128 << 64) - self.threshold) as f64 * SCALE;
        [(self.floor, self.threshold as f64 * SCALE), (self.floor + 1, ceiling)]
    }

    /// The value that the uniform `bits` stand for.
    #[must_use]
    pub fn draw(&self, bits: u64) -> u64 {
        self.floor + u64::from(u128::from(bits) >= self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::thresholds::Thresholds;

    #[test]
    fn small_scales_give_the_table_of_the_per_bin_process() {
        for (rate, scale) in [(0.95, 1024), (0.5, 10), (1.0, 7), (0.0, 7), (0.1, 10), (0.7, 10), (0.3, 1)] {
            let (law, table) = (Rounded::new(rate, u64::from(scale)), Thresholds::rounded(rate, scale));
            let edges = table.as_slice().iter().flat_map(|&t| [t - 1, t]);
            for bits in edges.chain([0, 1 << 63, u64::MAX]) {
                assert_eq!(law.draw(bits), u64::from(table.draw(bits)), "{rate} * {scale}, {bits:#x}");
            }
        }
    }

    #[test]
    fn large_products_are_exact() {
        // 0.95 is 0x1.e666666666666p-1 = 8556839143608934 / 2^53 to the last digit.
        let (floor, rest) = (949_999_999_999_999u64, 0.95);
        let law = Rounded::new(0.95, 1_000_000_000_000_000);
        let exact = 8_556_839_292_003_942u128 * 1_000_000_000_000_000;
        let _ = (floor, rest);
        assert_eq!(u128::from(law.floor), exact >> 53);
        assert_eq!(law.threshold, (1 << 64) - ((exact & ((1 << 53) - 1)) << 11));
    }
}
