//! Tallies in JSON, exactly.

use crate::process::{Observable, ObservableKind};
use crate::run::Schedule;
use crate::stats::{
    Flow, Further, FurtherTally, Histogram, LevelTally, Levels, Moments, PowerSums, Record, Series, Tally,
};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// The form of a tally that the [journal](super) describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    replicas: u64,
    initial_balls: Wide,
    final_balls: Wide,
    arrived: Wide,
    departed: Wide,
    max_load: LevelsForm,
    total_load: SeriesForm,
    empty_bins: SeriesForm,
    load_per_bin: ByValue<Wide>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<SeriesForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<ByValue<Wide>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelsForm {
    /// Samples, what they add to the squares, and replicas with this largest value.
    steps: ByValue<(u64, Wide, u64)>,
    replicas: Sums,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesForm {
    samples: Sums,
    min: u64,
    max: u64,
    replicas: Sums,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sums {
    count: u64,
    sum: Wide,
    sum_squares: Wide,
}

/// The form of a record in a [snapshot](super::snapshot).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordForm {
    arrived: Wide,
    departed: Wide,
    max_load: ByValue<Wide>,
    total_load: MomentsForm,
    empty_bins: MomentsForm,
    load_per_bin: ByValue<Wide>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<MomentsForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<ByValue<Wide>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MomentsForm {
    samples: Sums,
    min: u64,
    max: u64,
}

/// An integer of 128 bits, which JSON readers do not know as a number: its decimal digits as a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wide(u128);

impl Serialize for Wide {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Wide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let value = digits.parse::<u128>().ok().filter(|value| value.to_string() == digits);
        value.map(Self).ok_or_else(|| D::Error::custom(format!("'{digits}' is not an integer below 2^128")))
    }
}

/// A map by value, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByValue<T>(Vec<(u64, T)>);

impl<T: Serialize> Serialize for ByValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(value, of)| (value, of)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Values<T> {
            type Value = ByValue<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map by ascending value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values: Vec<(u64, T)> = Vec::new();
                while let Some((value, of)) = map.next_entry::<u64, T>()? {
                    if values.last().is_some_and(|(last, _)| *last >= value) {
                        return Err(A::Error::custom(format!("the values do not ascend at {value}")));
                    }
                    values.push((value, of));
                }
                Ok(ByValue(values))
            }
        }
        deserializer.deserialize_map(Values(PhantomData))
    }
}

impl From<PowerSums> for Sums {
    fn from(sums: PowerSums) -> Self {
        Self { count: sums.count, sum: Wide(sums.sum), sum_squares: Wide(sums.sum_squares) }
    }
}

impl From<Sums> for PowerSums {
    fn from(sums: Sums) -> Self {
        Self { count: sums.count, sum: sums.sum.0, sum_squares: sums.sum_squares.0 }
    }
}

impl From<Moments> for MomentsForm {
    fn from(moments: Moments) -> Self {
        Self { samples: moments.power_sums().into(), min: moments.min, max: moments.max }
    }
}

impl From<MomentsForm> for Moments {
    fn from(form: MomentsForm) -> Self {
        let PowerSums { count, sum, sum_squares } = form.samples.into();
        Self { count, sum, sum_squares, min: form.min, max: form.max }
    }
}

impl From<&Series> for SeriesForm {
    fn from(series: &Series) -> Self {
        let MomentsForm { samples, min, max } = series.samples.into();
        Self { samples, min, max, replicas: series.replicas.into() }
    }
}

impl From<SeriesForm> for Series {
    fn from(form: SeriesForm) -> Self {
        let SeriesForm { samples, min, max, replicas } = form;
        Self { samples: MomentsForm { samples, min, max }.into(), replicas: replicas.into() }
    }
}

impl From<&Histogram> for ByValue<Wide> {
    fn from(histogram: &Histogram) -> Self {
        Self(histogram.iter().map(|(value, count)| (value, Wide(count))).collect())
    }
}

impl From<ByValue<Wide>> for Histogram {
    fn from(form: ByValue<Wide>) -> Self {
        let mut histogram = Self::default();
        form.0.into_iter().for_each(|(value, count)| histogram.add(value, count.0));
        histogram
    }
}

impl From<&Record> for RecordForm {
    fn from(record: &Record) -> Self {
        Self {
            arrived: Wide(record.flow.arrived),
            departed: Wide(record.flow.departed),
            max_load: (&record.max_load).into(),
            total_load: record.total_load.into(),
            empty_bins: record.empty_bins.into(),
            load_per_bin: (&record.load_per_bin).into(),
            numbers: record.further.each_number().map(MomentsForm::from).collect(),
            histograms: record.further.each_histogram().map(ByValue::from).collect(),
        }
    }
}

impl From<RecordForm> for Record {
    fn from(form: RecordForm) -> Self {
        let mut further = Further::default();
        for (place, values) in form.numbers.into_iter().enumerate() {
            further.numbers(place, &values.into());
        }
        for (place, counts) in form.histograms.into_iter().enumerate() {
            counts.0.into_iter().for_each(|(value, count)| further.count(place, value, count.0));
        }
        Self {
            further,
            flow: Flow { arrived: form.arrived.0, departed: form.departed.0 },
            max_load: form.max_load.into(),
            total_load: form.total_load.into(),
            empty_bins: form.empty_bins.into(),
            load_per_bin: form.load_per_bin.into(),
        }
    }
}

