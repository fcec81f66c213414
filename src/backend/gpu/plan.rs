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
/// Most levels that are counted: 32 MiB for the loads, and as much again for the max loads of each replica.
const MAX_LEVELS: u32 = 1 << 23;
/// Fewest levels to begin with, and about how many for all replicas of a block together: 16 MiB.
const FIRST_LEVELS: u32 = 1 << 8;
const FIRST_COUNTERS: u64 = 1 << 22;
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
    /// The form to begin with, for a block of this many replicas.
    pub(super) fn first(replicas: u64) -> Form {
        let levels = (FIRST_COUNTERS / replicas.max(1)).clamp(FIRST_LEVELS.into(), NARROW_LEVELS.into());
        Form { wide: false, levels: 1 << levels.ilog2() }
    }

    /// Whether initial loads up to `max` can be held and counted.
    pub(super) fn holds(&self, max: u32) -> bool {
        max < self.levels
    }

    /// The next form with more levels; it holds `max`.
    pub(super) fn grow(self, max: u32) -> Result<Form, BackendError> {
        // Much more than what is there, so that the form is not outgrown again and again.
        let enough =
            self.levels.saturating_mul(8).max(max.saturating_mul(2).checked_next_power_of_two().unwrap_or(u32::MAX));
        let most = if self.levels < NARROW_LEVELS && max < NARROW_LEVELS { NARROW_LEVELS } else { MAX_LEVELS };
        let levels = enough.min(most);
        let larger = Form { wide: self.wide || levels > NARROW_LEVELS, levels };
        if larger.levels > self.levels && larger.holds(max) {
            return Ok(larger);
        }
        let message = format!("the GPU tallies loads below {MAX_LEVELS} balls and met a larger one; use --backend cpu");
        Err(BackendError::Unsupported(message))
    }

    /// The same levels with wide loads.
    pub(super) fn widen(self) -> Form {
        Form { wide: true, ..self }
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
    /// Most rounds until the max loads are read; at least as many as a submission has.
    pub(super) most_counted: u64,
}

/// Plans `replicas` replicas of `job` on `device`, which follow each other and are at the same round.
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
    let threads = unit.count(kernel.most_balls()).clamp(32, most_threads).next_power_of_two();
    let workgroup = tuning.workgroup.unwrap_or(threads).clamp(1, device.summary.max_invocations);
    let with = |layout| Variant {
        layout,
        multiply,
        subgroups,
        wide: form.wide,
        staggered: false,
        workgroup,
        levels: form.levels,
        measure: job.schedule.measure,
    };
    let fits = |layout: Layout| {
        let variant = with(layout);
        variant.workgroup_bytes(&kernel) <= u64::from(device.summary.max_workgroup_storage)
            && (!device.is_software() || software_rounds(&kernel, &variant) > 0)
            && (layout != Layout::Grid || kernel.pool.is_none())
    };
    let layout = match tuning.layout {
        Some(layout) if fits(layout) => layout,
        Some(layout) => {
            let message = format!("the layout {layout:?} does not hold n = {bins} bins here; leave the choice open");
            return Err(BackendError::Unsupported(message));
        }
        None if fits(Layout::Workgroup) => Layout::Workgroup,
        // The ages of a pool are a barrier apart, which only the threads of a workgroup have.
        None if kernel.pool.is_some() && fits(Layout::Storage) => Layout::Storage,
        None if kernel.pool.is_some() => {
            let message = format!(
                "{} has no room for a pool of waiting balls at n = {bins} bins; use fewer bins, or --backend cpu",
                device.summary
            );
            return Err(BackendError::Unsupported(message));
        }
        None if replicas >= MANY_REPLICAS && fits(Layout::Storage) => Layout::Storage,
        None => Layout::Grid,
    };
    let variant = with(layout);
    let replicas = replicas.min(most_replicas(device, &kernel, &variant)?);
    // The counter of values beyond the levels takes loads and max loads: half the range for each.
    let counts = u64::from(u32::MAX) / 2;
    let counted = counts / (replicas * u64::from(bins));
    let loads_stride = job.schedule.every.saturating_mul(job.schedule.loads_every).max(1);
    // At most as many balls find a place as leave one, and as many as there are places at the end.
    let accepted = kernel.pool.map_or(MAX_ROUNDS, |pool| counted.saturating_sub(pool.places.into()));
    let most_rounds = [
        accepted,
        tuning.most_rounds.unwrap_or(MAX_ROUNDS),
        MAX_ROUNDS,
        counts / replicas,
        if job.schedule.loads_every == 0 { MAX_ROUNDS } else { counted.saturating_mul(loads_stride) },
        match layout {
            Layout::Grid => MAX_GRID_ROUNDS,
            _ if device.is_software() => software_rounds(&kernel, &variant),
            _ => MAX_ROUNDS,
        },
    ];
    let most_rounds = most_rounds.into_iter().fold(MAX_ROUNDS, u64::min).max(1);
    let most_counted = tuning.most_counted.unwrap_or(u32::MAX.into()).max(most_rounds);
    Ok(Plan { variant, replicas, most_rounds, most_counted })
}

