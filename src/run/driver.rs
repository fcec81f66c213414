//! The loop over blocks.

use super::{Spec, SpecError};
use crate::backend::{Backend, BackendError, Control, Host, Job};
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
    /// The device was lost again; this block and all later ones are computed on the CPU.
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
    /// All that was seen.
    pub tally: Tally,
    /// Wall time of the simulation, set-up of the process included.
    pub elapsed: Duration,
    /// Name of the backend that finished the run.
    pub backend: &'static str,
    /// Its adapter, if it has one.
    pub adapter: Option<String>,
}

/// Runs `spec` on `backend`, block by block.
///
/// A block on a lost device is redone on a renewed one; after a second loss, on the CPU. `dump` receives the final
/// loads of all replicas: u32, little-endian, replica-major.
///
/// # Errors
/// [`RunError`]; nothing of a failed run is returned.
pub fn run(
    spec: &Spec,
    mut backend: Box<dyn Backend>,
    control: &Control,
    mut dump: Option<&mut dyn Write>,
    notify: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    spec.validate()?;
    let begun = Instant::now();
    let process = spec.process.build()?;
    let job = Job { process: &*process, seed: spec.seed, schedule: spec.schedule, keep_loads: dump.is_some() };
    let mut tally = Tally::default();
    let mut losses = 0;
    for block in spec.blocks(process.bins()) {
        let before = control.rounds();
        let result = loop {
            match backend.run(&job, block.clone(), control) {
                Err(BackendError::Lost(reason)) => {
                    control.retract(control.rounds() - before);
                    losses += 1;
                    if losses == 1 && backend.renew().is_ok() {
                        notify(Event::DeviceRenewed(reason));
                    } else {
                        notify(Event::FellBackToCpu(reason));
                        backend = Box::new(Host::cpu());
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
    }
    if let Some(dump) = dump {
        dump.flush()?;
    }
    Ok(Outcome { tally, elapsed: begun.elapsed(), backend: backend.name(), adapter: backend.adapter() })
}
