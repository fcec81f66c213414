//! Grids of numbers as people write them: `0.5,0.9`, `1..4`, `0.1..0.5+0.1`, `2^10..2^20*4`, `1-2^-(1..16)`.
//!
//! A grid is a list of items, separated by commas. An item is
//!
//! * a number in any form of [`number`]: `2^10`, `0.95`, `1-2^-3`;
//! * a range: of whole numbers, `1..4`, both ends included; with a step, `0..100+25`, `0.5..0.9+0.1`; or with a factor,
//!   `2^10..2^20*4`, `1e-4..1e-1*10`. With a step or factor, the last value is the last that does not exceed the end;
//! * a template, a number with one such range in parentheses in it: `1-2^-(1..16)`, `2^(10..14)`. It stands for the
//!   numbers with each value of the range written in its place.
//!
//! Ranges are walked in exact decimal arithmetic, and each value is then read as if it had been written out: the values
//! of `0.1..0.5+0.1` are the floats nearest to the decimals 0.1, 0.2, .., and those of `1-2^-(1..16)` have the bits of
//! `1-2^-1`, `1-2^-2`, ... The order is kept; a number that has come before is dropped.

mod decimal;

use crate::number;
use decimal::Decimal;
use std::collections::HashSet;
use std::iter;
use std::str::FromStr;

/// Most values of a grid, repeated ones included.
pub const MAX_VALUES: usize = 100_000;

/// A grid of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<u64>);

/// A grid of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(pub Vec<f64>);

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        counts(text).map(Self)
    }
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        rates(text).map(Self)
    }
}

/// The counts of a grid.
///
/// # Errors
/// Says which item is wrong, why, and which forms are understood.
pub fn counts(text: &str) -> Result<Vec<u64>, String> {
    distinct(text, number::count, |count| count)
}

/// The rates of a grid. Their range is for the caller to check; they are finite.
///
/// # Errors
/// Says which item is wrong, why, and which forms are understood.
pub fn rates(text: &str) -> Result<Vec<f64>, String> {
    let finite = |text: &str| {
        let rate = number::rate(text)?;
        if rate.is_finite() { Ok(rate) } else { Err(format!("'{text}' is not finite")) }
    };
    // The sum makes one zero of two.
    distinct(text, finite, |rate| (rate + 0.0).to_bits())
}

/// The values of all items in order, the first of those with equal `key`.
fn distinct<T: Copy>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
    key: impl Fn(T) -> u64,
) -> Result<Vec<T>, String> {
    let (mut values, mut seen, mut written) = (Vec::new(), HashSet::new(), 0);
    for item in text.split(',').map(str::trim) {
        let mut add_all = || {
            for number in numbers(item, MAX_VALUES - written)? {
                let value = read(&number)?;
                written += 1;
                if seen.insert(key(value)) {
                    values.push(value);
                }
            }
            Ok(())
        };
        add_all().map_err(|why: String| {
            format!(
                "item '{item}' of the grid: {why}; an item is a number such as 2^10 or 0.95, a range such as 1..4, \
                 0.5..0.9+0.1 or 2^10..2^20*4, or a number with such a range in it, 1-2^-(1..16)"
            )
        })?;
    }
    Ok(values)
}

/// The numbers that one item stands for, written out; refused if there are more than `most`.
fn numbers(item: &str, most: usize) -> Result<Box<dyn Iterator<Item = String> + '_>, String> {
    if item.is_empty() {
        return Err("it is empty".into());
    }
    let (before, inner, after) = match (item.find('('), item.rfind(')')) {
        (None, None) => ("", item, ""),
        (Some(open), Some(close)) if open < close => (&item[..open], &item[open + 1..close], &item[close + 1..]),
        _ => return Err("a parenthesis has no partner".into()),
    };
    if [before, inner, after].iter().any(|part| part.contains(['(', ')'])) {
        return Err("it has more than one pair of parentheses".into());
    }
    let too_many = || format!("with it the grid has more than {MAX_VALUES} values");
    match inner.split_once("..") {
        Some((first, rest)) => {
            let range = Range::parse(first, rest)?;
            let len = range.len(most)?.ok_or_else(too_many)?;
            Ok(Box::new(range.values().take(len).map(move |value| format!("{before}{value}{after}"))))
        }
        None if inner != item => Err(format!("there is no range in its parentheses, only '{inner}'")),
        None if most == 0 => Err(too_many()),
        None => Ok(Box::new(iter::once(item.to_owned()))),
    }
}

/// From one value to the next.
#[derive(Clone, Copy)]
enum Step {
    Plus(Decimal),
    Times(Decimal),
}

