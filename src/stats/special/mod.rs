//! Special functions for intervals: tails and quantiles of the beta, gamma, Student and normal laws.
//!
//! Written here because the sizes of this project (a few hits in up to 10^15 trials) are beyond what general
//! libraries do accurately, or at all. Arguments outside a function's domain give NaN, as in `f64`'s own functions.

pub mod beta;
pub mod gamma;
pub mod normal;
pub mod student;
