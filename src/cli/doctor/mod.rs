//! `leakybins doctor`: would a headless GPU run work here, and if not, what is missing?

mod machine;

use super::exit::Exit;
use super::{Format, INSTALL_DRIVER, pretty, print};
use crate::backend::gpu::{AdapterKind, AdapterSummary, Gpu, adapters};
use crate::backend::{BackendError, Host, Options, agrees_with_reference};
use crate::report::wrapped;
use machine::Machine;
use serde::Serialize;

/// Arguments of `leakybins doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Form of the findings
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    found: String,
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), remedy: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// All that was found.
#[derive(Debug, Serialize)]
struct Diagnosis {
    /// Whether `leakybins run --backend gpu` would work.
    gpu_works: bool,
    checks: Vec<Check>,
    /// Whether `leakybins run` would take the CPU by itself: a GPU that is there and fails is an error.
    #[serde(skip)]
    auto_is_cpu: bool,
    #[serde(skip)]
    exit: Exit,
}

/// Looks at the machine and says what it found.
pub(super) fn run(arguments: &DoctorArgs) -> anyhow::Result<Exit> {
    let diagnosis = diagnose();
    let text = match arguments.format {
        Format::Table => table(&diagnosis),
        Format::Json => pretty(&diagnosis)?,
    };
    print(text.as_bytes())?;
    Ok(diagnosis.exit)
}

fn diagnose() -> Diagnosis {
    const CPU: &str = "CPU self-check";
    const WRONG_CPU: &str = "use --backend reference and report the CPU";
    let adapters = adapters();
    let cpu = agrees_with_reference(&mut Host::cpu());
    let gpu = checked_gpu(&Options::default());
    let exit = match (&cpu, &gpu) {
        (Err(_) | Ok(false), _) | (_, Err(BackendError::SelfCheck(_))) => Exit::SelfCheck,
        (_, Ok(_)) => Exit::Done,
        (_, Err(_)) => Exit::NoDevice,
    };
    let gpu_works = gpu.is_ok();
    let auto_is_cpu = matches!(gpu, Err(BackendError::NoAdapter(_)));
    let mut checks = if cfg!(target_os = "linux") { Machine::this().checks() } else { Vec::new() };
    checks.push(adapter_check(&adapters));
    checks.push(match gpu {
        Ok(adapter) => Check::ok("GPU self-check", format!("{adapter}: known answers and a small run are exact")),
        Err(BackendError::NoAdapter(_)) => software_check(&adapters),
        Err(error) => Check::fail("GPU self-check", error.to_string(), "update the driver, or use --backend cpu"),
    });
    checks.push(match cpu {
        Ok(true) => Check::ok(CPU, "a small run is exact"),
        Ok(false) => Check::fail(CPU, "a small run differs from the definition", WRONG_CPU),
        Err(error) => Check::fail(CPU, error.to_string(), WRONG_CPU),
    });
    Diagnosis { gpu_works, checks, auto_is_cpu, exit }
}

/// The adapter of `options`, which gives known answers and agrees with the reference.
fn checked_gpu(options: &Options) -> Result<String, BackendError> {
    let mut gpu = Gpu::open(options)?;
    gpu.self_check()?;
    Ok(gpu.summary().to_string())
}

fn adapter_check(adapters: &[AdapterSummary]) -> Check {
    const NAME: &str = "adapters";
    let names = |software: bool| {
        let chosen = adapters.iter().filter(|a| (a.kind == AdapterKind::Software) == software);
        chosen.map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (real, software) = (names(false), names(true));
    match (real.is_empty(), software.is_empty()) {
        (false, _) => Check::ok(NAME, real),
        (true, false) => Check::fail(NAME, format!("software only: {software}"), INSTALL_DRIVER),
        (true, true) => Check::fail(NAME, "none", INSTALL_DRIVER),
    }
}

/// Where there is no GPU, a software adapter shows at least that loader and shaders work.
fn software_check(adapters: &[AdapterSummary]) -> Check {
    const NAME: &str = "GPU self-check";
    if adapters.is_empty() {
        return Check::fail(NAME, "not done: there is no adapter", INSTALL_DRIVER);
    }
    let options = Options { allow_software: true, ..Options::default() };
    match checked_gpu(&options) {
        Ok(_) => Check::warn(
            NAME,
            "exact on the software adapter; there is no GPU to check",
            format!("{INSTALL_DRIVER}; or use --backend cpu"),
        ),
        Err(error) => Check::fail(NAME, format!("software adapter: {error}"), INSTALL_DRIVER),
    }
}

fn table(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for Check { name, status, found, remedy } in &diagnosis.checks {
        let status = match status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        text += &format!("{status:<5} {name:<17} {}\n", wrapped(found.split(' '), " ", 24));
        if let Some(remedy) = remedy {
            text += &format!("{:<24}-> {}\n", "", wrapped(remedy.split(' '), " ", 27));
        }
    }
    text + match (diagnosis.gpu_works, diagnosis.auto_is_cpu) {
        (true, _) => "\nA GPU run works here.\n",
        (false, true) => "\nA GPU run would not work here; --backend auto uses the CPU.\n",
        (false, false) => "\nA GPU run would not work here; use --backend cpu.\n",
    }
}
