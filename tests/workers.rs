//! Several backends at one queue of blocks: the result does not show it, and no device holds up the others.

use leakybins::backend::{Backend, BackendError, BlockResult, Control, Host, Keeper, Machine, Pool, StreamKind, Work};
use leakybins::journal::{Contents, Header, Journal};
use leakybins::process::leaky::Parameters;
use leakybins::process::{Measure, ProcessSpec};
use leakybins::report::{Format, Render, Report};
use leakybins::run::{Event, Outcome, Reason, RunError, Schedule, Shard, Spec, Stopping, run, run_journaled};
use leakybins::stats::estimate::Band;
use leakybins::stats::interval::Confidence;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Seven blocks without a rule.
fn long() -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n: 4, ..Parameters::default() });
    let schedule = Schedule { rounds: 4, burn_in: 1, every: 2, loads_every: 1, measure: Measure::Post };
    Spec { process, seed: 5, replicas: 100_000, schedule, stopping: None }
}

/// Blocks that end at each look, and a rule that ends the run at one of them.
fn ruled() -> Spec {
    let process = ProcessSpec::Leaky(Parameters { n: 8, ..Parameters::default() });
    let schedule = Schedule { rounds: 20, burn_in: 5, every: 3, loads_every: 1, measure: Measure::Post };
    let rule = Stopping { at: Some(6), rel_err: Some(0.3), confidence: 0.95, ..Stopping::default() };
    Spec { process, seed: 7, replicas: 20_000, schedule, stopping: Some(rule) }
}

fn blocks(spec: &Spec) -> Vec<Range<u64>> {
    spec.blocks(&spec.process.build_for(StreamKind::Bins).expect("valid parameters")).collect()
}

/// The JSON of a run, without what computed it and in what time.
fn json(spec: &Spec, outcome: &Outcome) -> String {
    let confidence = Confidence::new(0.95).expect("a confidence");
    let report = Report::new(spec, spec.process.bins(), outcome, confidence, Band::Pointwise);
    let text = String::from_utf8(report.render(Format::Json).expect("a report")).expect("UTF-8");
    let is_kept = |line: &&str| {
        !["backend", "adapter", "elapsed_s"].iter().any(|name| line.starts_with(&format!("  \"{name}\":")))
    };
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// What the backends of one test know of each other.
#[derive(Default)]
struct Shop {
    /// Blocks begun by each kind of backend, in that order.
    begun: Mutex<Vec<(&'static str, Range<u64>)>>,
    losses: AtomicUsize,
    hanging: AtomicUsize,
}

impl Shop {
    fn begin(&self, who: &'static str, block: &Range<u64>) {
        self.begun.lock().expect("no panic").push((who, block.clone()));
    }

    fn begun(&self, who: &str) -> Vec<Range<u64>> {
        let begun = self.begun.lock().expect("no panic");
        begun.iter().filter(|(name, _)| *name == who).map(|(_, block)| block.clone()).collect()
    }
}

/// Waits for something that another thread does in no time; a minute later something is wrong.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The reference on a device that is lost `losses` times, and renewed if `renewable`.
struct Frail {
    shop: Arc<Shop>,
    losses: usize,
    renewable: bool,
}

impl Backend for Frail {
    fn name(&self) -> &'static str {
        "frail"
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        self.shop.begin("frail", &block);
        let result = Host::reference().run(work, block, control);
        if self.losses == 0 {
            return result;
        }
        self.losses -= 1;
        self.shop.losses.fetch_add(1, Ordering::SeqCst);
        Err(BackendError::Lost("pulled out".to_owned()))
    }

    fn renew(&mut self) -> Result<(), BackendError> {
        if self.renewable { Ok(()) } else { Err(BackendError::NoAdapter("no adapter".to_owned())) }
    }
}

/// The reference on a device that hangs after some blocks, until it is stopped.
struct Hanging {
    shop: Arc<Shop>,
    after: usize,
}

impl Backend for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        self.shop.begin("hanging", &block);
        if self.after > 0 {
            self.after -= 1;
            return Host::reference().run(work, block, control);
        }
        self.shop.hanging.fetch_add(1, Ordering::SeqCst);
        wait_until("a hanging device is stopped", || control.is_cancelled());
        Err(BackendError::Cancelled)
    }
}

/// The CPU, which does not begin before something has happened.
struct Patient<F> {
    shop: Arc<Shop>,
    until: F,
}

