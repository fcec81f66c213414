//! Blocks computed again.

use super::subject::{differences, flat};
use super::{Contents, Difference, Header, JournalError, Subject};
use crate::backend::{Backend, Control, Machine};
use crate::run::RunError;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::index::sample;
use std::ops::Range;

/// What came out when blocks were computed again.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Blocks computed again.
    pub blocks: usize,
    /// Those of another tally.
    pub mismatches: Vec<Mismatch>,
}

/// A block whose tally is another one when it is computed again.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Its replicas, or other [units](Subject::UNITS).
    pub block: Range<u64>,
    /// What had computed it.
    pub machine: Machine,
    /// What differs, by name.
    pub differences: Vec<Difference>,
}

/// Computes again, on `backend`, a `fraction` of the blocks of a journal, at least one, and compares their tallies. Which
/// blocks follows from `seed`.
///
/// # Errors
/// [`JournalError::Empty`] where there is no block, [`JournalError::Differs`] where a file with initial loads holds others
/// now or the backend draws other random numbers, [`JournalError::OtherStream`]; and those of the backend.
pub fn verify(
    contents: &Contents,
    backend: &mut dyn Backend,
    (fraction, seed): (f64, u64),
    control: &Control,
) -> Result<Verified, RunError> {
    if !contents.header().is_of_this_stream() {
        return Err(JournalError::OtherStream(contents.name().to_owned()).into());
    }
    let spec = contents.spec();
    let process = spec.process.build_for(backend.stream())?;
    contents.require(&Header::new(spec, &process))?;
    let work = spec.work(&process, false);
    recompute(contents, (fraction, seed), |blocks| {
        blocks.into_iter().map(|block| Ok(backend.run(&work, block, control)?.tally)).collect()
    })
}

/// Has a `fraction` of the blocks of a journal, at least one, computed `again`, and compares their tallies, bit by bit.
/// Which blocks follows from `seed`.
pub(crate) fn recompute<S: Subject, E: From<JournalError>>(
    contents: &Contents<S>,
    (fraction, seed): (f64, u64),
    again: impl FnOnce(Vec<Range<u64>>) -> Result<Vec<S::Tally>, E>,
) -> Result<Verified, E> {
    let entries: Vec<_> = contents.entries().collect();
    if entries.is_empty() {
        return Err(JournalError::Empty(contents.name().to_owned()).into());
    }
    let wanted = (fraction * entries.len() as f64).ceil().clamp(1.0, entries.len() as f64) as usize;
    let mut chosen = sample(&mut StdRng::seed_from_u64(seed), entries.len(), wanted).into_vec();
    chosen.sort_unstable();
    let mut verified = Verified { blocks: wanted, mismatches: Vec::new() };
    let chosen: Vec<_> = chosen.into_iter().map(|i| entries[i]).collect();
    let again = again(chosen.iter().map(|entry| entry.block.clone()).collect())?;
    for (entry, again) in chosen.into_iter().zip(again) {
        let fields = |tally: &S::Tally| flat(&serde_json::to_value(tally).expect("a tally is made of plain values"));
        let differences = differences(&fields(&entry.tally), &fields(&again));
        if !differences.is_empty() {
            verified.mismatches.push(Mismatch {
                block: entry.block.clone(),
                machine: entry.machine.clone(),
                differences,
            });
        }
    }
    Ok(verified)
}
