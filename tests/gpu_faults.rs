//! A GPU that fails changes no result, and says what happened.

mod common;

use common::{Case, compare, gpu, options, reference, run_on_gpu};
use leakybins::backend::gpu::compose::Layout;
use leakybins::backend::gpu::{Gpu, Tuning};
use leakybins::backend::{Backend, BackendError, Control, Job, Pool, Work};
use leakybins::process::start::Start;
use leakybins::run::{Event, Outcome, Spec, run};
use libtest_mimic::Failed;

fn main() {
    run_on_gpu(&[
        ("a_lost_device_is_renewed", a_lost_device_is_renewed),
        ("a_twice_lost_device_is_replaced_by_the_cpu", a_twice_lost_device_is_replaced_by_the_cpu),
        ("a_loss_is_an_error_and_the_device_can_be_renewed", loss_and_renewal),
        ("a_wrong_adapter_fails_the_self_check", a_wrong_adapter_fails_the_self_check),
        ("a_dropped_ball_fails_the_conservation", a_dropped_ball_fails_the_conservation),
        ("a_shader_that_does_not_compile_is_an_error", a_bad_shader_is_an_error),
        ("what_does_not_fit_is_refused", what_does_not_fit_is_refused),
        ("a_cancelled_run_ends", a_cancelled_run_ends),
    ]);
}

/// A run of several submissions.
fn spec() -> (Spec, Tuning) {
    let case = Case::new(100, 2, 60, 1);
    let process = case.process;
    let spec = Spec { process, seed: 5, replicas: 200, schedule: case.schedule, stopping: None };
    (spec, Tuning { most_rounds: Some(12), ..Tuning::default() })
}

fn outcome(losses: u32, after_submissions: u64) -> Result<(Outcome, Vec<u8>, Vec<Event>), Failed> {
    let (spec, tuning) = spec();
    let mut gpu = gpu(tuning);
    if losses > 0 {
        gpu.inject_losses(after_submissions, losses);
    }
    let (mut dump, mut events) = (Vec::new(), Vec::new());
    let control = Control::default();
    let outcome = run(&spec, &mut Pool::from(gpu), &control, Some(&mut dump), &mut |event| {
        events.push(event);
    })?;
    if control.rounds() != spec.replicas * spec.schedule.rounds {
        return Err(format!("{} rounds are reported", control.rounds()).into());
    }
    Ok((outcome, dump, events))
}

fn backend(outcome: &Outcome) -> &str {
    outcome.machine.as_ref().map_or("", |machine| &machine.backend)
}

fn a_lost_device_is_renewed() -> Result<(), Failed> {
    let (undisturbed, loads, events) = outcome(0, 0)?;
    assert!(events.is_empty() && backend(&undisturbed) == "gpu");
    for after in [0, 1, 4] {
        let (disturbed, same_loads, events) = outcome(1, after)?;
        assert!(matches!(&events[..], [Event::DeviceRenewed { .. }]), "{events:?}");
        assert_eq!(backend(&disturbed), "gpu");
        assert_eq!(disturbed.tally, undisturbed.tally, "lost after {after} submissions");
        assert!(loads == same_loads, "the loads differ");
    }
    Ok(())
}

fn a_twice_lost_device_is_replaced_by_the_cpu() -> Result<(), Failed> {
    let (undisturbed, loads, _) = outcome(0, 0)?;
    let (disturbed, same_loads, events) = outcome(2, 1)?;
    assert!(matches!(&events[..], [Event::DeviceRenewed { .. }, Event::FellBackToCpu { .. }]), "{events:?}");
    assert_eq!(backend(&disturbed), "cpu");
    assert_eq!(disturbed.tally, undisturbed.tally);
    assert!(loads == same_loads, "the loads differ");
    Ok(())
}

/// The error of `case` on `gpu`.
fn error(case: &Case, gpu: &mut Gpu) -> BackendError {
    let process = case.process.build().expect("a valid case");
    let work = Work::Bins(Job { process: &*process, seed: case.seed, schedule: case.schedule, keep_loads: true });
    match gpu.run(&work, case.replicas.clone(), &Control::default()) {
        Err(error) => error,
        Ok(_) => panic!("{case:?} ends without an error"),
    }
}

