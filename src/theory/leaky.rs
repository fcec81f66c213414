//! Predictions for the leaky bins ([`process::leaky`](crate::process::leaky)).

use super::arrivals::ArrivalLaw;
use super::bounds::Bounds;
use super::population::Population;
use super::transient::Transient;
use super::{Basis, Expected, Prediction, TheoryError, When, mean_field, one_choice, two_digits, validate};
use crate::float;
use crate::process::leaky::{Arrivals, Parameters};
use crate::process::start::Start;
use crate::process::{Measure, ParameterError};
use crate::rng::thresholds::Thresholds;

/// Predicts the loads and the max load.
///
/// The start matters for [`When::Round`] only. Rounds cost time: one choice about width * 40 operations each, width
/// the number of loads of probability above [`FLOOR`](super::FLOOR).
///
/// # Errors
/// [`TheoryError`] says what is refused, why, and what to do.
pub fn predict(parameters: &Parameters, when: When, measure: Measure) -> Result<Prediction, TheoryError> {
    validate(parameters)?;
    let bins = match when {
        When::Stationary => stationary(parameters, measure)?,
        When::Round(rounds) => {
            let mut bins = Transient::new(parameters)?;
            for _ in 0..rounds {
                bins.step();
            }
            match measure {
                Measure::Post => bins.after_deletions(),
                Measure::Pre => bins.before_deletions().ok_or(TheoryError::NoRound)?,
            }
        }
    };
    let Parameters { n, lambda, d, arrivals, ref start } = *parameters;
    let load_basis = if d == 1 || n == 1 { Basis::Exact } else { Basis::MeanField };
    // Poisson arrivals split into independent streams, and these starts are the same in every replica or independent.
    let independent_start = when == When::Stationary
        || matches!(start, Start::Empty | Start::Each(_) | Start::OneBin(_) | Start::MeanField);
    let exact = n == 1 || (d == 1 && arrivals == Arrivals::Poisson && independent_start);
    let max_basis = if exact { Basis::Exact } else { Basis::IndependentBins };
    Ok(Prediction { bins, load_basis, max_basis, bounds: Bounds::new(n as f64, 1.0 - lambda), further: Vec::new() })
}

/// The means after the deletions of each of `rounds`, which ascend; `None` from the first one on that is more than
/// `budget` operations away.
///
/// # Errors
/// Those of [`Transient::new`].
pub fn trajectory(
    parameters: &Parameters,
    rounds: &[u64],
    mut budget: f64,
) -> Result<Vec<Option<Expected>>, TheoryError> {
    let mut bins = Transient::new(parameters)?;
    let n = parameters.n as f64;
    let mut expected =
        |&round: &u64| bins.advance(round, &mut budget).then(|| Expected::new(&bins.after_deletions(), n));
    Ok(rounds.iter().map(&mut expected).collect())
}

/// Rounds after which the start is surely forgotten, rounded up to two digits: the overload drains, and the rest
/// relaxes.
///
/// # Method
/// With one choice a bin drains at speed 1 - lambda, lambda the variance of its steps: six standard deviations of the
/// time are added. With d >= 2 a bin that towers above all others is joined by the balls that sample nothing else, a
/// fraction n^-d of them; bins that all are overloaded drain at speed 1 - lambda. Relaxation takes some 2 / (1 -
/// lambda)^2 rounds with one choice and some 1 / (1 - lambda) with more; ten and forty times as many are added.
///
/// # Errors
/// lambda = 1, and those of [`Transient::new`].
pub fn recovery_rounds(parameters: &Parameters) -> Result<u64, TheoryError> {
    let start = Transient::new(parameters)?.after_deletions();
    let Parameters { n, lambda, d, .. } = *parameters;
    let gap = 1.0 - lambda;
    if gap == 0.0 {
        return Err(TheoryError::NoStationaryLaw);
    }
    let tallest = start.max_quantile(0.999) as f64;
    let rounds = if d == 1 || n == 1 {
        tallest / gap + 6.0 * (tallest * lambda / gap).sqrt() / gap + 20.0 / (gap * gap)
    } else {
        let joined = lambda * float::powf(n as f64, 1.0 - d as f64);
        tallest / (1.0 - joined) + start.mean_load() / gap + 40.0 / gap
    };
    Ok(two_digits(rounds))
}

/// Most levels of a law that is drawn from: its table then takes 128 MiB.
const MAX_LEVELS: u64 = 1 << 24;
/// Exceedances below this round to no multiple of 2^-64 but 0.
const HALF_RESOLUTION: f64 = 1.0 / (1u128 << 65) as f64;

/// The stationary law of one bin, to draw from: exact for d = 1, mean field for d >= 2.
///
/// # Numerics
/// An exceedance is as good as the prediction, about 1e-12 relative, and rounded to a multiple of 2^-64. Predictions
/// are made of correctly rounded operations and of the functions of [`float`], all of them the same on
/// every host, and so is the table.
pub(crate) fn one_bin(parameters: &Parameters, measure: Measure) -> Result<Thresholds, ParameterError> {
    let refuse = |reason: String, remedy| ParameterError::Start { start: parameters.start.to_string(), reason, remedy };
    let bins = stationary(parameters, measure).map_err(|error| match error {
        TheoryError::Parameter(error) => error,
        other => refuse(other.to_string(), "use another start"),
    })?;
    let [(_, law)] = bins.groups() else { unreachable!("a stationary state has one law for all bins") };
    let visible = law.levels(HALF_RESOLUTION);
    if visible > MAX_LEVELS {
        let mean = law.mean();
        let reason = format!(
            "the law of a bin has {visible:.3e} levels of probability above 2^-64 (mean load {mean:.0}), and at most \
             2^24 are tabulated"
        );
        return Err(refuse(reason, "use a smaller lambda, or each:H with H near the mean load"));
    }
    Ok(Thresholds::from_exceedances((1..=visible).map(|k| law.exceedance(k))))
}

/// About the autocorrelation time of the total load: 1 plus twice the sum of its autocorrelations, in rounds.
///
/// With one choice each bin is a queue that drifts down by 1 - lambda a round: (1 - lambda)^-2 rounds up to a factor.
/// With more the total load is drawn back at a rate of about 1 - lambda. The factors 3 and 1.3 are measured: 1.7 to 3.3
/// for one choice at lambda = 0.5 to 0.97, and 0.8 to 1.3 for two and three at lambda = 0.5 to 1 - 2^-9.
pub(crate) fn autocorrelation_rounds(parameters: &Parameters) -> f64 {
    let gap = 1.0 - parameters.lambda;
    if parameters.d == 1 || parameters.n == 1 { 3.0 / (gap * gap) } else { 1.3 / gap }
}

fn stationary(parameters: &Parameters, measure: Measure) -> Result<Population, TheoryError> {
    let Parameters { n, lambda, d, arrivals, .. } = *parameters;
    let gap = 1.0 - lambda;
    if gap == 0.0 {
        return Err(TheoryError::NoStationaryLaw);
    }
    let after = if d == 1 || n == 1 {
        one_choice::stationary(&ArrivalLaw::one_bin(arrivals, n, lambda), gap)
    } else {
        mean_field::fixed_point(lambda, gap, d as u32)
    };
    let law = match measure {
        Measure::Post => after,
        Measure::Pre => after.before_deletions(gap, lambda),
    };
    Ok(Population::new(vec![(n as f64, law)]))
}
