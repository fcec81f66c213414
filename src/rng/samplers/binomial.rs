//! The binomial law for up to 2^53 trials.

use super::deviance::{deviance, or_half_turn, stirling_error};
use crate::float::{exp, exp_m1, ln, ln_1p};
use crate::rng::stream::Stream;

/// Means below this are drawn by inversion, the others by rejection; Hörmann's constants hold from 10 on.
const INVERSION_BELOW: f64 = 10.0;

/// Successes in `trials` independent trials whose odds, probability to counter-probability, are `odds`.
///
/// Odds and not a probability, so that neither a rare success nor a rare failure loses precision; infinite odds are
/// certain success. At most 2^53 trials.
///
/// # Method
/// With p at most 1/2 (the rarer outcome is counted): inversion from 0 upwards for means below 10; else transformed
/// rejection with squeeze, algorithm BTRS (Hörmann, "The generation of binomial random variates", Journal of
/// Statistical Computation and Simulation 46, 1993), which is exact for any probability function; the exact one is
/// that of Loader (2000), without the large logarithms that cancel each other.
///
/// # Numerics
/// Let `m` be the mean. The law drawn differs from the binomial one as if the odds had a relative error of 2^-51, which
/// is a shift of the mean by `m` 2^-51; and by less than 2^-50 in total variation beyond that. For the 10^15 balls of a
/// round such a shift is 1e-8 of a standard deviation. The probability of any success at all has a relative error below
/// 2^-50 however small it is.
pub fn binomial(stream: &mut Stream, trials: u64, odds: f64) -> u64 {
    debug_assert!(trials <= 1 << 53 && odds >= 0.0, "{trials} trials at odds {odds}");
    if odds > 1.0 { trials - rarer(stream, trials, 1.0 / odds) } else { rarer(stream, trials, odds) }
}

/// The law for odds of at most 1.
#[inline]
fn rarer(stream: &mut Stream, trials: u64, odds: f64) -> u64 {
    let p = odds / (1.0 + odds);
    let mean = trials as f64 * p;
    if mean < INVERSION_BELOW { inversion(stream, trials, odds, mean) } else { rejection(stream, trials, odds, p) }
}

/// The smallest k whose tail P(K > k) is at most a uniform number: small numbers, which are precise, stand for the tail.
#[inline]
fn inversion(stream: &mut Stream, trials: u64, odds: f64, mean: f64) -> u64 {
    if mean == 0.0 {
        return 0;
    }
    let u = stream.unit();
    // P(K > 0) is at most the mean, and equal to it for one trial.
    if u > mean {
        return 0;
    }
    if trials == 1 {
        return 1;
    }
    inversion_beyond_0(u, trials, odds, mean)
}

