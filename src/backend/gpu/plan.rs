//! What a block becomes on a given device: layout, form of the loads, replicas at once, rounds a submission.

use super::Tuning;
use super::compose::{Layout, Multiply, SMALL_LOADS, Unit, Variant};
use super::device::Device;
use super::records::Seen;
use crate::backend::{BackendError, Job};
use crate::process::Kernel;

/// How the loads are held and counted. A chunk starts with the smallest form and is computed again with a larger one
/// where a value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) wide: bool,
    pub(super) levels: u32,
}

/// A narrow load has 16 bits.
const NARROW_LEVELS: u32 = 1 << 16;
/// Most levels that are counted: two histograms of 32 MiB, read back after each submission.
const MAX_LEVELS: u32 = 1 << 23;
/// Loads of a chunk take at most this many bytes where more than one replica does.
const CHUNK_BYTES: u64 = 1 << 28;
/// Replicas from which one workgroup each keeps a GPU as busy as all threads on one replica (an estimate from the
/// number of multiprocessors of large GPUs, to be confirmed by `benches/gpu.sh`).
const MANY_REPLICAS: u64 = 256;
/// llvmpipe silently ends a loop after 65,535 iterations of an invocation and dispatch, summed over all its loops.
const SOFTWARE_ITERATIONS: u64 = 60_000;
/// Most rounds of a submission; the grid layout encodes each.
const MAX_ROUNDS: u64 = 1 << 20;
const MAX_GRID_ROUNDS: u64 = 1 << 10;
/// Workgroups in one dimension of a dispatch, on every device.
pub(super) const MAX_DIMENSION: u64 = 65_535;

impl Form {
    /// The form to begin with.
    pub(super) const NARROW: Form = Form { wide: false, levels: NARROW_LEVELS };

    /// Whether initial loads up to `max` can be held and counted.
    pub(super) fn holds(&self, max: u32) -> bool {
        max < self.levels
    }

    /// The next larger form; it holds `max`.
    pub(super) fn grow(self, max: u32) -> Result<Form, BackendError> {
        // Twice what is there, so that the form is not outgrown at once.
        let levels = self.levels.max(max).saturating_mul(2).checked_next_power_of_two().unwrap_or(u32::MAX);
        let larger = Form { wide: true, levels: levels.min(MAX_LEVELS) };
        if larger.levels > self.levels && larger.holds(max) {
            return Ok(larger);
        }
        let message = format!("the GPU tallies loads below {MAX_LEVELS} balls and met a larger one; use --backend cpu");
        Err(BackendError::Unsupported(message))
    }
}

/// How to run a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) variant: Variant,
    /// Replicas that are computed at once.
    pub(super) replicas: u64,
    /// Most rounds of a submission.
    pub(super) most_rounds: u64,
}

/// Plans `replicas` replicas of `job` on `device`.
pub(super) fn plan(
    device: &Device,
    tuning: &Tuning,
    job: &Job<'_>,
    replicas: u64,
    form: Form,
) -> Result<Plan, BackendError> {
    let kernel = job.process.kernel();
    let bins = kernel.packing.bins;
    let multiply = match tuning.multiply {
        Some(Multiply::Int64) if !device.features.contains(wgpu::Features::SHADER_INT64) => {
            let message = format!("{} has no 64-bit integers; multiply from 16-bit limbs", device.summary);
            return Err(BackendError::Unsupported(message));
        }
        Some(multiply) => multiply,
        None if device.features.contains(wgpu::Features::SHADER_INT64) => Multiply::Int64,
        None => Multiply::Limbs16,
    };
    let unit = Unit::new(&kernel.packing);
    let subgroups = tuning.subgroups && device.features.contains(wgpu::Features::SUBGROUP);
    // One unit a thread where there are that few; a software adapter pays for each barrier by the thread.
    let most_threads = if device.is_software() { 64 } else { 256 };
    let threads = unit.count(kernel.arrivals.last()).clamp(32, most_threads).next_power_of_two();
    let workgroup = tuning.workgroup.unwrap_or(threads).clamp(1, device.summary.max_invocations);
    let with = |layout| Variant {
        layout,
        multiply,
        subgroups,
        wide: form.wide,
        workgroup,
        levels: form.levels,
        measure: job.schedule.measure,
    };
    let fits = |layout: Layout| {
        let variant = with(layout);
        variant.workgroup_bytes(bins) <= u64::from(device.summary.max_workgroup_storage)
            && (!device.is_software() || software_rounds(&kernel, &variant) > 0)
    };
    let layout = match tuning.layout {
        Some(layout) if fits(layout) => layout,
        Some(layout) => {
            let message = format!("the layout {layout:?} does not hold n = {bins} bins here; leave the choice open");
            return Err(BackendError::Unsupported(message));
        }
        None if fits(Layout::Workgroup) => Layout::Workgroup,
        None if replicas >= MANY_REPLICAS && fits(Layout::Storage) => Layout::Storage,
        None => Layout::Grid,
    };
    let variant = with(layout);
    let replicas = replicas.min(most_replicas(device, &kernel, &variant)?);
    let counted = u64::from(u32::MAX) / (replicas * u64::from(bins));
    let loads_stride = job.schedule.every.saturating_mul(job.schedule.loads_every).max(1);
    let most_rounds = [
        tuning.most_rounds.unwrap_or(MAX_ROUNDS),
        MAX_ROUNDS,
        u64::from(u32::MAX) / replicas,
        if job.schedule.loads_every == 0 { MAX_ROUNDS } else { counted.saturating_mul(loads_stride) },
        match layout {
            Layout::Grid => MAX_GRID_ROUNDS,
            _ if device.is_software() => software_rounds(&kernel, &variant),
            _ => MAX_ROUNDS,
        },
    ];
    let most_rounds = most_rounds.into_iter().fold(MAX_ROUNDS, u64::min).max(1);
    Ok(Plan { variant, replicas, most_rounds })
}

