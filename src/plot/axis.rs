//! Axes: which part of the numbers is visible, where a value lies in it, and the ticks.

/// How an axis turns values into places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// In proportion.
    Linear,
    /// In proportion, with ticks at whole numbers only: loads, counts.
    Whole,
    /// By the logarithm. Values that are not positive have no place.
    Log,
}

/// The visible part of an axis, never empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    scale: Scale,
    /// Ends in the unit of `forward`: the value, or its decimal logarithm.
    low: f64,
    high: f64,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// From 0 at the lower end of the axis to 1 at its upper end.
    pub(super) place: f64,
    /// The value as text; none for a tick between labels.
    pub(super) label: Option<String>,
}

/// Values beyond this have no place on a linear axis: the length of an axis has to be finite.
const LARGEST: f64 = 1e300;
/// Free space at each end, as a part of what the values fill.
const MARGIN: f64 = 0.04;
/// Most labels of an axis.
const MAX_LABELS: i32 = 9;
/// Most powers of ten with a tick.
const MAX_TICKS: i32 = 36;

impl Range {
    /// The range that holds all drawable `values` with a margin, which does not reach below 0 where no value does.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let forward = values.filter_map(|value| forward(scale, value));
        let bounds = forward.fold(None, |bounds: Option<(f64, f64)>, at| {
            Some(bounds.map_or((at, at), |(low, high)| (low.min(at), high.max(at))))
        });
        let (mut low, mut high) = bounds.unwrap_or((0.0, 1.0));
        let smallest = low;
        // Values that are all alike, or differ in their last digits only, still need an axis of some length.
        let least = if scale == Scale::Log { 1.0 } else { (1e-6 * low.abs().max(high.abs())).max(1e-300) };
        let least = if scale == Scale::Whole { least.max(2.0) } else { least };
        let lacking = (least - (high - low)).max(0.0);
        let margin = MARGIN * (high - low + lacking);
        high += 0.5 * lacking + margin;
        low -= 0.5 * lacking + margin;
        if scale != Scale::Log && smallest >= 0.0 {
            low = low.max(if scale == Scale::Whole { -0.5 } else { 0.0 });
        }
        Self { scale, low, high }
    }

    /// Where `value` is, from 0 to 1 within the axis; none where it has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        forward(self.scale, value).map(|at| (at - self.low) / (self.high - self.low))
    }

    /// The end of an interval: within the axis in any case, and 0 at the lower end of a logarithmic axis.
    pub(super) fn end_of_interval(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            None
        } else if self.scale == Scale::Log && value <= 0.0 {
            Some(0.0)
        } else {
            Some(self.place(value).unwrap_or(if value > 0.0 { 1.0 } else { 0.0 }).clamp(0.0, 1.0))
        }
    }

    /// The ticks, ascending.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear | Scale::Whole => self.even_ticks(),
            Scale::Log => self.decades(),
        }
    }

    fn even_ticks(&self) -> Vec<Tick> {
        let length = self.high - self.low;
        let mut exponent = (length / f64::from(MAX_LABELS)).log10().floor() as i32;
        if self.scale == Scale::Whole {
            exponent = exponent.max(0);
        }
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * 10f64.powi(exponent));
        let step = steps.into_iter().find(|step| length / step < f64::from(MAX_LABELS)).unwrap_or(steps[3]);
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        let largest = self.low.abs().max(self.high.abs());
        (0..=MAX_LABELS)
            .map(|i| first + f64::from(i))
            .filter(|i| *i <= last)
            .map(|i| self.tick(i * step, Some(decimal(i * step, step, largest))))
            .collect()
    }

    fn tick(&self, value: f64, label: Option<String>) -> Tick {
        Tick { place: (value - self.low) / (self.high - self.low), label }
    }

    /// Powers of ten, thinned out where they are many; with 2 and 5 times a power where they are few.
    fn decades(&self) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let span = self.high - self.low;
        if span < 2.5 {
            let digits = if span < 0.9 { &[1, 2, 3, 4, 5, 6, 7, 8, 9][..] } else { &[1, 2, 5] };
            let values = (first - 1..=last).flat_map(|e| digits.iter().map(move |&digit| (digit, e)));
            return values
                .map(|(digit, e)| (digit, e, f64::from(e) + f64::from(digit).log10()))
                .filter(|(_, _, at)| (self.low..=self.high).contains(at))
                .map(|(digit, e, at)| self.tick(at, Some(multiple(digit, e))))
                .collect();
        }
        let count = last - first + 1;
        let step = [1, 2, 3, 5, 10, 20, 50, 100].into_iter().find(|step| count / step < MAX_LABELS).unwrap_or(100);
        let labelled = |e: i32| e.rem_euclid(step) == 0;
        let powers = (first..=last).filter(|e| labelled(*e) || count <= MAX_TICKS);
        let powers = powers.map(|e| self.tick(f64::from(e), labelled(e).then(|| power_of_ten(e))));
        let between = (first - 1..=last).filter(|_| step == 1);
        let between = between.flat_map(|e| (2..10).map(move |digit| f64::from(e) + f64::from(digit).log10()));
        let between = between.filter(|at| (self.low..=self.high).contains(at)).map(|at| self.tick(at, None));
        let mut ticks: Vec<Tick> = powers.chain(between).collect();
        ticks.sort_by(|a, b| a.place.total_cmp(&b.place));
        ticks
    }
}

