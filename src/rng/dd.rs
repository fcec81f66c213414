//! Double-double arithmetic: a value as the unevaluated sum of two `f64`, about 106 significant bits (Dekker 1971).
//!
//! Only +, -, *, / and the correctly rounded fused multiply-add are used, so a result has the same bits on every host.

use std::ops::{Add, Div, Mul, Sub};

/// `hi + lo` with `|lo|` at most half an ulp of `hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dd {
    hi: f64,
    lo: f64,
}

impl Dd {
    pub(crate) const ZERO: Dd = Dd { hi: 0.0, lo: 0.0 };
    pub(crate) const ONE: Dd = Dd { hi: 1.0, lo: 0.0 };

    fn two_sum(a: f64, b: f64) -> Dd {
        let hi = a + b;
        let bb = hi - a;
        Dd { hi, lo: (a - (hi - bb)) + (b - bb) }
    }

    pub(crate) fn hi(self) -> f64 {
        self.hi
    }

    /// `floor(self)` of a value in [0, 2^53) and the remainder in [0, 1).
    pub(crate) fn split_floor(self) -> (u64, Dd) {
        let mut whole = self.hi.floor();
        let mut rest = self - Dd::from(whole);
        if rest.hi < 0.0 {
            whole -= 1.0;
            rest = rest + Dd::ONE;
        }
        (whole as u64, rest)
    }

    /// `self * 2^64` rounded to an integer; for values in [0, 1].
    pub(crate) fn scaled_64(self) -> u128 {
        const SCALE: f64 = 18_446_744_073_709_551_616.0;
        // Both products are exact (a power of two); i128 holds the sum of the two roundings.
        let hi = self.hi * SCALE;
        (hi.trunc() as i128 + (hi.fract() + self.lo * SCALE).round() as i128).max(0) as u128
    }
}

impl From<f64> for Dd {
    fn from(hi: f64) -> Self {
        Dd { hi, lo: 0.0 }
    }
}

impl Add for Dd {
    type Output = Dd;
    fn add(self, o: Dd) -> Dd {
        let s = Dd::two_sum(self.hi, o.hi);
        let t = Dd::two_sum(self.lo, o.lo);
        let s = Dd::two_sum(s.hi, s.lo + t.hi);
        Dd::two_sum(s.hi, s.lo + t.lo)
    }
}

impl Sub for Dd {
    type Output = Dd;
    fn sub(self, o: Dd) -> Dd {
        self + Dd { hi: -o.hi, lo: -o.lo }
    }
}

impl Mul for Dd {
    type Output = Dd;
    fn mul(self, o: Dd) -> Dd {
        let hi = self.hi * o.hi;
        let lo = self.hi.mul_add(o.hi, -hi);
        Dd::two_sum(hi, lo + (self.hi * o.lo + self.lo * o.hi))
    }
}

impl Div for Dd {
    type Output = Dd;
    fn div(self, o: Dd) -> Dd {
        let q = self.hi / o.hi;
        let r = self - o * Dd::from(q);
        let q2 = r.hi / o.hi;
        let r2 = r - o * Dd::from(q2);
        Dd::two_sum(q, q2) + Dd::from(r2.hi / o.hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_are_good_to_a_hundred_bits() {
        let third = Dd::ONE / Dd::from(3.0);
        let error = third * Dd::from(3.0) - Dd::ONE;
        assert!(error.hi.abs() < 1e-31, "{error:?}");
        assert_eq!(third.scaled_64(), 0x5555_5555_5555_5555);
        assert_eq!((Dd::ONE - third).scaled_64(), 0xAAAA_AAAA_AAAA_AAAB);
    }

    #[test]
    fn fractions_scale_and_floor_splits() {
        assert_eq!(Dd::ZERO.scaled_64(), 0);
        assert_eq!(Dd::ONE.scaled_64(), 1 << 64);
        let (whole, rest) = (Dd::from(7.0) - Dd::from(1e-20)).split_floor();
        assert_eq!(whole, 6);
        assert!((rest.hi() - 1.0).abs() < 1e-15);
    }
}