/// Replicas that fit at once; at least one, or an error.
fn most_replicas(device: &Device, kernel: &Kernel<'_>, variant: &Variant) -> Result<u64, BackendError> {
    let bins = kernel.packing.bins;
    let replica = 4 * variant.cells(bins);
    // A shader addresses the words of a binding with 32 bits.
    let binding = device.summary.max_storage_binding.min(device.summary.max_buffer).min(u64::from(u32::MAX));
    let counts = 4 * (2 * u64::from(variant.levels) + 1);
    let needed = replica.max(counts);
    if needed > binding {
        return Err(BackendError::Memory {
            what: format!("one replica of n = {bins} bins"),
            needed: needed.div_ceil(1 << 20),
            available: binding >> 20,
            remedy: "use fewer bins, an adapter with larger buffers, or --backend cpu",
        });
    }
    let groups = match variant.layout {
        Layout::Grid => {
            let threads = Unit::new(&kernel.packing).count(kernel.arrivals.last()).max(bins);
            u64::from(threads.div_ceil(variant.workgroup))
        }
        Layout::Workgroup | Layout::Storage => 1,
    };
    // Thread numbers of a dispatch stay in 32 bits.
    let dispatched = (u64::from(u32::MAX) / u64::from(variant.workgroup)).min(MAX_DIMENSION * MAX_DIMENSION) / groups;
    let records = binding / size_of::<Seen>() as u64;
    Ok((binding.min(CHUNK_BYTES) / replica).min(dispatched).min(records).max(1))
}

/// Rounds of a dispatch for which no invocation of a software adapter passes its loop limit, as if no loop were
/// unrolled. Redrawn words are rare (at most one in 256 where n is below 2^24); a block has ten iterations for them.
fn software_rounds(kernel: &Kernel<'_>, variant: &Variant) -> u64 {
    let (packing, unit) = (&kernel.packing, Unit::new(&kernel.packing));
    let threads = u64::from(variant.workgroup);
    // A loop costs its iterations and its exit test.
    let ball = u64::from(packing.choices) + 2;
    let throw = 2 + u64::from(unit.balls) * ball + 10 * u64::from(unit.blocks);
    let search = u64::from(usize::BITS - kernel.arrivals.as_slice().len().leading_zeros()) + 2;
    let units = u64::from(unit.count(kernel.arrivals.last())).div_ceil(threads);
    let bins = u64::from(packing.bins).div_ceil(threads);
    let small = u64::from(SMALL_LOADS).div_ceil(threads) + 1;
    let round = 1 + units * throw + 1 + bins + 1 + search + small;
    let once = 2 * (variant.cells(packing.bins).div_ceil(threads) + 1) + small + search + 1;
    SOFTWARE_ITERATIONS.saturating_sub(once) / round
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_grow_until_they_hold_a_load_or_refuse_it() {
        assert!(Form::NARROW.holds(65_535) && !Form::NARROW.holds(65_536));
        for (max, levels) in [(0, 1 << 17), (65_536, 1 << 17), (1_000_000, 1 << 21), (MAX_LEVELS - 1, MAX_LEVELS)] {
            let grown = Form::NARROW.grow(max).expect("there is room");
            assert_eq!(grown, Form { wide: true, levels }, "{max}");
            assert!(grown.holds(max));
        }
        let largest = Form { wide: true, levels: MAX_LEVELS };
        for refused in [Form::NARROW.grow(MAX_LEVELS), Form::NARROW.grow(u32::MAX), largest.grow(0)] {
            let message = refused.expect_err("no room").to_string();
            assert!(message.contains("--backend cpu"), "{message}");
        }
    }
}
