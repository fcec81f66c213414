//! Monte Carlo engine for balls-into-bins and load-balancing processes: thousands of independent replicas on a GPU, or
//! on the CPU, with the same bits.
//!
//! The heart is the **leaky bins** process ([`process::leaky`]; Berenbrink, Friedetzky, Kling, Mallmann-Trenn, Nagel,
//! Wastell, PODC 2016): each round about lambda n balls arrive, each samples d of n bins, sees the loads at the start
//! of the round and joins a least loaded one; then every non-empty bin deletes one ball.
//!
//! # Guarantees
//! * **One law.** A process is defined once, in integer arithmetic, as a function of (seed, replica, round). The plain
//!   reference, the fast CPU path and every GPU give the same loads and the same tallies, whatever the number of
//!   threads, the division into blocks or the length of a submission.
//! * **Exact sampling.** Bin indices are exactly uniform ([`rng::bounded`]), arrival numbers are drawn against 64-bit
//!   cumulative thresholds ([`rng::thresholds`]); no floating point touches the state.
//! * **Many bins.** On [profiles](profile) the same law is drawn exactly for up to 10^15 bins, in some microseconds a
//!   round: another sample than the backends bin by bin give, as reproducible as theirs.
//! * **Nothing wrong is printed.** Balls are conserved, or there is no result; a GPU is checked against the reference
//!   before it is trusted.
//!
//! # Map
//! | module | what |
//! | --- | --- |
//! | [`rng`] | the counter layout, Philox, bounded integers, threshold tables, samplers |
//! | [`process`] | the processes: parameters, initial loads, one round |
//! | [`profile`] | processes on the numbers of bins by load, throws of balls on them |
//! | [`backend`] | where blocks of replicas run: `reference`, `cpu`, `gpu`, `profile` |
//! | [`stats`] | tallies: integers that add; estimates and intervals made of them |
//! | [`run`](mod@run) | the specification, its blocks, the loop over them |
//! | [`journal`] | finished blocks on disk: resumed, merged, verified |
//! | [`sweep`] | a process over a grid of parameters, and the laws it follows |
//! | [`recover`] | self-stabilisation: the way back from a start |
//! | [`cover`] | balls with identities: rounds until each has been in every bin |
//! | [`tail`] | rare max loads: stages, forced entrances, islands |
//! | [`theory`] | what is known without simulation: exact and mean-field laws |
//! | [`report`] | results as table, JSON ([the format](report::json)) and CSV |
//! | [`plot`] | results as pictures: SVG and PNG |
//! | [`cli`] | the command, its [exit codes](cli::exit) |
//! | [`number`], [`grid`] | numbers, and grids of them, as people write them |
//!
//! # Example
//! ```
//! use leakybins::backend::{Control, Host, Pool};
//! use leakybins::process::{Measure, ProcessSpec, leaky};
//! use leakybins::run::{Schedule, Spec, run};
//!
//! let spec = Spec {
//!     process: ProcessSpec::Leaky(leaky::Parameters { n: 64, lambda: 0.75, d: 2, ..Default::default() }),
//!     seed: 1,
//!     replicas: 100,
//!     schedule: Schedule { rounds: 300, burn_in: 100, every: 10, loads_every: 1, measure: Measure::Post },
//!     stopping: None,
//! };
//! let mut pool = Pool::from(Host::cpu());
//! let outcome = run(&spec, &mut pool, &Control::default(), None, &mut |_| ())?;
//! assert_eq!(outcome.tally.samples(), 100 * 20);
//! let mean_load = outcome.tally.load_per_bin.mean().expect("there are samples");
//! assert!((mean_load - 0.43).abs() < 0.02); // 0.429 in the limit of many bins
//! # Ok::<(), leakybins::run::RunError>(())
//! ```

pub mod backend;
pub mod cli;
pub mod cover;
mod float;
pub mod grid;
pub mod journal;
pub mod number;
pub mod plot;
pub mod process;
pub mod profile;
pub mod recover;
pub mod report;
pub mod rng;
pub mod run;
pub mod stats;
pub mod sweep;
pub mod tail;
pub mod theory;