#[inline(never)]
fn inversion_beyond_0(u: f64, trials: u64, odds: f64, mean: f64) -> u64 {
    /// Probability of what is left out at the far end, where rounding could keep the search going.
    const NEGLIGIBLE: f64 = 1e-20;
    let log_none = -(trials as f64) * ln_1p(odds);
    let (mut probability, mut beyond) = if log_none > -0.5 {
        let beyond = -exp_m1(log_none);
        (1.0 - beyond, beyond)
    } else {
        let none = exp(log_none);
        (none, 1.0 - none)
    };
    let mut k = 0;
    while u <= beyond {
        probability *= (trials - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        beyond -= probability;
        if k == trials || (probability < NEGLIGIBLE && k as f64 > mean) {
            break;
        }
    }
    k
}

/// BTRS for means of at least 10 and p at most 1/2.
fn rejection(stream: &mut Stream, trials: u64, odds: f64, p: f64) -> u64 {
    let hat = Hat::new(trials, odds, p);
    loop {
        let v = stream.unit();
        let u = stream.unit() - 0.5;
        let room = 0.5 - u.abs();
        let k = hat.candidate(u, room);
        if room >= 0.07 && v <= hat.squeeze {
            return k as u64;
        }
        if (0..=trials as i64).contains(&k) && hat.accepts(k, v, room) {
            return k as u64;
        }
    }
}

/// The hat of BTRS and the law under it, in Hörmann's letters.
struct Hat {
    n: f64,
    /// Mean np of successes, and nq of failures.
    means: [f64; 2],
    a: f64,
    b: f64,
    alpha: f64,
    squeeze: f64,
    /// Floor and fraction of np + 1/2: the centre of the hat.
    centre: i64,
    fraction: f64,
}

impl Hat {
    #[inline]
    fn new(trials: u64, odds: f64, p: f64) -> Self {
        let n = trials as f64;
        let q = 1.0 / (1.0 + odds);
        let means = [n * p, n * q];
        let deviation = (means[0] * q).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let centre = means[0] as i64;
        // Exact below 2^52; floor(np + 1/2) would not be.
        let fraction = means[0] - centre as f64 + 0.5;
        Self {
            n,
            means,
            a: -0.0873 + 0.0248 * b + 0.01 * p,
            b,
            alpha: (2.83 + 5.1 / b) * deviation,
            squeeze: 0.92 - 4.2 / b,
            centre,
            fraction,
        }
    }

    /// The candidate of `u` in [-1/2, 1/2], `room` = 1/2 - |u|.
    #[inline]
    fn candidate(&self, u: f64, room: f64) -> i64 {
        let offset = (2.0 * self.a / room + self.b) * u + self.fraction;
        let truncated = offset as i64;
        // Saturated where the hat is far beyond any law.
        self.centre.saturating_add(truncated.saturating_sub(i64::from(truncated as f64 > offset)))
    }

    /// Whether `v` lies below the law at `k`, both in units of the hat.
    #[inline(never)]
    fn accepts(&self, k: i64, v: f64, room: f64) -> bool {
        let scaled = v * self.alpha / (self.a / (room * room) + self.b);
        let mode = (self.means[0] + self.means[0] / self.n) as i64;
        let [at_k, at_mode] = [k, mode].map(|x| self.log_shape(x));
        ln(scaled * scaled * (at_k.1 / at_mode.1)) <= at_k.0 - at_mode.0
    }

    /// `s` and `t` with P(x)^2 proportional to `e^s / t`.
    #[inline]
    fn log_shape(&self, x: i64) -> (f64, f64) {
        let successes = x as f64;
        let failures = self.n - successes;
        let difference = successes - self.means[0];
        let exponent = deviance(successes, self.means[0], difference)
            + deviance(failures, self.means[1], -difference)
            + stirling_error(successes)
            + stirling_error(failures);
        (-2.0 * exponent, or_half_turn(successes) * or_half_turn(failures))
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::rows;
    use super::*;

    fn hat(n: f64, odds: f64) -> Hat {
        Hat::new(n as u64, odds, odds / (1.0 + odds))
    }

    /// ln of P(k) / P(mode), and of the law at `k` in units of the hat at `u`: what `v` is compared with.
    fn log_ratio(hat: &Hat, k: i64, mode: i64) -> f64 {
        let [at_k, at_mode] = [k, mode].map(|x| hat.log_shape(x));
        (at_k.0 - at_mode.0 - ln(at_k.1 / at_mode.1)) / 2.0
    }

    #[test]
    fn log_probabilities_agree_with_high_precision() {
        for row in rows("binomial_log_ratio") {
            let [n, odds, k, mode, value] = row[..] else { panic!("five numbers: {row:?}") };
            let seen = log_ratio(&hat(n, odds), k as i64, mode as i64);
            // The odds carry a relative 2^-51: the mean is off by that, and z deviations away so is the logarithm.
            let deviation = (n * odds / (1.0 + odds) / (1.0 + odds)).sqrt();
            let shift = (k - mode).abs() / deviation * deviation / (1u64 << 51) as f64;
            let error = (seen - value).abs();
            assert!(error <= shift + 4e-14 * (1.0 + value.abs() / 16.0), "{row:?}: {seen}, error {error:e}");
        }
    }

    /// The hat lies above the law and the squeeze below it: what makes the rejection exact. Looked at on a fine grid of
    /// u for laws from the smallest mean to the largest, skewed and not.
    #[test]
    fn the_hat_covers_the_law_and_the_squeeze_does_not_pass_it() {
        for p in [0.5, 0.45, 0.3, 0.1, 0.01, 1e-4, 1e-8, 1e-13] {
            for mean in
                [10.0, 10.2, 10.5, 10.9, 11.3, 12.0, 14.0, 17.0, 23.0, 40.0, 100.0, 1e3, 1e5, 1e8, 1e11, 1e14f64]
            {
                let n = (mean / p).ceil();
                if n > 9e15 {
                    continue;
                }
                let hat = hat(n, p / (1.0 - p));
                let mode = ((n + 1.0) * p) as i64;
                for step in -4999..5000 {
                    let u = f64::from(step) / 10_000.0;
                    let room = 0.5 - u.abs();
                    let k = hat.candidate(u, room);
                    if !(0..=n as i64).contains(&k) {
                        assert!(room < 0.07, "the squeeze lets {k} of {n} pass");
                        continue;
                    }
                    let density = ln((hat.a / (room * room) + hat.b) / hat.alpha);
                    let law = log_ratio(&hat, k, mode) + density;
                    assert!(law <= 1e-9, "n {n}, p {p}, u {u}: the law is above the hat by {law:e}");
                    if room >= 0.07 {
                        let slack = law - ln(hat.squeeze);
                        assert!(slack >= 0.0, "n {n}, p {p}, u {u}: the squeeze is above the law by {:e}", -slack);
                    }
                }
            }
        }
    }

    /// Inversion steps from k to k + 1 where the uniform number passes P(K > k), deep into the tail.
    #[test]
    fn inversion_has_the_exact_tail() {
        for row in rows("binomial_tail") {
            let [n, odds, k, tail] = row[..] else { panic!("four numbers: {row:?}") };
            let mean = n * (odds / (1.0 + odds));
            let drawn = |u: f64| if u > mean { 0.0 } else { inversion_beyond_0(u, n as u64, odds, mean) as f64 };
            // Relative for the first step, absolute 2^-50 for all.
            let margin = (1.0 / (1u64 << 50) as f64) * if k == 0.0 { tail } else { 1.0 };
            assert!(drawn(tail + margin) <= k, "{row:?}: too many");
            if tail > margin {
                assert!(drawn(tail - margin) > k, "{row:?}: too few");
            }
        }
    }
}