impl Step {
    /// `None` where the exact value needs more than 38 digits.
    fn after(self, value: Decimal) -> Option<Decimal> {
        match self {
            Self::Plus(step) => value.plus(step),
            Self::Times(factor) => value.times(factor),
        }
    }
}

/// The values from `first` to `last`.
struct Range {
    first: Decimal,
    last: Decimal,
    step: Step,
}

impl Range {
    /// The range `first..rest`, in which `rest` is the end with an optional step or factor.
    fn parse(first: &str, rest: &str) -> Result<Self, String> {
        let decimal = |text: &str| {
            let text = text.trim();
            Decimal::parse(text)
                .ok_or_else(|| format!("'{text}' is not an exact number of at most 38 digits, as a range needs"))
        };
        // A plus after e is the sign of an exponent.
        let plus = |(at, _): &(usize, &str)| !rest[..*at].ends_with(['e', 'E']);
        let (last, step) = if let Some((last, factor)) = rest.split_once('*') {
            (last, Step::Times(decimal(factor)?))
        } else if let Some((at, _)) = rest.match_indices('+').find(plus) {
            (&rest[..at], Step::Plus(decimal(&rest[at + 1..])?))
        } else {
            (rest, Step::Plus(Decimal::ONE))
        };
        let stepless = last.len() == rest.len();
        let (first, last) = (decimal(first)?, decimal(last)?);
        match step {
            _ if first > last => Err(format!("the range is empty, because {first} exceeds {last}")),
            _ if stepless && !(first.is_whole() && last.is_whole()) => {
                Err("a range of numbers that are not whole needs a step or a factor".into())
            }
            Step::Plus(step) if step <= Decimal::ZERO => Err(format!("the step {step} is not above 0")),
            Step::Times(factor) if factor <= Decimal::ONE => Err(format!("the factor {factor} is not above 1")),
            Step::Times(_) if first <= Decimal::ZERO => {
                Err(format!("a range with a factor must start above 0, not at {first}"))
            }
            _ => Ok(Self { first, last, step }),
        }
    }

    /// How many values, or `None` if more than `most`.
    fn len(&self, most: usize) -> Result<Option<usize>, String> {
        let mut value = self.first;
        for len in 1..=most {
            let next =
                self.step.after(value).ok_or_else(|| format!("the value after {value} has more than 38 digits"))?;
            if next > self.last {
                return Ok(Some(len));
            }
            value = next;
        }
        Ok(None)
    }