impl<F: Fn(&Shop) -> bool + Send> Backend for Patient<F> {
    fn name(&self) -> &'static str {
        "patient"
    }

    fn run_kept(
        &mut self,
        work: &Work<'_>,
        block: Range<u64>,
        control: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        self.shop.begin("patient", &block);
        wait_until("what the CPU waits for", || (self.until)(&self.shop));
        Host::cpu().run(work, block, control)
    }
}

/// Fails by an error, or by a panic, after something has happened.
struct Broken<F> {
    shop: Arc<Shop>,
    until: F,
    fails: Fails,
}

/// How a broken device fails.
#[derive(Clone, Copy)]
enum Fails {
    Panics,
    Refuses,
    ComputesWrongly,
}

impl<F: Fn(&Shop) -> bool + Send> Backend for Broken<F> {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn run_kept(
        &mut self,
        _: &Work<'_>,
        _: Range<u64>,
        _: &Control,
        _: &dyn Keeper,
    ) -> Result<BlockResult, BackendError> {
        wait_until("what the broken device waits for", || (self.until)(&self.shop));
        self.shop.losses.fetch_add(1, Ordering::SeqCst);
        assert!(!matches!(self.fails, Fails::Panics), "a bug");
        Err(match self.fails {
            Fails::ComputesWrongly => BackendError::SelfCheck("wrong loads".to_owned()),
            _ => BackendError::Device("out of order".to_owned()),
        })
    }
}

fn pool(backends: Vec<Box<dyn Backend>>) -> Pool {
    Pool::new(backends).expect("one stream")
}

fn names(pool: &Pool) -> Vec<String> {
    pool.machines().into_iter().map(|machine| machine.backend).collect()
}

/// Runs `spec` with its loads: the outcome, the loads, and what was told.
fn with_loads(spec: &Spec, pool: &mut Pool) -> (Outcome, Vec<u8>, Vec<Event>) {
    let (control, mut dump, mut events) = (Control::default(), Vec::new(), Vec::new());
    let outcome = run(spec, pool, &control, Some(&mut dump), &mut |e| events.push(e)).expect("a result");
    let used = outcome.tally.replicas * spec.schedule.rounds;
    // Attempts that were stopped do not count. Blocks beyond the end that a rule sets do, if they were finished.
    assert!(control.rounds() == used || spec.stopping.is_some() && control.rounds() > used, "{}", control.rounds());
    (outcome, dump, events)
}

fn journaled(spec: &Spec, path: &Path, pool: &mut Pool, control: &Control) -> Result<Outcome, RunError> {
    let mut journal = Journal::open(path).expect("a journal");
    journal.begin(Header::new(spec, &spec.process.build_for(StreamKind::Bins).expect("valid"))).expect("room");
    run_journaled(spec, pool, control, (&mut journal, Shard::WHOLE), None, &mut |_| ())
}

fn alone(spec: &Spec) -> (Outcome, Vec<u8>) {
    let (outcome, loads, events) = with_loads(spec, &mut Host::cpu().into());
    assert!(events.is_empty());
    (outcome, loads)
}

#[test]
fn backends_that_share_a_queue_give_the_result_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, spec) in [("long", long()), ("ruled", ruled())] {
        let (expected, loads) = alone(&spec);
        assert_eq!(expected.reason == Reason::RelErr, spec.stopping.is_some());
        let mut two = pool(vec![Box::new(Host::cpu()), Box::new(Host::reference()), Box::new(Host::cpu())]);
        for _ in 0..5 {
            let (outcome, same_loads, _) = with_loads(&spec, &mut two);
            assert_eq!(json(&spec, &outcome), json(&spec, &expected));
            assert!(loads == same_loads, "the loads differ");
        }
        let path = |kind: &str| folder.path().join(format!("{name}-{kind}"));
        let one = journaled(&spec, &path("one"), &mut Host::cpu().into(), &Control::default()).expect("a result");
        let shared = journaled(&spec, &path("shared"), &mut two, &Control::default()).expect("a result");
        assert_eq!(json(&spec, &one), json(&spec, &expected));
        assert_eq!(json(&spec, &shared), json(&spec, &expected));
        // Blocks may be there in another order, and those that were begun beyond the end.
        let kept = Contents::<Header>::read(&path("shared")).expect("a journal");
        let first = Contents::<Header>::read(&path("one")).expect("a journal");
        assert!(first.entries().zip(kept.entries()).all(|(a, b)| (&a.block, &a.tally) == (&b.block, &b.tally)));
    }
}

