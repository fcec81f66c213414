//! The GPU, through wgpu.

mod device;

pub use device::{AdapterKind, AdapterSummary, adapters};
