//! The loop over blocks.

use super::stopping::{self, Reason};
use super::{Shard, Spec, SpecError};
use crate::backend::{Backend, BackendError, BlockResult, Control, Host, StreamKind, Work};
use crate::journal::{Contents, Entry, Header, Journal, JournalError};
use crate::process::{Form, ParameterError};
use crate::stats::Tally;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Something worth telling a person while a run goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The device was lost; the block is redone on a new one.
    DeviceRenewed(String),
    /// The device was lost again, or cannot be renewed; this block and all later ones are computed on the CPU.
    FellBackToCpu(String),
}

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The specification is refused.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The process's parameters are refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The journal is damaged, of another run, or cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A sum of the tallies passes its integer.
    #[error("the sums over all replicas do not fit their integers of 64 and 128 bits; use fewer replicas or rounds")]
    TooLarge,
    /// The final loads could not be written.
    #[error("the final loads could not be written ({0}); check the path and the space left")]
    Loads(#[from] io::Error),
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that was seen, of as many replicas as the tally says.
    pub tally: Tally,
    /// Why it ended there.
    pub reason: Reason,
    /// Wall time of the simulation, set-up of the process included; of a journal the sum over its blocks.
    pub elapsed: Duration,
    /// Which random numbers were drawn.
    pub stream: StreamKind,
    /// What computed it. `None` of a journal: each of its blocks has its own.
    pub machine: Option<Machine>,
}

/// What computed a block, or the last block of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the backend.
    pub backend: String,
    /// Its adapter, if it has one.
    pub adapter: Option<String>,
}

/// Runs `spec` on `backend`, block by block.
///
/// A block on a lost device is redone on a renewed one; after a second loss, on the CPU, which then takes the place of
/// `backend`. `dump` receives the final
/// loads of all replicas: u32, little-endian, replica-major.
///
/// # Errors
/// [`RunError`]; nothing of a failed run is returned.
pub fn run(
    spec: &Spec,
    backend: &mut Box<dyn Backend>,
    control: &Control,
    mut dump: Option<&mut dyn Write>,
    notify: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    spec.validate()?;
    let begun = Instant::now();
    let stream = backend.stream();
    if dump.is_some() && stream == StreamKind::Profile {
        let why = "a profile has no loads of single bins to dump; use --backend cpu or gpu for them";
        return Err(BackendError::Unsupported(why.to_owned()).into());
    }
    let process = spec.process.build_for(stream)?;
    let work = spec.work(&process, dump.is_some());
    let mut device = Device { spec, backend, control, notify, losses: 0 };
    let (tally, reason) = walk(spec, &process, |_, block| {
        let result = device.compute(&work, &block)?;
        if let Some(dump) = dump.as_deref_mut() {
            let little_endian: Vec<u32> = result.loads.iter().map(|l| l.to_le()).collect();
            dump.write_all(bytemuck::cast_slice(&little_endian))?;
        }
        Ok(Some((result.tally, begun.elapsed())))
    })?;
    if let Some(dump) = dump {
        dump.flush()?;
    }
    let (elapsed, machine) = (begun.elapsed(), Some(device.machine()));
    Ok(Outcome { tally, reason, elapsed, stream, machine })
}

/// Runs the blocks of `shard` that `journal` lacks, and writes each into it before the next begins.
///
/// Where it ends, also by an error, all finished blocks are in the journal, and the same call goes on from there. A time
/// limit counts the time of all blocks, whenever and wherever they were computed.
///
/// # Errors
/// [`RunError`]; [`RunError::Journal`] where the journal is of another run, or cannot be written.
pub fn run_journaled(
    spec: &Spec,
    backend: &mut Box<dyn Backend>,
    control: &Control,
    (journal, shard): (&mut Journal, Shard),
    notify: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    spec.validate()?;
    let process = spec.process.build_for(backend.stream())?;
    journal.require(&Header::new(spec, &process))?;
    let work = spec.work(&process, false);
    let mut device = Device { spec, backend, control, notify, losses: 0 };
    let mut elapsed = Duration::ZERO;
    let (tally, reason) = walk(spec, &process, |number, block| {
        if journal.contents().entry(&block).is_none() && shard.owns(number) {
            let begun = Instant::now();
            let tally = device.compute(&work, &block)?.tally;
            journal.append(Entry {
                block: block.clone(),
                tally,
                elapsed: begun.elapsed(),
                machine: device.machine(),
            })?;
        }
        let Some(entry) = journal.contents().entry(&block) else { return Ok(None) };
        elapsed += entry.elapsed;
        Ok(Some((entry.tally.clone(), elapsed)))
    })?;
    Ok(Outcome { tally, reason, elapsed, stream: journal.contents().header().stream(), machine: None })
}

