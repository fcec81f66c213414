//! Shared by the tests and benches that run a GPU: the cases, the comparison, and what happens where there is no GPU.

#![allow(dead_code, reason = "each test binary uses a part")]

use leakybins::backend::gpu::{Gpu, Tuning, adapters};
use leakybins::backend::{Backend, BlockResult, Control, Host, Job, Options, Work};
use leakybins::process::leaky::{Arrivals, Parameters};
use leakybins::process::start::Start;
use leakybins::process::{Measure, ProcessSpec, capped, repeated, tetris};
use leakybins::run::Schedule;
use libtest_mimic::{Arguments, Failed, Trial};
use std::ops::Range;
use std::time::Duration;

/// One run: what to simulate and which replicas of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) process: ProcessSpec,
    pub(crate) seed: u64,
    pub(crate) replicas: Range<u64>,
    pub(crate) schedule: Schedule,
}

impl Case {
    /// `rounds` rounds of `replicas` replicas; every third round sampled after two of burn-in.
    pub(crate) fn new(n: u64, d: u64, rounds: u64, replicas: u64) -> Self {
        let parameters = Parameters { n, lambda: 0.95, d, arrivals: Arrivals::Binomial, start: Start::Empty };
        Self::of(ProcessSpec::Leaky(parameters), rounds, replicas)
    }

    /// The same of any process.
    pub(crate) fn of(process: ProcessSpec, rounds: u64, replicas: u64) -> Self {
        let schedule = Schedule { rounds, burn_in: 2, every: 3, loads_every: 2, measure: Measure::Post };
        Self { process, seed: 0x1234_5678_9ABC_DEF0, replicas: 0..replicas, schedule }
    }

    fn leaky(&mut self) -> &mut Parameters {
        match &mut self.process {
            ProcessSpec::Leaky(parameters) => parameters,
            other => panic!("{} has other parameters", other.name()),
        }
    }

    pub(crate) fn lambda(mut self, lambda: f64) -> Self {
        self.leaky().lambda = lambda;
        self
    }

    pub(crate) fn arrivals(mut self, arrivals: Arrivals) -> Self {
        self.leaky().arrivals = arrivals;
        self
    }

    pub(crate) fn start(mut self, start: Start) -> Self {
        self.process = self.process.with_start(start);
        self
    }

    pub(crate) fn measure(mut self, measure: Measure) -> Self {
        self.schedule.measure = measure;
        self
    }

    pub(crate) fn run(&self, backend: &mut dyn Backend) -> BlockResult {
        let process = self.process.build().expect("a valid case");
        let job = Job { process: &*process, seed: self.seed, schedule: self.schedule, keep_loads: true };
        backend
            .run(&Work::Bins(job), self.replicas.clone(), &Control::default())
            .unwrap_or_else(|e| panic!("{self:?}: {e}"))
    }
}

