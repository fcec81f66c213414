//! The loop over blocks.

use super::stopping::{self, Reason};
use super::{Spec, SpecError};
use crate::backend::{Backend, BackendError, Control, Host, StreamKind};
use crate::process::ParameterError;
use crate::stats::Tally;
use std::io::{self, Write};
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
    /// Wall time of the simulation, set-up of the process included.
    pub elapsed: Duration,
    /// Which random numbers were drawn.
    pub stream: StreamKind,
    /// Name of the backend that finished the run.
    pub backend: &'static str,
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
    let mut tally = Tally::default();
    let mut reason = Reason::Replicas;
    let mut losses = 0;
    for block in spec.blocks(&process) {
        let before = control.rounds();
        let result = loop {
            match backend.run(&work, block.clone(), control) {
                Err(BackendError::Lost(reason)) => {
                    control.retract(control.rounds() - before);
                    losses += 1;
                    let given_up = match losses {
                        1 => backend.renew().err().map(|e| format!("{reason}; it cannot be used again: {e}")),
                        _ => Some(format!("{reason}; for the second time")),
                    };
                    if let Some(why) = given_up {
                        notify(Event::FellBackToCpu(why));
                        *backend = Box::new(Host::cpu());
                    } else {
                        notify(Event::DeviceRenewed(reason));
                    }
                }
                other => break other?,
            }
        };
        tally.merge(&result.tally);
        if let Some(dump) = dump.as_deref_mut() {
            let little_endian: Vec<u32> = result.loads.iter().map(|l| l.to_le()).collect();
            dump.write_all(bytemuck::cast_slice(&little_endian))?;
        }
        if let Some(ended) = look(spec, &tally, begun.elapsed()) {
            reason = ended;
            break;
        }
    }
    if let Some(dump) = dump {
        dump.flush()?;
    }
    let (elapsed, backend, adapter) = (begun.elapsed(), backend.name(), backend.adapter());
    Ok(Outcome { tally, reason, elapsed, stream, backend, adapter })
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
    stopping.met(tally, &spec.schedule).or_else(|| late().then_some(Reason::MaxTime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BlockResult, Work};
    use crate::process::leaky::Parameters;
    use crate::process::{Measure, ProcessSpec};
    use crate::run::Schedule;
    use std::ops::Range;

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
            (outcome.tally, dump, outcome.backend, events)
        };
        let (tally, loads, _, events) = run(0, true);
        assert!(events.is_empty());
        for (losses, renewable, backend, renewals, why) in [
            (1, true, "frail", 1, "pulled out"),
            (2, true, "cpu", 1, "pulled out; for the second time"),
            (1, false, "cpu", 0, "pulled out; it cannot be used again: no adapter"),
        ] {
            let (same_tally, same_loads, finished_on, events) = run(losses, renewable);
            assert_eq!((same_tally, same_loads, finished_on), (tally.clone(), loads.clone(), backend));
            let (last, first) = events.split_last().expect("an event");
            assert_eq!(first.len() + usize::from(matches!(last, Event::DeviceRenewed(_))), renewals);
            assert!(matches!(last, Event::DeviceRenewed(w) | Event::FellBackToCpu(w) if w == why), "{last:?}");
        }
    }
}