/// What the blocks in a journal give, without computing any.
///
/// # Errors
/// [`RunError::TooLarge`] where sums do not fit their integers: the tallies were made up.
pub fn replay(contents: &Contents) -> Result<Outcome, RunError> {
    let mut elapsed = Duration::ZERO;
    let (tally, reason) = walk(contents.spec(), contents.process(), |_, block| {
        let Some(entry) = contents.entry(&block) else { return Ok(None) };
        elapsed += entry.elapsed;
        Ok(Some((entry.tally.clone(), elapsed)))
    })?;
    Ok(Outcome { tally, reason, elapsed, stream: contents.header().stream(), machine: None })
}

/// Adds up what `obtain` gives of each block, in order, until a rule for stopping is met: the tally of a block with the
/// time spent so far, or nothing where the block is left out. `obtain` is given the number of the block, too.
fn walk(
    spec: &Spec,
    process: &Form,
    mut obtain: impl FnMut(u64, Range<u64>) -> Result<Option<(Tally, Duration)>, RunError>,
) -> Result<(Tally, Reason), RunError> {
    let mut tally = Tally::default();
    let mut complete = true;
    for (number, block) in (0..).zip(spec.blocks(process)) {
        let Some((more, elapsed)) = obtain(number, block)? else {
            complete = false;
            continue;
        };
        if !tally.can_merge(&more) {
            return Err(RunError::TooLarge);
        }
        tally.merge(&more);
        // A rule is about the first replicas, all of them.
        if let Some(ended) = look(spec, &tally, elapsed).filter(|_| complete) {
            return Ok((tally, ended));
        }
    }
    Ok((tally, if complete { Reason::Replicas } else { Reason::Incomplete }))
}

/// A backend that may be lost.
struct Device<'a> {
    spec: &'a Spec,
    backend: &'a mut Box<dyn Backend>,
    control: &'a Control,
    notify: &'a mut dyn FnMut(Event),
    losses: u32,
}

impl Device<'_> {
    /// Runs a block, again where the device is lost.
    fn compute(&mut self, work: &Work<'_>, block: &Range<u64>) -> Result<BlockResult, BackendError> {
        let before = self.control.rounds();
        let started = begin(block);
        loop {
            match self.backend.run(work, block.clone(), self.control) {
                Err(BackendError::Lost(reason)) => {
                    self.control.retract(self.control.rounds() - before);
                    self.losses += 1;
                    let given_up = match self.losses {
                        1 => self.backend.renew().err().map(|e| format!("{reason}; it cannot be used again: {e}")),
                        _ => Some(format!("{reason}; for the second time")),
                    };
                    if let Some(why) = given_up {
                        (self.notify)(Event::FellBackToCpu(why));
                        *self.backend = Box::new(Host::cpu());
                    } else {
                        (self.notify)(Event::DeviceRenewed(reason));
                    }
                }
                other => break other.inspect(|_| finish(block, self.spec, started)),
            }
        }
    }

    fn machine(&self) -> Machine {
        Machine { backend: self.backend.name().to_owned(), adapter: self.backend.adapter() }
    }
}

/// Logs that a block begins.
fn begin(block: &Range<u64>) -> Instant {
    tracing::debug!(first = block.start, end = block.end, "replicas {} to {} begun", block.start, block.end - 1);
    Instant::now()
}

