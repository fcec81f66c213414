//! The chi-square test of counts against a law.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Chi-square of observed counts against probabilities: (statistic, critical value at `alpha`). Cells are
/// pooled from both ends until each expects at least 10; impossible values must not occur.
pub(crate) fn chi_square(observed: &[u64], probabilities: &[f64], alpha: f64) -> (f64, f64) {
    let total = observed.iter().sum::<u64>() as f64;
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut pending = (0.0, 0.0);
    for (k, &p) in probabilities.iter().enumerate() {
        pending = (pending.0 + observed.get(k).copied().unwrap_or(0) as f64, pending.1 + p * total);
        if pending.1 >= 10.0 {
            cells.push(std::mem::take(&mut pending));
        }
    }
    let last = cells.last_mut().expect("some cell expects 10");
    *last = (last.0 + pending.0, last.1 + pending.1);
    let beyond: u64 = observed.iter().skip(probabilities.len()).sum();
    assert!(cells.len() > 1 || beyond == 0, "nothing to compare");
    let statistic = cells.iter().map(|(o, e)| (o - e) * (o - e) / e).sum::<f64>() + beyond as f64 * total;
    let critical = ChiSquared::new((cells.len() - 1).max(1) as f64).expect("degrees of freedom");
    (statistic, critical.inverse_cdf(1.0 - alpha))
}
