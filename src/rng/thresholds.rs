//! Integer laws drawn from one 64-bit uniform against a host-built table of cumulative thresholds.
//!
//! # Numerics
//! The probabilities come from the ratio recurrence outward from the mode, in double-double arithmetic built of
//! correctly rounded operations only, so a table has the same bits on every host; see the tests for its error against
//! high-precision values. A threshold is the cumulative probability rounded to a multiple of 2^-64: values whose
//! probability lies below that resolution at either end are never drawn. `lambda` is taken as the exact value of its
//! `f64`.
//!
//! [`Thresholds::from_exceedances`] is the exception: its thresholds are as good as the `f64` exceedances given, and
//! the same on every host if these are.

use super::dd::Dd;

/// A law on the integers `first..=last` as cumulative thresholds.
///
/// A uniform `u` in `0..2^64` gives `first + #{t in thresholds : t <= u}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    first: u32,
    thresholds: Vec<u64>,
    /// `guide[b]`: thresholds that are at most `b << 56`, so that a draw searches one 256th of the uniforms only.
    guide: Vec<u32>,
}

/// Relative weight below which a tail is cut: after at most 10^7 such terms the loss is still far below 2^-64.
const NEGLIGIBLE: f64 = 1.0 / (1u128 << 100) as f64;

impl Thresholds {
    /// The law that always gives `value`.
    #[must_use]
    pub fn constant(value: u32) -> Self {
        Self::new(value, Vec::new())
    }

    /// Binomial(`trials`, `p`) for `p` in [0, 1].
    #[must_use]
    pub fn binomial(trials: u32, p: f64) -> Self {
        if p == 0.0 || trials == 0 {
            return Self::constant(0);
        }
        if p == 1.0 {
            return Self::constant(trials);
        }
        let n = f64::from(trials);
        let odds = Dd::from(p) / (Dd::ONE - Dd::from(p));
        let (mode, _) = (Dd::from(n + 1.0) * Dd::from(p)).split_floor();
        let mode = (mode as u32).min(trials);
        // Pr(k + 1) / Pr(k) = (n - k) / (k + 1) * p / (1 - p).
        Self::unimodal(mode, trials, |k| Dd::from(n - f64::from(k)) / Dd::from(f64::from(k) + 1.0) * odds)
    }

    /// Poisson(`rate * scale`), the product taken exactly.
    #[must_use]
    pub fn poisson(rate: f64, scale: u32) -> Self {
        if rate == 0.0 || scale == 0 {
            return Self::constant(0);
        }
        let mean = Dd::from(rate) * Dd::from(f64::from(scale));
        let (mode, _) = mean.split_floor();
        Self::unimodal(mode as u32, u32::MAX, |k| mean / Dd::from(f64::from(k) + 1.0))
    }

    /// Floor or ceiling of `rate * scale` such that the mean is exact.
    #[must_use]
    pub fn rounded(rate: f64, scale: u32) -> Self {
        let (floor, rest) = (Dd::from(rate) * Dd::from(f64::from(scale))).split_floor();
        if rest == Dd::ZERO {
            return Self::constant(floor as u32);
        }
        Self::cumulative(floor as u32, &[Dd::ONE - rest, rest])
    }

    /// The law on 0, 1, .. with P(value >= k) = `exceedances[k - 1]`, k = 1, 2, ..
    ///
    /// A threshold is one minus the exceedance rounded to a multiple of 2^-64, so that the upper tail keeps the
    /// precision that exceedances have where cumulative probabilities are near 1; it ends where they round to 0.
    ///
    /// # Panics
    /// If the exceedances do not descend within [0, 1].
    #[must_use]
    pub fn from_exceedances(exceedances: impl IntoIterator<Item = f64>) -> Self {
        const SCALE: f64 = 18_446_744_073_709_551_616.0;
        let (mut first, mut thresholds, mut before) = (0, Vec::new(), 1.0);
        for p in exceedances {
            assert!((0.0..=before).contains(&p), "exceedances descend within [0, 1]: {p} after {before}");
            before = p;
            // The product is exact: a power of two.
            match u64::try_from((1 << 64) - (p * SCALE).round() as u128) {
                Ok(0) => first += 1,
                Ok(threshold) => thresholds.push(threshold),
                Err(_) => break,
            }
        }
        Self::new(first, thresholds)
    }

    /// The law with mode `mode` on `0..=last` where `ratio(k)` is Pr(k + 1) / Pr(k).
    fn unimodal(mode: u32, last: u32, ratio: impl Fn(u32) -> Dd) -> Self {
        let mut below = Vec::new();
        let mut weight = Dd::ONE;
        for k in (0..mode).rev() {
            weight = weight / ratio(k);
            if weight.hi() < NEGLIGIBLE {
                break;
            }
            below.push(weight);
        }
        let first = mode - below.len() as u32;
        let mut weights: Vec<Dd> = below.into_iter().rev().collect();
        weight = Dd::ONE;
        for k in mode..last {
            weights.push(weight);
            weight = weight * ratio(k);
            if weight.hi() < NEGLIGIBLE {
                break;
            }
        }
        weights.push(weight);
        Self::cumulative(first, &weights)
    }