/// Logs that a block that began at `started` is finished.
fn finish(block: &Range<u64>, spec: &Spec, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    let balls = (block.end - block.start) as f64 * spec.schedule.rounds as f64 * spec.process.expected_balls();
    tracing::debug!(
        first = block.start,
        end = block.end,
        seconds,
        balls_per_s = balls / seconds,
        "replicas {} to {} finished in {seconds:.3} s, {:.3e} balls/s",
        block.start,
        block.end - 1,
        balls / seconds
    );
}

/// Whether the run ends here, and why, if it is looked at after so many replicas.
fn look(spec: &Spec, tally: &Tally, elapsed: Duration) -> Option<Reason> {
    let stopping = spec.stopping?;
    let done = tally.replicas;
    let mut looks = stopping::looks().skip_while(|&look| look < done);
    let (look, next) = (looks.next(), looks.next().map_or(spec.replicas, |next| next.min(spec.replicas)));
    if look != Some(done) && done < spec.replicas {
        return None;
    }
    let late = || done < spec.replicas && stopping.out_of_time(tally, elapsed, next);
    let reason = stopping.met(tally, &spec.schedule).or_else(|| late().then_some(Reason::MaxTime));
    let met = reason.map_or("none", Reason::name);
    tracing::debug!(replicas = done, met, "looked at the rules after {done} replicas; met: {met}");
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::leaky::Parameters;
    use crate::process::{Measure, ProcessSpec};
    use crate::run::Schedule;

    /// The reference on a device that is lost whenever a count of `losses` is left, and renewed if `renewable`.
    struct Frail {
        losses: u32,
        renewable: bool,
    }

    impl Backend for Frail {
        fn name(&self) -> &'static str {
            "frail"
        }

        fn run(&mut self, work: &Work<'_>, block: Range<u64>, control: &Control) -> Result<BlockResult, BackendError> {
            let result = Host::reference().run(work, block, control);
            if self.losses == 0 {
                return result;
            }
            self.losses -= 1;
            Err(BackendError::Lost("pulled out".to_owned()))
        }

        fn renew(&mut self) -> Result<(), BackendError> {
            if self.renewable { Ok(()) } else { Err(BackendError::NoAdapter("no adapter".to_owned())) }
        }
    }

    #[test]
    fn a_lost_device_changes_no_result_and_is_told_of() {
        let schedule = Schedule { rounds: 20, burn_in: 5, every: 1, loads_every: 1, measure: Measure::Post };
        let process = ProcessSpec::Leaky(Parameters { n: 10, ..Parameters::default() });
        let spec = Spec { process, seed: 1, replicas: 7, schedule, stopping: None };
        let run = |losses, renewable| {
            let (control, mut dump, mut events) = (Control::default(), Vec::new(), Vec::new());
            let mut backend: Box<dyn Backend> = Box::new(Frail { losses, renewable });
            let outcome =
                run(&spec, &mut backend, &control, Some(&mut dump), &mut |e| events.push(e)).expect("a result");
            assert_eq!(control.rounds(), spec.replicas * schedule.rounds, "a redone block counts once");
            (outcome.tally, dump, outcome.machine.expect("a machine").backend, events)
        };
        let (tally, loads, _, events) = run(0, true);
        assert!(events.is_empty());
        for (losses, renewable, backend, renewals, why) in [
            (1, true, "frail", 1, "pulled out"),
            (2, true, "cpu", 1, "pulled out; for the second time"),
            (1, false, "cpu", 0, "pulled out; it cannot be used again: no adapter"),
        ] {
            let (same_tally, same_loads, finished_on, events) = run(losses, renewable);
            assert_eq!((same_tally, same_loads, finished_on), (tally.clone(), loads.clone(), backend.to_owned()));
            let (last, first) = events.split_last().expect("an event");
            assert_eq!(first.len() + usize::from(matches!(last, Event::DeviceRenewed(_))), renewals);
            assert!(matches!(last, Event::DeviceRenewed(w) | Event::FellBackToCpu(w) if w == why), "{last:?}");
        }
    }
}