#[test]
fn a_lost_device_changes_no_result_and_is_told_of() {
    let spec = Spec { replicas: 7, ..long() };
    let (expected, loads) = alone(&spec);
    for (losses, renewable, backend, renewals, why) in [
        (1, true, "frail", 1, "pulled out"),
        (2, true, "cpu", 1, "pulled out; for the second time"),
        (1, false, "cpu", 0, "pulled out; it cannot be used again: no adapter"),
    ] {
        let mut frail = Pool::from(Frail { shop: Arc::default(), losses, renewable });
        let (outcome, same_loads, events) = with_loads(&spec, &mut frail);
        assert_eq!((&outcome.tally, &same_loads), (&expected.tally, &loads));
        assert_eq!(
            (outcome.machine.expect("a machine").backend, names(&frail)),
            (backend.to_owned(), vec![backend.to_owned()])
        );
        let (last, first) = events.split_last().expect("an event");
        assert_eq!(first.len() + usize::from(matches!(last, Event::DeviceRenewed { .. })), renewals);
        let told = |device: &Machine, reason: &str| device.backend == "frail" && reason == why;
        assert!(
            matches!(last, Event::DeviceRenewed { device, reason } | Event::FellBackToCpu { device, reason }
                if told(device, reason)),
            "{last:?}"
        );
    }
}

#[test]
fn a_device_that_is_lost_for_good_leaves_its_blocks_to_the_others() {
    let spec = long();
    let (expected, loads) = alone(&spec);
    let shop = Arc::new(Shop::default());
    let frail = Frail { shop: Arc::clone(&shop), losses: 2, renewable: true };
    let both_losses = |shop: &Shop| shop.losses.load(Ordering::SeqCst) == 2;
    let patient = Patient { shop: Arc::clone(&shop), until: both_losses };
    let mut pool = pool(vec![Box::new(frail), Box::new(patient)]);
    let (outcome, same_loads, events) = with_loads(&spec, &mut pool);
    assert!(matches!(&events[..], [Event::DeviceRenewed { .. }, Event::DeviceRetired { .. }]), "{events:?}");
    assert_eq!((&outcome.tally, &same_loads), (&expected.tally, &loads));
    assert_eq!((shop.begun("frail").len(), names(&pool)), (2, vec!["patient".to_owned()]));
    assert_eq!(outcome.machine.expect("a machine").backend, "patient");
}

#[test]
fn where_every_device_is_lost_the_cpu_finishes() {
    let spec = long();
    let (expected, loads) = alone(&spec);
    let shop = Arc::new(Shop::default());
    let frail = || Box::new(Frail { shop: Arc::clone(&shop), losses: usize::MAX, renewable: true });
    let mut pool = pool(vec![frail(), frail()]);
    let (outcome, same_loads, events) = with_loads(&spec, &mut pool);
    let told = |is_it: fn(&Event) -> bool| events.iter().filter(|event| is_it(event)).count();
    assert_eq!(told(|event| matches!(event, Event::DeviceRenewed { .. })), 2);
    assert_eq!(told(|event| matches!(event, Event::DeviceRetired { .. })), 1);
    assert!(matches!(events.last(), Some(Event::FellBackToCpu { .. })), "{events:?}");
    assert_eq!((&outcome.tally, &same_loads), (&expected.tally, &loads));
    assert_eq!((shop.losses.load(Ordering::SeqCst), names(&pool)), (4, vec!["cpu".to_owned()]));
}

/// No clock: the device never comes back, and the other computes every block, also the one that hangs.
#[test]
fn a_slow_device_delays_nobody() {
    for spec in [long(), ruled()] {
        let (expected, loads) = alone(&spec);
        let shop = Arc::new(Shop::default());
        let hangs = |shop: &Shop| shop.hanging.load(Ordering::SeqCst) > 0;
        let hanging = Hanging { shop: Arc::clone(&shop), after: 0 };
        let patient = Patient { shop: Arc::clone(&shop), until: hangs };
        let mut pool = pool(vec![Box::new(hanging), Box::new(patient)]);
        let (outcome, same_loads, events) = with_loads(&spec, &mut pool);
        assert!(events.is_empty(), "{events:?}");
        assert_eq!((&outcome.tally, outcome.reason), (&expected.tally, expected.reason));
        assert!(loads == same_loads, "the loads differ");
        let computed = shop.begun("patient");
        let needed: Vec<_> = blocks(&spec).into_iter().filter(|block| block.end <= outcome.tally.replicas).collect();
        assert!(needed.iter().all(|block| computed.contains(block)), "{computed:?}");
        // With loads that wait in memory, two blocks for each of two backends are begun ahead of the one that hangs.
        let held = shop.begun("hanging")[0].start;
        let before = computed.iter().take_while(|block| block.start != held).filter(|block| block.start > held);
        assert!(before.count() < 4, "{computed:?}");
    }
}

