//! How many balls a bin gets in a round: upper tails, and draws that are conditioned on them.

use crate::float::{exp, ln_1p};
use crate::rng::stream::Stream;

/// Law of the number of balls of one bin, or a part of a mixture of such laws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// So many balls, each in this bin with the same probability.
    Binomial(u64, f64),
    /// A Poisson number of this mean.
    Poisson(f64),
}

/// P(K >= a) for a = 0, 1, .. of the number K of balls that a bin gets.
///
/// # Numerics
/// Sums of positive terms, each a product of ratios: relative error below 2^-48 for tails above 1e-290, which are 0 below
/// the smallest `f64`.
#[derive(Clone, Debug, Default)]
pub struct CountTail {
    /// The law that the tails are of, and how many of them are wanted.
    made_for: Option<([(f64, Count); 2], u64)>,
    terms: Vec<f64>,
    tails: Vec<f64>,
}

impl CountTail {
    /// Takes the law that mixes the `parts` with their probabilities; tails are wanted for a up to `most`.
    pub fn set(&mut self, parts: [(f64, Count); 2], most: u64) {
        if self.made_for == Some((parts, most)) {
            return;
        }
        self.made_for = Some((parts, most));
        self.tails.clear();
        for (probability, count) in parts {
            if probability > 0.0 {
                self.add(probability, count, most);
            }
        }
    }

    fn add(&mut self, probability: f64, count: Count, most: u64) {
        /// Terms below this fraction of the smallest wanted tail are left out.
        const NEGLIGIBLE: f64 = 1.0 / (1u64 << 60) as f64;
        self.terms.clear();
        let (first, mean) = match count {
            Count::Binomial(balls, p) if p >= 1.0 => {
                self.terms.resize(balls as usize, 0.0);
                (1.0, balls as f64)
            }
            Count::Binomial(balls, p) => (exp(balls as f64 * ln_1p(-p)), balls as f64 * p),
            Count::Poisson(mean) => (exp(-mean), mean),
        };
        let mut term = probability * first;
        let mut wanted = f64::INFINITY;
        while term > 0.0 {
            let k = self.terms.len() as u64;
            self.terms.push(term);
            if k == most {
                wanted = term;
            }
            if k >= most && k as f64 > mean && term <= NEGLIGIBLE * wanted {
                break;
            }
            term *= match count {
                Count::Binomial(_, p) if p >= 1.0 => 0.0,
                Count::Binomial(balls, p) => (balls - k) as f64 / (k + 1) as f64 * (p / (1.0 - p)),
                Count::Poisson(mean) => mean / (k + 1) as f64,
            };
        }
        if self.tails.len() < self.terms.len() {
            self.tails.resize(self.terms.len(), 0.0);
        }
        let mut sum = 0.0;
        for (tail, term) in self.tails.iter_mut().zip(&self.terms).rev() {
            sum += term;
            *tail += sum;
        }
    }

    /// P(K >= a).
    #[must_use]
    pub fn at_least(&self, a: u64) -> f64 {
        self.tails.get(a as usize).copied().unwrap_or(0.0)
    }

    /// K given that it is at least `a`, which must be possible.
    pub fn draw(&self, stream: &mut Stream, a: u64) -> u64 {
        // The largest k whose tail a uniform number below the tail of a does not exceed.
        let target = stream.unit() * self.at_least(a);
        a + self.tails[a as usize + 1..].iter().take_while(|&&tail| tail >= target).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Domain, Draws};

    #[test]
    fn tails_are_those_of_the_law() {
        let mut tail = CountTail::default();
        // Bin(3, 1/4): 27, 27, 9, 1 of 64.
        tail.set([(1.0, Count::Binomial(3, 0.25)), (0.0, Count::Poisson(0.0))], 3);
        for (a, of_64) in [64.0, 37.0, 10.0, 1.0, 0.0].into_iter().enumerate() {
            assert!((tail.at_least(a as u64) - of_64 / 64.0).abs() < 1e-16, "P(K >= {a})");
        }
        tail.set([(0.5, Count::Binomial(2, 1.0)), (0.5, Count::Binomial(1, 1.0))], 5);
        assert_eq!([0, 1, 2, 3].map(|a| tail.at_least(a)), [1.0, 1.0, 0.5, 0.0]);
        // 40-digit values of the Poisson law of mean 1.65.
        tail.set([(1.0, Count::Poisson(1.65)), (0.0, Count::Poisson(0.0))], 41);
        for (a, value) in POISSON {
            assert!((tail.at_least(a) / value - 1.0).abs() < 1e-14, "P(K >= {a}) = {}", tail.at_least(a));
        }
    }

    const POISSON: [(u64, f64); 3] =
        [(1, 0.8079500913792459), (21, 1.4995773630130146e-16), (41, 4.934189438477379e-42)];

    #[test]
    fn conditioned_numbers_have_their_law() {
        let mut tail = CountTail::default();
        tail.set([(1.0, Count::Poisson(0.5)), (0.0, Count::Poisson(0.0))], 20);
        let mut stream = Stream::new(&Draws::new(1, 0, 0), Domain::Tail);
        let draws: Vec<u64> = (0..40_000).map(|_| tail.draw(&mut stream, 3)).collect();
        assert!(draws.iter().all(|&k| k >= 3));
        for a in 4..=5 {
            let p = tail.at_least(a) / tail.at_least(3);
            let seen = draws.iter().filter(|&&k| k >= a).count() as f64;
            // Five standard deviations: alpha below 1e-6.
            let bound = 5.0 * (40_000.0 * p * (1.0 - p)).sqrt();
            assert!((seen - 40_000.0 * p).abs() < bound, "P(K >= {a} | K >= 3): {seen} of 40000, bound {bound:.0}");
        }
    }
}