/// Replicas that fit at once; at least one, or an error.
fn most_replicas(device: &Device, kernel: &Kernel<'_>, variant: &Variant) -> Result<u64, BackendError> {
    let bins = kernel.packing.bins;
    let replica = 4 * variant.cells(kernel);
    // A shader addresses the words of a binding with 32 bits.
    let binding = device.summary.max_storage_binding.min(device.summary.max_buffer).min(u64::from(u32::MAX));
    let counters = 4 * u64::from(variant.levels);
    let needed = replica.max(4 * variant.counters(kernel));
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
            let threads = Unit::new(&kernel.packing).count(kernel.most_balls()).max(bins);
            u64::from(threads.div_ceil(variant.workgroup))
        }
        Layout::Workgroup | Layout::Storage => 1,
    };
    // Thread numbers of a dispatch stay in 32 bits.
    let dispatched = (u64::from(u32::MAX) / u64::from(variant.workgroup)).min(MAX_DIMENSION * MAX_DIMENSION) / groups;
    let records = binding / size_of::<Seen>() as u64;
    Ok((binding.min(CHUNK_BYTES) / replica.max(counters)).min(dispatched).min(records).max(1))
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
    let units = u64::from(unit.count(kernel.most_balls())).div_ceil(threads);
    let bins = u64::from(packing.bins).div_ceil(threads);
    let small = u64::from(SMALL_LOADS).div_ceil(threads) + 1;
    // With a pool two loops end for each age, a unit is thrown once for each age that it has a ball of, and the small
    // waiting times are passed.
    let (ages, visits) = match kernel.pool {
        Some(pool) => (2 * u64::from(pool.ages) + 2 + small, units * u64::from(unit.balls)),
        None => (0, units),
    };
    let round = 1 + visits * throw + 1 + ages + bins + 1 + search + small;
    let once = 2 * (variant.cells(kernel).div_ceil(threads) + 1) + 2 * small + search + 1;
    SOFTWARE_ITERATIONS.saturating_sub(once) / round
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_begin_with_levels_for_all_replicas() {
        for (replicas, levels) in
            [(0, 1 << 16), (1, 1 << 16), (64, 1 << 16), (65, 1 << 15), (16_384, 256), (1 << 40, 256)]
        {
            assert_eq!(Form::first(replicas), Form { wide: false, levels }, "{replicas}");
        }
    }

    #[test]
    fn forms_grow_until_they_hold_a_load_or_refuse_it() {
        let narrow = |levels| Form { wide: false, levels };
        let wide = |levels| Form { wide: true, levels };
        for (form, max, grown) in [
            (narrow(256), 0, narrow(2048)),
            (narrow(256), 3000, narrow(8192)),
            (narrow(1 << 14), 0, narrow(1 << 16)),
            (narrow(256), 65_535, narrow(1 << 16)),
            (narrow(256), 65_536, wide(1 << 17)),
            (narrow(1 << 16), 0, wide(1 << 19)),
            (wide(256), 0, wide(2048)),
            (narrow(1 << 16), 1_000_000, wide(1 << 21)),
            (narrow(1 << 16), MAX_LEVELS - 1, wide(MAX_LEVELS)),
        ] {
            assert_eq!(form.grow(max).expect("there is room"), grown, "{form:?}, {max}");
            assert!(grown.holds(max));
        }
        for refused in [narrow(1 << 16).grow(MAX_LEVELS), narrow(256).grow(u32::MAX), wide(MAX_LEVELS).grow(0)] {
            let message = refused.expect_err("no room").to_string();
            assert!(message.contains("--backend cpu"), "{message}");
        }
        assert_eq!(narrow(256).widen(), wide(256));
    }
}
