//! Elementary functions that give the same bits on every host.
//!
//! Those of `std` call the mathematics library of the platform, whose last digits differ from one host to the next.
//! The laws of [`theory`](crate::theory) and the intervals of [`stats`](crate::stats) use these: plain Rust, made of
//! operations that IEEE 754 rounds correctly. Their error is below 1 ulp. The crate is named with its exact version in
//! `Cargo.toml`, because a later one may round differently.

pub(crate) use libm::{exp, expm1 as exp_m1, hypot, log as ln, log1p as ln_1p, pow as powf};

/// `base` to a whole power, by squaring: `f64::powi` leaves its rounding open.
pub(crate) fn powi(base: f64, exponent: u32) -> f64 {
    let (mut power, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            power *= square;
        }
        square *= square;
        rest /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of all values, mixed (FNV-1a over 64-bit words).
    fn digest(values: impl Iterator<Item = f64>) -> u64 {
        values.fold(0xCBF2_9CE4_8422_2325, |hash, value| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01B3))
    }

    /// Positive numbers of every tenth binary exponent, with irregular fractions.
    fn positive() -> impl Iterator<Item = f64> {
        (1..2047).step_by(10).flat_map(|exponent| {
            (0..8).map(move |i| f64::from_bits((exponent << 52) | (0x9E37_79B9_7F4A_7C15u64.wrapping_mul(i) >> 12)))
        })
    }

    #[test]
    fn bits_are_those_of_every_other_host() {
        let around_zero = || (-700..700).map(|i| f64::from(i) * 0.9371);
        assert_eq!(digest(around_zero().map(exp)), 0x12B4_648F_1A40_5687);
        assert_eq!(digest(around_zero().map(|x| exp_m1(x * 0.05))), 0xC58B_15D0_7BA5_6DB5);
        assert_eq!(digest(positive().map(ln)), 0x0F44_466A_DBC6_ED65);
        assert_eq!(digest(positive().map(ln_1p)), 0xECF0_ECA3_3469_630A);
        assert_eq!(digest(around_zero().map(|x| ln_1p(x / 660.0))), 0xF40D_19BE_424A_D46D);
        assert_eq!(digest(around_zero().map(|y| powf(0.8713, y))), 0x5A4D_9856_A90E_1977);
    }

    #[test]
    fn values_are_those_of_std_up_to_an_ulp_or_two() {
        for x in positive() {
            for (name, ours, std) in [
                ("exp", exp(-x), (-x).exp()),
                ("exp_m1", exp_m1(-x), (-x).exp_m1()),
                ("ln", ln(x), x.ln()),
                ("ln_1p", ln_1p(x), x.ln_1p()),
                ("powf", powf(x, -0.3), x.powf(-0.3)),
            ] {
                assert!((ours - std).abs() <= 2.0 * f64::EPSILON * std.abs(), "{name} of {x:e}: {ours:e} for {std:e}");
            }
        }
    }

    #[test]
    fn whole_powers() {
        assert_eq!([powi(3.0, 0), powi(3.0, 1), powi(3.0, 5), powi(-2.0, 3)], [1.0, 3.0, 243.0, -8.0]);
        assert_eq!((powi(2.0, 1023), powi(0.5, 1074)), (f64::MAX / (2.0 - f64::EPSILON), f64::from_bits(1)));
        assert_eq!(powi(0.0, 0), 1.0);
    }
}
