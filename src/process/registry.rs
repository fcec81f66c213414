//! The registry: every process by name, and what follows from that.

use super::{Model, ParameterError, Process, capped, leaky, repeated, tetris};
use crate::backend::StreamKind;
use crate::profile::ProfileChain;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Every process with its parameters. A new process is one line here and one in the match below; all else is its
/// [`Model`], which this dereferences to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Subcommand)]
#[serde(tag = "process", content = "parameters", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProcessSpec {
    /// Batched arrivals, d choices on stale loads, every non-empty bin deletes one ball a round
    Leaky(leaky::Parameters),
    /// Bins hold c balls at most, older balls first; those without a place wait in a pool
    Capped(capped::Parameters),
    /// Every non-empty bin throws one of its balls into a random bin; no ball arrives or leaves
    Repeated(repeated::Parameters),
    /// Every non-empty bin discards one ball, then lambda n new ones are thrown into random bins
    Tetris(tetris::Parameters),
}

impl Deref for ProcessSpec {
    type Target = dyn Model;

    fn deref(&self) -> &Self::Target {
        match self {
            ProcessSpec::Leaky(parameters) => parameters,
            ProcessSpec::Capped(parameters) => parameters,
            ProcessSpec::Repeated(parameters) => parameters,
            ProcessSpec::Tetris(parameters) => parameters,
        }
    }
}

impl ProcessSpec {
    /// Every process with its default parameters.
    #[must_use]
    pub fn all() -> Vec<Self> {
        vec![
            ProcessSpec::Leaky(Default::default()),
            ProcessSpec::Capped(Default::default()),
            ProcessSpec::Repeated(Default::default()),
            ProcessSpec::Tetris(Default::default()),
        ]
    }

    /// Builds the process in the form that `stream` is drawn for.
    ///
    /// # Errors
    /// [`ParameterError`], as for [`Model::build`]: a form says which n it has room for.
    pub fn build_for(&self, stream: StreamKind) -> Result<Form, ParameterError> {
        match stream {
            StreamKind::Bins => self.build().map(Form::Bins),
            StreamKind::Profile => self.build_profile().map(Form::Profile),
        }
    }
}

/// A process built for one of the streams.
#[derive(Debug)]
pub enum Form {
    /// To be simulated bin by bin.
    Bins(Box<dyn Process>),
    /// As a chain on profiles.
    Profile(Box<dyn ProfileChain>),
}

impl Form {
    /// Which random numbers it draws.
    #[must_use]
    pub fn stream(&self) -> StreamKind {
        match self {
            Form::Bins(_) => StreamKind::Bins,
            Form::Profile(_) => StreamKind::Profile,
        }
    }

    /// Number of bins, n.
    #[must_use]
    pub fn bins(&self) -> u64 {
        match self {
            Form::Bins(process) => process.bins().into(),
            Form::Profile(chain) => chain.bins(),
        }
    }

    /// Loads that a replica keeps in memory, for sizing what is done at once; a profile is as small as a bin.
    #[must_use]
    pub fn loads(&self) -> u64 {
        match self {
            Form::Bins(process) => process.bins().into(),
            Form::Profile(_) => 1,
        }
    }

    /// Work of one round of one replica, in balls that are thrown one by one: see [`Process::round_work`] and
    /// [`ProfileChain::round_work`].
    #[must_use]
    pub fn round_work(&self) -> f64 {
        match self {
            Form::Bins(process) => process.round_work(),
            Form::Profile(chain) => chain.round_work(),
        }
    }
}

/// Every process with grids of its parameters.
#[derive(Clone, Debug, clap::Subcommand)]
#[non_exhaustive]
pub enum ProcessGrid {
    /// Leaky bins over grids of n, lambda and d
    Leaky(leaky::Grid),
    /// CAPPED(c, lambda) over grids of n, c and lambda
    Capped(capped::Grid),
    /// Repeated balls-into-bins over grids of n and of balls a bin
    Repeated(repeated::Grid),
    /// Tetris over grids of n and lambda
    Tetris(tetris::Grid),
}

impl ProcessGrid {
    /// The points of the grid; the last grid varies fastest.
    ///
    /// # Errors
    /// Says so where there are more than `most`.
    pub fn points(&self, most: u64) -> Result<Vec<ProcessSpec>, String> {
        let sizes = match self {
            ProcessGrid::Leaky(grid) => grid.sizes().to_vec(),
            ProcessGrid::Capped(grid) => grid.sizes().to_vec(),
            ProcessGrid::Repeated(grid) => grid.sizes().to_vec(),
            ProcessGrid::Tetris(grid) => grid.sizes().to_vec(),
        };
        let number = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size as u64));
        if number > most {
            let sizes = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
            return Err(format!("the grid has {sizes} = {number} points; use a smaller one, or --max-points {number}"));
        }
        Ok(match self {
            ProcessGrid::Leaky(grid) => grid.points().map(ProcessSpec::Leaky).collect(),
            ProcessGrid::Capped(grid) => grid.points().map(ProcessSpec::Capped).collect(),
            ProcessGrid::Repeated(grid) => grid.points().map(ProcessSpec::Repeated).collect(),
            ProcessGrid::Tetris(grid) => grid.points().map(ProcessSpec::Tetris).collect(),
        })
    }
}