fn loss_and_renewal() -> Result<(), Failed> {
    let case = Case::new(64, 2, 30, 4);
    let mut gpu = gpu(Tuning { most_rounds: Some(5), ..Tuning::default() });
    gpu.inject_losses(2, 1);
    assert!(matches!(error(&case, &mut gpu), BackendError::Lost(_)));
    // A lost device stays lost.
    assert!(matches!(error(&case, &mut gpu), BackendError::Lost(_)));
    gpu.renew()?;
    compare(&case, &case.run(&mut gpu), &reference(&case))
}

fn a_wrong_adapter_fails_the_self_check() -> Result<(), Failed> {
    gpu(Tuning::default()).self_check()?;
    let mutate = |s: &str| s.replace("if (load < least)", "if (load <= least)");
    match gpu(Tuning { mutate: Some(mutate), ..Tuning::default() }).self_check() {
        Err(BackendError::SelfCheck(message)) if message.contains("--backend cpu") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn a_dropped_ball_fails_the_conservation() -> Result<(), Failed> {
    let case = Case::new(64, 2, 30, 4);
    for layout in Layout::ALL {
        let mutate = |s: &str| s.replace("+ ball < balls) {", "+ ball < balls && best != 7u) {");
        let tuning = Tuning { layout: Some(layout), mutate: Some(mutate), ..Tuning::default() };
        let found = error(&case, &mut gpu(tuning));
        assert!(matches!(found, BackendError::Conservation { .. }), "{found}");
    }
    Ok(())
}

fn a_bad_shader_is_an_error() -> Result<(), Failed> {
    let mutate = |s: &str| s.replace("fn serve(", "fn serve_nothing(");
    let found = error(&Case::new(64, 2, 3, 1), &mut gpu(Tuning { mutate: Some(mutate), ..Tuning::default() }));
    assert!(matches!(&found, BackendError::Device(m) if m.contains("serve")), "{found}");
    Ok(())
}

fn what_does_not_fit_is_refused() -> Result<(), Failed> {
    let tuning = Tuning { layout: Some(Layout::Workgroup), ..Tuning::default() };
    let found = error(&Case::new(1_000_000, 2, 1, 1), &mut gpu(tuning));
    assert!(matches!(&found, BackendError::Unsupported(m) if m.contains("1000000")), "{found}");
    let high = Case::new(64, 2, 1, 1).start(Start::OneBin(1_000_000_000));
    let found = error(&high, &mut gpu(Tuning::default()));
    assert!(matches!(&found, BackendError::Unsupported(m) if m.contains("--backend cpu")), "{found}");
    let open = gpu(Tuning::default());
    let bins = open.summary().max_storage_binding.min(open.summary().max_buffer) / 4 + 1;
    drop(open);
    if bins < 1 << 31 {
        let found = error(&Case::new(bins, 1, 1, 1).lambda(0.001), &mut gpu(Tuning::default()));
        assert!(matches!(found, BackendError::Memory { .. }), "{found}");
    }
    let mut named = options(Tuning::default());
    named.gpu = Some("no such adapter".to_owned());
    assert!(matches!(Gpu::open(&named), Err(BackendError::NoAdapter(m)) if m.contains("no such adapter")));
    Ok(())
}

fn a_cancelled_run_ends() -> Result<(), Failed> {
    let case = Case::new(64, 2, 1 << 40, 4);
    let process = case.process.build()?;
    let work = Work::Bins(Job { process: &*process, seed: case.seed, schedule: case.schedule, keep_loads: false });
    let control = Control::default();
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| gpu(Tuning::default()).run(&work, 0..4, &control));
        // Some submissions must have come back before the run is stopped in the middle.
        while control.rounds() == 0 && !running.is_finished() {
            std::thread::yield_now();
        }
        control.cancel();
        running.join().expect("no panic")
    });
    assert!(matches!(ended, Err(BackendError::Cancelled)), "{ended:?}");
    Ok(())
}
