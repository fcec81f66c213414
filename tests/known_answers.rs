//! Known answers: Philox and the arrival tables, from sources outside this program; `tests/registry.rs` has those of the
//! processes.

use leakybins::rng::philox::philox4x32;
use leakybins::rng::thresholds::Thresholds;

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_whitespace().collect())
}

#[test]
fn philox_gives_the_published_words() {
    let mut rows = 0;
    for fields in lines(include_str!("kat/philox4x32.txt")) {
        let words: Vec<u32> = fields.iter().map(|w| u32::from_str_radix(w, 16).expect("hexadecimal")).collect();
        let [c0, c1, c2, c3, k0, k1, out @ ..] = words.as_slice() else { panic!("ten words a line: {fields:?}") };
        assert_eq!(philox4x32([*c0, *c1, *c2, *c3], [*k0, *k1]), out, "{fields:?}");
        rows += 1;
    }
    assert_eq!(rows, 3);
}

/// Every threshold is the correctly rounded cumulative probability: double-double arithmetic leaves some 30 bits in
/// hand, so not one unit of 2^-64 may differ.
#[test]
fn thresholds_are_the_cumulative_probabilities_to_the_last_bit() {
    let mut rows = 0;
    let mut built = None;
    for fields in lines(include_str!("kat/thresholds.txt")) {
        let [name, n, lambda, k, expected] = fields.as_slice() else { panic!("five fields a line: {fields:?}") };
        let n: u32 = n.parse().expect("a number of bins");
        let rate = f64::from_bits(u64::from_str_radix(lambda, 16).expect("bits of a float"));
        let key = (name.to_string(), n, rate);
        if built.as_ref().is_none_or(|(k, _)| *k != key) {
            let law = match *name {
                "binomial" => Thresholds::binomial(n, rate),
                "poisson" => Thresholds::poisson(rate, n),
                other => panic!("unknown law {other}"),
            };
            built = Some((key, law));
        }
        let (_, law) = built.as_ref().expect("built above");
        let k: u32 = k.parse().expect("a value");
        let threshold = law.as_slice()[(k - law.first()) as usize];
        assert_eq!(threshold, expected.parse::<u64>().expect("a threshold"), "{fields:?}");
        rows += 1;
    }
    assert_eq!(rows, 193);
}