    /// The law with probabilities proportional to `weights` on `first, first + 1, ..`.
    fn cumulative(first: u32, weights: &[Dd]) -> Self {
        let total = weights.iter().fold(Dd::ZERO, |sum, &w| sum + w);
        let mut sum = Dd::ZERO;
        let scaled: Vec<u128> = weights
            .iter()
            .map(|&w| {
                sum = sum + w;
                (sum / total).scaled_64()
            })
            .collect();
        let skip = scaled.iter().take_while(|&&t| t == 0).count();
        let thresholds = scaled[skip..].iter().map_while(|&t| u64::try_from(t).ok()).collect();
        Self::new(first + skip as u32, thresholds)
    }

    fn new(first: u32, thresholds: Vec<u64>) -> Self {
        let guide = (0..=256u128).map(|b| thresholds.partition_point(|&t| u128::from(t) <= b << 56) as u32).collect();
        Self { first, thresholds, guide }
    }

    /// The value that the uniform `u` stands for.
    #[inline]
    #[must_use]
    pub fn draw(&self, u: u64) -> u32 {
        let bucket = (u >> 56) as usize;
        let (low, high) = (self.guide[bucket] as usize, self.guide[bucket + 1] as usize);
        self.first + (low + self.thresholds[low..high].partition_point(|&t| t <= u)) as u32
    }

    /// Smallest value ever drawn.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Largest value ever drawn.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.first + self.thresholds.len() as u32
    }

    /// The probabilities of `first()`, `first() + 1`, .., `last()`: multiples of 2^-64, each rounded once.
    pub fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        const RESOLUTION: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        let below = [0].into_iter().chain(self.thresholds.iter().map(|&t| u128::from(t)));
        let up_to = self.thresholds.iter().map(|&t| u128::from(t)).chain([1 << 64]);
        below.zip(up_to).map(|(below, up_to)| (up_to - below) as f64 * RESOLUTION)
    }

    /// The cumulative thresholds, ascending: `P(value <= first + i) = as_slice()[i] / 2^64`.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.thresholds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_degenerate_laws() {
        for (law, value) in [
            (Thresholds::binomial(10, 0.0), 0),
            (Thresholds::binomial(10, 1.0), 10),
            (Thresholds::poisson(0.0, 10), 0),
            (Thresholds::rounded(0.5, 10), 5),
            (Thresholds::rounded(0.0, 10), 0),
            (Thresholds::rounded(1.0, 10), 10),
        ] {
            assert_eq!((law.first(), law.last(), law.draw(0), law.draw(u64::MAX)), (value, value, value, value));
        }
    }

    #[test]
    fn binomial_of_two_is_exact() {
        let law = Thresholds::binomial(2, 0.75);
        assert_eq!(law.as_slice(), [1 << 60, 7 << 60]);
        assert_eq!([0, (1 << 60) - 1, 1 << 60, (7 << 60) - 1, 7 << 60].map(|u| law.draw(u)), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn rounded_has_the_exact_mean() {
        let law = Thresholds::rounded(0.95, 1024); // 972.8 up to the rounding of 0.95
        assert_eq!((law.first(), law.last()), (972, 973));
        let up = 1.0 - law.as_slice()[0] as f64 / 2f64.powi(64);
        assert!((972.0 + up - 0.95 * 1024.0).abs() < 1e-12);
    }

    #[test]
    fn exceedances_become_thresholds_from_the_far_end() {
        let halves = Thresholds::from_exceedances((1..=64).map(|k| 0.5f64.powi(k)).chain([0.49 * 0.5f64.powi(64)]));
        assert_eq!((halves.first(), halves.last()), (0, 64));
        assert_eq!([0, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX].map(|u| halves.draw(u)), [0, 0, 1, 63, 64]);
        assert!(halves.probabilities().take(64).eq((1..=64).map(|k| 0.5f64.powi(k))));
        assert_eq!(halves.probabilities().last(), Some(0.5f64.powi(64)));
        assert_eq!(Thresholds::from_exceedances([1.0, 1.0, 0.25]), Thresholds::new(2, vec![3 << 62]));
        assert_eq!(Thresholds::from_exceedances([]), Thresholds::constant(0));
        assert_eq!(Thresholds::from_exceedances([1.0, 1.0]), Thresholds::constant(2));
    }

    #[test]
    fn guided_draw_equals_a_plain_search() {
        for law in [Thresholds::binomial(1000, 0.99), Thresholds::poisson(0.5, 7), Thresholds::binomial(1, 0.5)] {
            let plain = |u: u64| law.first() + law.as_slice().iter().filter(|&&t| t <= u).count() as u32;
            let edges = law.as_slice().iter().flat_map(|&t| [t.saturating_sub(1), t, t.saturating_add(1)]);
            for u in edges.chain((0..=256).map(|b: u64| (b << 56).wrapping_sub(b & 1))) {
                assert_eq!(law.draw(u), plain(u), "u = {u:#x}");
            }
        }
    }
}
