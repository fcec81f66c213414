//! Monte Carlo engine for balls-into-bins and load-balancing processes: on GPU and CPU, with the same bits.

#![allow(clippy::cast_lossless, reason = "placeholder")]

pub mod backend;
pub mod cli;
pub mod number;
pub mod process;
pub mod report;
pub mod rng;
pub mod run;
pub mod stats;
