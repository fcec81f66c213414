//! Exact decimal numbers: enough arithmetic to walk a range without the rounding of floats.

use crate::number;
use std::cmp::Ordering;
use std::fmt;

/// Powers of ten below this fit an `i128`.
const MOST_DIGITS: u32 = 38;

/// `digits * 10^exponent`, of at most 38 digits, the last of which is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i64,
}

impl Decimal {
    pub(super) const ZERO: Self = Self { digits: 0, exponent: 0 };
    pub(super) const ONE: Self = Self { digits: 1, exponent: 0 };

    /// `None` where more than 38 digits are needed.
    fn new(digits: i128, exponent: i64) -> Option<Self> {
        if digits == 0 {
            return Some(Self::ZERO);
        }
        let mut value = Self { digits, exponent };
        while value.digits % 10 == 0 {
            value = Self { digits: value.digits / 10, exponent: value.exponent + 1 };
        }
        (value.digits.unsigned_abs() < 10u128.pow(MOST_DIGITS)).then_some(value)
    }

    /// A decimal with an optional sign and power of ten, or a count in any form of [`number::count`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        scientific(text).or_else(|| Self::new(number::count(text).ok()?.into(), 0))
    }

    pub(super) fn is_whole(self) -> bool {
        self.exponent >= 0
    }

    /// `None` where the exact value needs more than 38 digits.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let (a, b, exponent) = self.aligned(other)?;
        Self::new(a.checked_add(b)?, exponent)
    }

    /// `None` where the exact value needs more than 38 digits.
    pub(super) fn times(self, other: Self) -> Option<Self> {
        Self::new(self.digits.checked_mul(other.digits)?, self.exponent + other.exponent)
    }

    /// The digits of both numbers at the smaller of the exponents, and that exponent.
    fn aligned(self, other: Self) -> Option<(i128, i128, i64)> {
        // Zero has every exponent.
        let exponent = match (self.digits, other.digits) {
            (0, _) => other.exponent,
            (_, 0) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let at = |value: Self| match value.digits {
            0 => Some(0),
            digits => {
                let zeros = u32::try_from(value.exponent - exponent).ok().filter(|zeros| *zeros <= MOST_DIGITS)?;
                digits.checked_mul(10i128.pow(zeros))
            }
        };
        Some((at(self)?, at(other)?, exponent))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.aligned(*other) {
            Some((a, b, _)) => a.cmp(&b),
            // One number is too large to be written at the exponent of the other, which has 38 digits at most.
            None if self.exponent > other.exponent => self.digits.cmp(&0),
            None => 0.cmp(&other.digits),
        }
    }
}

/// The number without a power of ten where that is short, so that it can stand in a template.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, digits) = (if self.digits < 0 { "-" } else { "" }, self.digits.unsigned_abs().to_string());
        match self.exponent {
            0..=40 => write!(f, "{sign}{digits}{:0<1$}", "", self.exponent as usize),
            -40..0 => {
                let places = self.exponent.unsigned_abs() as usize;
                let padded = format!("{digits:0>0$}", places + 1);
                let (whole, fraction) = padded.split_at(padded.len() - places);
                write!(f, "{sign}{whole}.{fraction}")
            }
            exponent => write!(f, "{sign}{digits}e{exponent}"),
        }
    }
}

/// `[+-]digits[.digits][e[+-]digits]`.
fn scientific(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = 0i128;
    let mut seen = false;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        digits = digits.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
        seen = true;
    }
    let places = i64::try_from(fraction.len()).ok()?;
    if seen { Decimal::new(sign * digits, i64::from(exponent) - places) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn numbers_are_exact_and_written_plainly() {
        for (text, written) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1_000", "1000"),
            ("2^20", "1048576"),
            ("10k", "10000"),
            ("1e-4", "0.0001"),
            ("-12.50", "-12.5"),
            (".5", "0.5"),
            ("+1E+3", "1000"),
            ("1e300", "1e300"),
            ("25e-301", "25e-301"),
            ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
        ] {
            assert_eq!(parsed(text).to_string(), written, "{text}");
        }
        for text in ["", "-", ".", "e3", "1e", "1..2", "ten", "1e99999999999", "--1", "1-2", "2^-3", "NaN", "１"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse(&"9".repeat(39)), None);
        assert_eq!(parsed(&("1".to_owned() + &"0".repeat(38))).to_string(), "1".to_owned() + &"0".repeat(38));
    }

    #[test]
    fn arithmetic_is_exact_or_refused() {
        assert_eq!(parsed("0.1").plus(parsed("0.2")), Some(parsed("0.3")));
        assert_eq!(
            parsed("1e20").plus(parsed("-1e-10")).map(|d| d.to_string()),
            Some("99999999999999999999.9999999999".into())
        );
        assert_eq!(parsed("1e300").plus(parsed("1")), None);
        assert_eq!(parsed("1e300").plus(Decimal::ZERO), Some(parsed("1e300")));
        assert_eq!(parsed("1e-300").times(parsed("10")), Some(parsed("1e-299")));
        assert_eq!(parsed("1.5").times(parsed("2")), Some(parsed("3")));
        assert_eq!(parsed(&"9".repeat(20)).times(parsed(&"9".repeat(19))), None);
        let rising =
            ["-1e2147483647", "-1e40", "-1", "-1e-40", "0", "1e-2147483647", "0.09", "0.5", "3", "1e40", "2e40"];
        for (i, a) in rising.iter().enumerate() {
            for (k, b) in rising.iter().enumerate() {
                assert_eq!(parsed(a).cmp(&parsed(b)), i.cmp(&k), "{a} and {b}");
            }
        }
        assert!(parsed("1e3").is_whole() && parsed("2.0").is_whole() && !parsed("0.5").is_whole());
    }
}