impl From<&Tally> for Form {
    fn from(tally: &Tally) -> Self {
        let step = |(value, step): (u64, LevelTally)| {
            let hits = u64::try_from(step.hits).expect("a count stays below 2^64");
            (value, (hits, Wide(step.hits_squared), step.replicas_hit))
        };
        Self {
            replicas: tally.replicas,
            initial_balls: Wide(tally.initial_balls),
            final_balls: Wide(tally.final_balls),
            arrived: Wide(tally.flow.arrived),
            departed: Wide(tally.flow.departed),
            max_load: LevelsForm {
                steps: ByValue(tally.max_load.steps().map(step).collect()),
                replicas: tally.max_load.replicas.into(),
            },
            total_load: (&tally.total_load).into(),
            empty_bins: (&tally.empty_bins).into(),
            load_per_bin: (&tally.load_per_bin).into(),
            numbers: tally.further.numbers.iter().map(SeriesForm::from).collect(),
            histograms: tally.further.histograms.iter().map(ByValue::from).collect(),
        }
    }
}

impl From<Form> for Tally {
    fn from(form: Form) -> Self {
        let step = |(value, (hits, squares, replicas_hit)): (u64, (u64, Wide, u64))| {
            (value, LevelTally { hits: hits.into(), hits_squared: squares.0, replicas_hit })
        };
        let LevelsForm { steps, replicas } = form.max_load;
        Self {
            replicas: form.replicas,
            initial_balls: form.initial_balls.0,
            final_balls: form.final_balls.0,
            flow: Flow { arrived: form.arrived.0, departed: form.departed.0 },
            max_load: Levels::from_steps(steps.0.into_iter().map(step), replicas.into()),
            total_load: form.total_load.into(),
            empty_bins: form.empty_bins.into(),
            load_per_bin: form.load_per_bin.into(),
            further: FurtherTally {
                numbers: form.numbers.into_iter().map(Series::from).collect(),
                histograms: form.histograms.into_iter().map(Histogram::from).collect(),
            },
        }
    }
}

impl Serialize for Tally {
    /// In the form that the [journal](super) describes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Form::deserialize(deserializer).map(Self::from)
    }
}

/// Whether `tally` can be that of the replicas in `block`: its numbers of replicas, samples, hits and bins are what
/// `schedule` and the number of `bins` make them, no ball is lost, and the further observables are those of the process.
pub(super) fn is_plausible(
    tally: &Tally,
    block: &Range<u64>,
    schedule: &Schedule,
    bins: u64,
    observables: &[Observable],
) -> bool {
    let replicas = block.end - block.start;
    let samples = schedule.samples_per_replica();
    // Every sample of every replica reaches the lowest level.
    let squares = u128::from(replicas).checked_mul(u128::from(samples) * u128::from(samples));
    let all = (tally.max_load.steps()).try_fold(LevelTally::default(), |all, (_, step)| all.checked_merge(&step));
    let lowest = all.filter(|all| all.replicas_hit == replicas && Some(all.hits_squared) == squares);
    let sums = (tally.max_load.steps()).try_fold((0u128, 0u128), |(sum, squares), (value, step)| {
        let more = u128::from(value).checked_mul(step.hits)?;
        Some((sum.checked_add(more)?, squares.checked_add(more.checked_mul(value.into())?)?))
    });
    let is_series = |series: &Series| {
        let (all, means) = (series.samples, series.replicas);
        Some(all.count) == replicas.checked_mul(samples) && means.count == replicas && means.sum == all.sum
    };
    let histograms = u128::from(replicas) * u128::from(schedule.load_samples_per_replica());
    let bins_seen = (tally.load_per_bin.iter()).try_fold((0u128, 0u128), |(seen, sum), (load, bins)| {
        Some((seen.checked_add(bins)?, sum.checked_add(bins.checked_mul(load.into())?)?))
    });
    let of_kind = |kind| observables.iter().filter(|observable| observable.kind == kind).count();
    tally.replicas == replicas
        && tally.conserves_balls()
        && lowest.is_some_and(|all| all.hits == u128::from(replicas) * u128::from(samples))
        && tally.max_load.replicas.count == replicas
        && sums.is_some_and(|(sum, _)| sum == tally.max_load.replicas.sum)
        && is_series(&tally.total_load)
        && is_series(&tally.empty_bins)
        && tally.further.numbers.len() == of_kind(ObservableKind::Number)
        && tally.further.numbers.iter().all(is_series)
        && tally.further.histograms.len() <= of_kind(ObservableKind::Histogram)
        && bins_seen.is_some_and(|(seen, _)| histograms.checked_mul(bins.into()) == Some(seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Measure;

    const OBSERVABLES: [Observable; 2] = [
        Observable { name: "pool", meaning: "balls that wait", unit: "balls", kind: ObservableKind::Number },
        Observable { name: "waiting_time", meaning: "waits", unit: "rounds", kind: ObservableKind::Histogram },
    ];

    #[test]
    fn further_observables_read_back_and_are_held_to_those_of_the_process() {
        let mut tally = Tally::default();
        let mut record = Record::default();
        record.sample(1, 1, 1);
        record.load_per_bin.add(0, 1);
        record.load_per_bin.add(1, 1);
        record.further.number(0, 7);
        record.further.count(0, 3, 1 << 70);
        tally.add(&record);
        (tally.initial_balls, tally.final_balls) = (1, 1);
        let text = serde_json::to_string(&Form::from(&tally)).expect("plain values");
        assert!(text.contains(r#""histograms":[{"3":"1180591620717411303424"}]"#), "{text}");
        let again: Form = serde_json::from_str(&text).expect("a form");
        assert_eq!(Tally::from(again), tally);

        let schedule = Schedule { rounds: 1, burn_in: 0, every: 1, loads_every: 1, measure: Measure::Post };
        let plausible = |observables: &[Observable]| is_plausible(&tally, &(0..1), &schedule, 2, observables);
        assert!(plausible(&OBSERVABLES));
        assert!(!plausible(&OBSERVABLES[..1]) && !plausible(&OBSERVABLES[1..]) && !plausible(&[]));
    }
}