    /// From the first value on.
    fn values(self) -> impl Iterator<Item = Decimal> {
        iter::successors(Some(self.first), move |value| self.step.after(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_are_those_written() {
        for (text, values) in [
            ("7", &[7][..]),
            (" 2^10 , 10k ", &[1024, 10_000]),
            ("1..4", &[1, 2, 3, 4]),
            ("3..3", &[3]),
            ("0..100+25", &[0, 25, 50, 75, 100]),
            ("0..100+30", &[0, 30, 60, 90]),
            ("2^10..2^20*4", &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]),
            ("1k..1e4*10", &[1000, 10_000]),
            ("1e+3..1e+4+3e+3", &[1000, 4000, 7000, 10_000]),
            ("1_000 .. 3_000 + 1_000", &[1000, 2000, 3000]),
            ("2^(10..12)", &[1024, 2048, 4096]),
            ("2^(0..20+10)", &[1, 1 << 10, 1 << 20]),
            ("(1..3)k", &[1000, 2000, 3000]),
            ("1.5..3+1.5k", &[]),
            ("0.5..2.5+0.5", &[]),
            ("4,1..5,2,4", &[4, 1, 2, 3, 5]),
            ("18446744073709551614..2^64*2", &[]),
            ("18446744073709551614..18446744073709551615", &[u64::MAX - 1, u64::MAX]),
        ] {
            match counts(text) {
                Ok(found) => assert_eq!(found, values, "{text}"),
                Err(why) => assert!(values.is_empty(), "{text}: {why}"),
            }
        }
    }

    #[test]
    fn steps_give_the_floats_of_the_decimals() {
        assert_eq!(rates("0.1..0.5+0.1"), Ok(vec![0.1, 0.2, 0.3, 0.4, 0.5]));
        assert_eq!(rates("-0.2..0.2+0.1,-0"), Ok(vec![-0.2, -0.1, 0.0, 0.1, 0.2]));
        assert_eq!(rates("1e-4..1e-1*10"), Ok(vec![1e-4, 1e-3, 1e-2, 1e-1]));
        assert_eq!(rates("1e-300..1e-299*10"), Ok(vec![1e-300, 1e-299]));
        assert_eq!(rates("0.5..0.9+0.1,0.95,0.9"), Ok(vec![0.5, 0.6, 0.7, 0.8, 0.9, 0.95]));
        let hundredths = rates("0..1+0.01").expect("a grid");
        assert_eq!(hundredths.len(), 101);
        for (i, rate) in hundredths.iter().enumerate() {
            assert_eq!(format!("{i}e-2").parse(), Ok(*rate));
        }
    }

    #[test]
    fn templates_give_the_bits_of_their_numbers() {
        for template in ["1-2^-(1..60)", "1-10^-(1..17)", "2^-(1..60)", "1-1e-(1..17)", "1-2^(-60..-1)"] {
            let (before, after) = template.split_once('(').expect("a range");
            let (range, after) = after.split_once(')').expect("a range");
            let (first, last) = range.split_once("..").expect("a range");
            let [first, last] = [first, last].map(|end| end.parse::<i32>().expect("a whole number"));
            let meant: Vec<f64> =
                (first..=last).map(|i| number::rate(&format!("{before}{i}{after}")).expect("a rate")).collect();
            let found = rates(template).expect("a grid");
            // The last ones may round to 1 and be one.
            let bits = |rates: &[f64]| rates.iter().map(|r| r.to_bits()).collect::<Vec<_>>();
            let mut meant = bits(&meant);
            meant.dedup();
            assert_eq!(bits(&found), meant, "{template}");
        }
    }

    #[test]
    fn what_is_no_grid_is_refused_with_the_item_and_the_reason() {
        let huge = format!("1..{MAX_VALUES},0");
        for (text, item, why) in [
            ("", "''", "it is empty"),
            ("1,,2", "''", "it is empty"),
            ("1,", "''", "it is empty"),
            ("5..1", "'5..1'", "5 exceeds 1"),
            ("3,2^3..7", "'2^3..7'", "8 exceeds 7"),
            ("1..2+0", "'1..2+0'", "the step 0 is not above 0"),
            ("1..2+-1", "'1..2+-1'", "the step -1 is not above 0"),
            ("1..2*1", "'1..2*1'", "the factor 1 is not above 1"),
            ("1..2*0.5", "'1..2*0.5'", "the factor 0.5 is not above 1"),
            ("0..2*2", "'0..2*2'", "must start above 0, not at 0"),
            ("0.5..0.9", "'0.5..0.9'", "needs a step"),
            ("2^((1..2))", "'2^((1..2))'", "more than one pair"),
            ("(1..2)^(1..2)", "'(1..2)^(1..2)'", "more than one pair"),
            ("2^(1..2", "'2^(1..2'", "no partner"),
            ("2^)1..2(", "'2^)1..2('", "no partner"),
            ("2^(3)", "'2^(3)'", "only '3'"),
            ("2^()", "'2^()'", "only ''"),
            ("ten", "'ten'", "'ten' is not a"),
            ("1..ten", "'1..ten'", "'ten' is not an exact number"),
            ("1..", "'1..'", "'' is not an exact number"),
            ("1..2..3", "'1..2..3'", "'2..3' is not an exact number"),
            ("1-(1..3)..4", "'1-(1..3)..4'", "is not a"),
            ("0..1e9", "'0..1e9'", "more than 100000 values"),
            ("0..1e30", "'0..1e30'", "more than 100000 values"),
            ("1..1e9*1.0001", "'1..1e9*1.0001'", "has more than 38 digits"),
            (&huge, "'0'", "more than 100000 values"),
        ] {
            for error in [counts(text).expect_err("no grid"), rates(text).expect_err("no grid")] {
                assert!(error.starts_with(&format!("item {item} of the grid: ")), "{text}: {error}");
                assert!(error.contains(why) && error.ends_with("in it, 1-2^-(1..16)"), "{text}: {error}");
            }
        }
        for text in ["NaN", "inf", "1e999", "1e400..1e401*10", "1-10^-(1..4+0.5)"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_or_grows_without_bound(text in "[0-9.,()*+^e_kMGi -]{0,40}|\\PC{0,20}") {
            for len in [counts(&text).map(|grid| grid.len()), rates(&text).map(|grid| grid.len())].into_iter().flatten() {
                prop_assert!((1..=MAX_VALUES).contains(&len));
            }
        }

        #[test]
        fn ranges_have_the_values_between_their_ends(
            first in 0u64..1000, last in 0u64..1000, step in 1u64..100, factor in 2u64..10,
        ) {
            let plus: Vec<u64> = (first..=last).step_by(step as usize).collect();
            let times: Vec<u64> = iter::successors(Some(first), |v| Some(v * factor)).take_while(|v| first > 0 && *v <= last).collect();
            for (found, meant) in [
                (counts(&format!("{first}..{last}+{step}")), plus),
                (counts(&format!("{first}..{last}*{factor}")), times),
            ] {
                prop_assert_eq!(found.unwrap_or_default(), meant);
            }
        }
    }
}