#[test]
fn a_run_that_is_cancelled_while_several_work_keeps_what_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let spec = long();
    let (expected, _) = alone(&spec);
    let shop = Arc::new(Shop::default());
    let control = Control::default();
    let ended = thread::scope(|scope| {
        let running = scope.spawn(|| {
            let hanging = |after| Box::new(Hanging { shop: Arc::clone(&shop), after });
            journaled(&spec, &path, &mut pool(vec![hanging(2), hanging(1)]), &control)
        });
        wait_until("both hang", || shop.hanging.load(Ordering::SeqCst) == 2);
        control.cancel();
        running.join().expect("no panic")
    });
    assert!(matches!(ended, Err(RunError::Backend(BackendError::Cancelled))), "{ended:?}");
    assert_eq!(Contents::<Header>::read(&path).expect("a journal").entries().len(), 3);
    let rest = journaled(&spec, &path, &mut Host::cpu().into(), &Control::default()).expect("the rest");
    assert_eq!(json(&spec, &rest), json(&spec, &expected));
}

#[test]
fn a_device_that_refuses_leaves_its_blocks_to_the_others() {
    // In one block the refusal is of a first or of a second attempt, whoever comes first.
    for spec in [long(), Spec { replicas: 7, ..long() }] {
        let (expected, loads) = alone(&spec);
        let shop = Arc::new(Shop::default());
        let broken = Broken { shop: Arc::clone(&shop), until: |_: &Shop| true, fails: Fails::Refuses };
        let refused = |shop: &Shop| shop.losses.load(Ordering::SeqCst) == 1;
        let patient = Patient { shop: Arc::clone(&shop), until: refused };
        let mut pool = pool(vec![Box::new(broken), Box::new(patient)]);
        let (outcome, same_loads, events) = with_loads(&spec, &mut pool);
        let [Event::DeviceRetired { device, reason }] = &events[..] else { panic!("{events:?}") };
        assert!(device.backend == "broken" && reason.contains("out of order"), "{device:?} {reason}");
        assert_eq!((&outcome.tally, &same_loads), (&expected.tally, &loads));
        assert_eq!(names(&pool), ["patient"]);
    }
}

#[test]
fn where_every_device_refuses_the_run_ends() {
    let shop = Arc::new(Shop::default());
    let broken = || Box::new(Broken { shop: Arc::clone(&shop), until: |_: &Shop| true, fails: Fails::Refuses });
    let (mut pool, mut events) = (pool(vec![broken(), broken()]), Vec::new());
    let ended = run(&long(), &mut pool, &Control::default(), None, &mut |e| events.push(e));
    assert!(matches!(ended, Err(RunError::Backend(BackendError::Device(_)))), "{ended:?}");
    assert!(matches!(&events[..], [Event::DeviceRetired { .. }]), "{events:?}");
}

#[test]
fn an_error_ends_the_run_and_keeps_what_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let spec = long();
    let shop = Arc::new(Shop::default());
    // The other hangs after two blocks, and is stopped.
    let until = |shop: &Shop| shop.hanging.load(Ordering::SeqCst) > 0;
    let broken = Broken { shop: Arc::clone(&shop), until, fails: Fails::ComputesWrongly };
    let mut both = pool(vec![Box::new(broken), Box::new(Hanging { shop, after: 2 })]);
    let ended = journaled(&spec, &path, &mut both, &Control::default());
    assert!(matches!(&ended, Err(RunError::Backend(BackendError::SelfCheck(_)))), "{ended:?}");
    let kept = fs::read(&path).expect("a journal");
    assert_eq!(Contents::<Header>::read(&path).expect("a journal").entries().len(), 2);
    let rest = journaled(&spec, &path, &mut Host::cpu().into(), &Control::default()).expect("the rest");
    assert_eq!(json(&spec, &rest), json(&spec, &alone(&spec).0));
    assert!(fs::read(&path).expect("a journal").starts_with(&kept));
}

#[test]
fn a_panic_in_one_backend_ends_them_all() {
    let shop = Arc::new(Shop::default());
    let until = |shop: &Shop| shop.hanging.load(Ordering::SeqCst) > 0;
    let broken = Broken { shop: Arc::clone(&shop), until, fails: Fails::Panics };
    let mut both = pool(vec![Box::new(Hanging { shop, after: 0 }), Box::new(broken)]);
    let run = || run(&long(), &mut both, &Control::default(), None, &mut |_| ()).map(|_| ());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
}
