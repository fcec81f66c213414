//! Numbers as people write them: `1e6`, `2^20`, `1_000_000`, `10k`, `1-1e-4`, `1-2^-10`.

/// A whole number from 0 to 2^64 - 1.
///
/// Accepts digits with `_`, a power `2^20`, an integral decimal `1e6` or `2.5e3`, and the suffixes k, M, G (10^3, 10^6,
/// 10^9) and Ki, Mi, Gi (2^10, 2^20, 2^30).
///
/// # Errors
/// Says what is wrong and which forms are understood.
pub fn count(text: &str) -> Result<u64, String> {
    const FORMS: &str = "write a whole number such as 1000, 1_000_000, 1e6, 2^20, 10k or 4Mi";
    let wrong = |why: &str| format!("'{text}' {why}; {FORMS}");
    let compact: String = text.trim().chars().filter(|c| *c != '_').collect();
    let binary = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let (digits, scale) = binary
        .iter()
        .find_map(|(suffix, bits)| compact.strip_suffix(suffix).map(|rest| (rest.to_owned(), 1u64 << bits)))
        .unwrap_or_else(|| {
            // A decimal suffix is a power of ten, so that 1.5G works like 1.5e9.
            let decimal = [("k", "e3"), ("M", "e6"), ("G", "e9")];
            let power = decimal.iter().find_map(|(suffix, e)| compact.strip_suffix(suffix).map(|r| r.to_owned() + e));
            (power.unwrap_or_else(|| compact.clone()), 1)
        });
    let value = match digits.split_once('^') {
        Some((base, exponent)) => {
            let base = whole(base).ok_or_else(|| wrong("is not a power of whole numbers"))?;
            let exponent = whole(exponent).ok_or_else(|| wrong("is not a power of whole numbers"))?;
            u32::try_from(exponent).ok().and_then(|e| base.checked_pow(e)).ok_or_else(|| wrong("exceeds 2^64 - 1"))?
        }
        None => scientific(&digits).ok_or_else(|| wrong("is not a whole number below 2^64"))?,
    };
    value.checked_mul(scale).ok_or_else(|| wrong("exceeds 2^64 - 1"))
}

/// Plain digits.
fn whole(digits: &str) -> Option<u64> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Digits with an optional fraction and power of ten, if the value is whole: exact, never through a float.
fn scientific(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, whole(e.strip_prefix('+').unwrap_or(e))?),
        None => (text, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{integer}{fraction}");
    let zeros = u32::try_from(exponent).ok()?.checked_sub(fraction.len() as u32)?;
    whole(&digits)?.checked_mul(10u64.checked_pow(zeros)?)
}

/// A rate such as lambda: a decimal, or `1-x` with x a decimal or a power such as `2^-10`.
///
/// # Errors
/// Says what is wrong and which forms are understood. The range is for the caller to check.
pub fn rate(text: &str) -> Result<f64, String> {
    let compact = text.trim();
    let value = match compact.strip_prefix("1-") {
        Some(small) => decimal_or_power(small).map(|x| 1.0 - x),
        None => decimal_or_power(compact),
    };
    value.ok_or_else(|| format!("'{text}' is not a rate; write a number such as 0.95, 1-1e-4 or 1-2^-10"))
}

fn decimal_or_power(text: &str) -> Option<f64> {
    match text.split_once('^') {
        Some((base, exponent)) => {
            let (base, exponent) = (base.parse::<f64>().ok()?, exponent.parse::<i32>().ok()?);
            // The same on every host, which powi is not specified to be; and rounded once where the power itself is
            // exact, so that 10^-4 is 1e-4.
            let power = (0..exponent.unsigned_abs().min(2000)).fold(1.0, |product, _| product * base);
            Some(if exponent < 0 { 1.0 / power } else { power })
        }
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("0", 0),
            ("1000", 1000),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("2.5e3", 2500),
            ("1.0", 1),
            ("1E+3", 1000),
            ("2^20", 1 << 20),
            ("10k", 10_000),
            ("3M", 3_000_000),
            ("1.5G", 1_500_000_000),
            ("4Ki", 4096),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["", "-1", "1.5", "1e-3", "1e20", "2^64", "2^-1", "ten", "1k k", "^", "e3", "0x10", "1e99999999999"]
        {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(rate("0.95"), Ok(0.95));
        assert_eq!(rate("1-1e-4"), Ok(1.0 - 1e-4));
        assert_eq!(rate("1-2^-10"), Ok(1.0 - 1.0 / 1024.0));
        assert_eq!(rate("2^-3"), Ok(0.125));
        assert_eq!(rate("2^-1022"), Ok(f64::MIN_POSITIVE));
        for k in 0..=22 {
            assert_eq!(rate(&format!("10^-{k}")), rate(&format!("1e-{k}")), "10^-{k}");
        }
        assert_eq!(rate("-0.1"), Ok(-0.1));
        assert!(rate("NaN").is_ok_and(f64::is_nan));
        for text in ["", "1-", "lots", "1-2^x", "2-1"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