fn forward(scale: Scale, value: f64) -> Option<f64> {
    match scale {
        Scale::Linear | Scale::Whole => (value.abs() <= LARGEST).then_some(value),
        Scale::Log => (value > 0.0 && value.is_finite()).then(|| value.log10()),
    }
}

/// `10⁻³`.
pub(super) fn power_of_ten(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = exponent.unsigned_abs().to_string();
    format!("10{sign}{}", digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]).collect::<String>())
}

/// `digit` times a power of ten: as a decimal where that is short.
fn multiple(digit: i32, exponent: i32) -> String {
    match exponent {
        0..=5 => format!("{digit}{}", "0".repeat(exponent as usize)),
        -4..=-1 => format!("0.{}{digit}", "0".repeat(-exponent as usize - 1)),
        _ if digit == 1 => power_of_ten(exponent),
        _ => format!("{digit}·{}", power_of_ten(exponent)),
    }
}

/// A tick of an axis with ticks every `step`, written with the digits that tell it from its neighbours.
fn decimal(value: f64, step: f64, largest: f64) -> String {
    // Rounded, for the logarithm of 0.001 may come out a little below -3.
    let exponent = |x: f64| (x.log10() + 1e-9).floor() as i32;
    let text = if value == 0.0 {
        "0".to_owned()
    } else if largest >= 1e6 || step < 1e-4 {
        let e = exponent(largest);
        let digits = (e - exponent(step)).clamp(0, 12) as usize;
        // In two steps, for a power of ten may be too large or too small for a float.
        let mantissa = value / 10f64.powi(e / 2) / 10f64.powi(e - e / 2);
        format!("{mantissa:.digits$}·{}", power_of_ten(e))
    } else {
        format!("{value:.*}", (-exponent(step)).max(0) as usize)
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        Range::new(scale, values.iter().copied()).ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_the_numbers_that_people_would_choose() {
        for (scale, values, expected) in [
            (Scale::Linear, &[0.0, 0.45][..], "0 0.1 0.2 0.3 0.4"),
            (Scale::Linear, &[-1.0, 1.0], "−1.0 −0.5 0 0.5 1.0"),
            (Scale::Linear, &[2e6, 3e6], "2.0·10⁶ 2.2·10⁶ 2.4·10⁶ 2.6·10⁶ 2.8·10⁶ 3.0·10⁶"),
            (Scale::Whole, &[4.0, 11.0], "4 5 6 7 8 9 10 11"),
            (Scale::Whole, &[8.0, 11.0], "8 9 10 11"),
            (Scale::Whole, &[3.0], "2 3 4"),
            (Scale::Whole, &[0.0, 1000.0], "0 200 400 600 800 1000"),
            (Scale::Log, &[1e-3, 1.0], "10⁻³ 10⁻² 10⁻¹ 10⁰"),
            (Scale::Log, &[1e-15, 1.0], "10⁻¹⁴ 10⁻¹² 10⁻¹⁰ 10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 10⁰"),
            (Scale::Log, &[1e-300, 1.0], "10⁻³⁰⁰ 10⁻²⁵⁰ 10⁻²⁰⁰ 10⁻¹⁵⁰ 10⁻¹⁰⁰ 10⁻⁵⁰ 10⁰"),
            (Scale::Log, &[2.0, 50.0], "2 5 10 20 50"),
            (Scale::Log, &[4e-9], "2·10⁻⁹ 5·10⁻⁹ 10⁻⁸"),
        ] {
            let found = labels(scale, values).join(" ");
            assert!(found == expected, "{scale:?} {values:?}: {found}");
        }
    }

    #[test]
    fn zero_runs_to_the_end_of_a_log_axis() {
        let range = Range::new(Scale::Log, [1e-3, 1.0].into_iter());
        assert_eq!((range.place(0.0), range.end_of_interval(0.0)), (None, Some(0.0)));
        assert_eq!((range.end_of_interval(f64::INFINITY), range.end_of_interval(f64::NAN)), (Some(1.0), None));
    }

    proptest! {
        #[test]
        fn any_values_have_an_axis(values in prop::collection::vec(any::<f64>(), 0..4), which in 0..3usize) {
            let scale = [Scale::Linear, Scale::Whole, Scale::Log][which];
            let range = Range::new(scale, values.iter().copied());
            prop_assert!(range.low < range.high && (range.high - range.low).is_finite(), "{range:?}");
            let ticks = range.ticks();
            prop_assert!(ticks.len() <= 10 * MAX_LABELS as usize, "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| (-1e-6..=1.0 + 1e-6).contains(&tick.place)), "{range:?} {ticks:?}");
            for value in values {
                prop_assert!(range.place(value).is_none_or(|place| (0.0..=1.0).contains(&place)), "{range:?} {value}");
                prop_assert!(range.end_of_interval(value).is_none_or(|place| (0.0..=1.0).contains(&place)));
            }
        }
    }
}