/// Parameters of a process that exercise every path it has: sizes beside and at powers of two, starts, laws.
pub(crate) fn samples(name: &str) -> Vec<ProcessSpec> {
    let start = |text: &str| text.parse::<Start>().expect("a start");
    match name {
        "leaky" => [(1, 0.9, 2), (64, 1.0, 1), (1000, 0.95, 3), (1025, 0.99, 2)]
            .map(|(n, lambda, d)| ProcessSpec::Leaky(Parameters { n, lambda, d, ..Parameters::default() }))
            .to_vec(),
        "capped" => {
            use capped::{Capacity, Parameters};
            let of = |n, c, lambda, text: &str| {
                let arrivals = if n % 2 == 0 { Arrivals::Fixed } else { Arrivals::Binomial };
                ProcessSpec::Capped(Parameters { n, c, lambda, arrivals, start: start(text) })
            };
            vec![
                of(1, Capacity::Finite(1), 1.0, "one-bin:1500"),
                of(2, Capacity::Finite(3), 0.75, "each:6"),
                of(63, Capacity::Finite(1), 0.9, "empty"),
                of(64, Capacity::Finite(2), 1.0, "one-bin:700"),
                of(1000, Capacity::Finite(1), 0.99, "mean-field"),
                of(1024, Capacity::Finite(2), 0.95, "empty"),
                of(1025, Capacity::Finite(5), 0.0, "random:9000"),
                of(333, Capacity::Infinite, 0.9, "each:70"),
                of(20_000, Capacity::Finite(2), 0.9, "mean-field"),
            ]
        }
        "repeated" => [
            (1, "each:3"),
            (2, "one-bin:5"),
            (63, "random:100"),
            (64, "each:1"),
            (1000, "one-bin:1000"),
            (1024, "each:2"),
            (1025, "empty"),
            (1025, "random:300"),
            (4096, "each:10"),
            (100, "one-bin:100000"),
            (100_000, "each:1"),
        ]
        .map(|(n, text)| ProcessSpec::Repeated(repeated::Parameters { n, start: start(text) }))
        .to_vec(),
        "tetris" => [
            (1, 0.75, "each:3"),
            (2, 0.75, "empty"),
            (63, 0.75, "random:100"),
            (64, 1.0, "each:1"),
            (1000, 0.75, "one-bin:1000"),
            (1024, 0.0, "each:2"),
            (1025, 0.5, "mean-field"),
            (100, 0.9, "one-bin:100000"),
            (100_000, 0.75, "mean-field"),
        ]
        .map(|(n, lambda, text)| ProcessSpec::Tetris(tetris::Parameters { n, lambda, start: start(text) }))
        .to_vec(),
        other => panic!("no samples of {other}; add some here, in tests/common/mod.rs"),
    }
}

/// Whether two results are equal, loads and tallies; the error says where they first differ.
pub(crate) fn compare(case: &Case, a: &BlockResult, b: &BlockResult) -> Result<(), Failed> {
    if let Some(i) = (0..a.loads.len().max(b.loads.len())).find(|&i| a.loads.get(i) != b.loads.get(i)) {
        let n = case.process.bins() as usize;
        let (replica, bin) = (i / n, i % n);
        let (x, y) = (a.loads.get(i), b.loads.get(i));
        return Err(format!("{case:?}: replica {replica}, bin {bin}: load {x:?} against {y:?}").into());
    }
    if a.tally == b.tally { Ok(()) } else { Err(format!("{case:?}: {:#?}\nagainst {:#?}", a.tally, b.tally).into()) }
}

/// Runs `case` on both backends and compares.
pub(crate) fn assert_same(case: &Case, a: &mut dyn Backend, b: &mut dyn Backend) -> Result<(), Failed> {
    compare(case, &case.run(a), &case.run(b))
}

/// Options that take any adapter, a real one before a software one.
pub(crate) fn options(tuning: Tuning) -> Options {
    let gpu = std::env::var("LEAKYBINS_GPU").ok();
    Options { gpu, allow_software: true, submit_budget: Duration::from_millis(100), tuning }
}

/// The GPU of the tests.
pub(crate) fn gpu(tuning: Tuning) -> Gpu {
    Gpu::open(&options(tuning)).expect("an adapter: the tests are ignored where there is none")
}

/// The reference's result.
pub(crate) fn reference(case: &Case) -> BlockResult {
    case.run(&mut Host::reference())
}

/// A test by name.
pub(crate) type Test = (&'static str, fn() -> Result<(), Failed>);

/// Runs `tests`, or lists them as ignored where there is no adapter; with `LEAKYBINS_REQUIRE_GPU=1` that fails.
pub(crate) fn run_on_gpu(tests: &[Test]) -> ! {
    let arguments = Arguments::from_args();
    let present = !adapters().is_empty();
    // Who asks for ignored tests wants them run.
    let required = std::env::var("LEAKYBINS_REQUIRE_GPU").is_ok_and(|v| v == "1")
        || arguments.ignored
        || arguments.include_ignored;
    let trials: Vec<Trial> = tests.iter().map(|&(name, test)| Trial::test(name, test)).collect();
    let trials = if present {
        trials
    } else if required {
        let missing = || Err("the GPU tests were asked for, but this machine has no adapter".into());
        vec![Trial::test("an_adapter_is_present", missing)]
    } else {
        trials.into_iter().map(|t| t.with_ignored_flag(true)).collect()
    };
    libtest_mimic::run(&arguments, trials).exit()
}
