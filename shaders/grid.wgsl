// Layout `grid`: one thread a unit of balls, then one thread a bin; four entry points, the last three once a round.
// The device keeps the time: seen[slot].rounds counts the rounds of the submission, so all dispatches of a submission
// are alike. Between dispatches of a pass all writes are visible.
// Workgroups: number g = x + y * (workgroups in x) belongs to slot g / (workgroups a replica).
// Constants: UNIT_GROUPS, BIN_GROUPS (workgroups a replica). Range: g * WG stays below 2^32 (the host checks).

var<workgroup> group_departed: atomic<u32>;
var<workgroup> group_empty: atomic<u32>;
var<workgroup> group_highest: atomic<u32>;

fn plan_next(slot: u32, k: u32) {
    let plan = plan_round(slot, k);
    states[slot].balls = plan.x + select(0u, states[slot].occupied, RETHROWS);
    states[slot].flags = plan.y;
}

// Before the first round of a submission.
@compute @workgroup_size(WG)
fn open_rounds(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let slot = (group.x + group.y * groups.x) * WG + thread;
    if (slot < run.replicas) {
        plan_next(slot, 0u);
    }
}

@compute @workgroup_size(WG)
fn throw_balls(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    let slot = number / UNIT_GROUPS;
    if (slot >= run.replicas) {
        return;
    }
    enter(slot, thread);
    let unit = (number % UNIT_GROUPS) * WG + thread;
    if (unit * BALLS_PER_UNIT < states[slot].balls) {
        throw_unit(draws_at(slot, seen[slot].rounds), unit, states[slot].balls);
    }
}

@compute @workgroup_size(WG)
fn serve_bins(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    let slot = number / BIN_GROUPS;
    if (slot >= run.replicas) {
        return;
    }
    enter(slot, thread);
    clear_small_loads(thread);
    if (thread == 0u) {
        atomicStore(&group_departed, 0u);
        atomicStore(&group_empty, 0u);
        atomicStore(&group_highest, 0u);
    }
    workgroupBarrier();
    let bin = (number % BIN_GROUPS) * WG + thread;
    let flags = states[slot].flags;
    var served = Served(0u, 0u, 0u);
    if (bin < BINS) {
        served = serve_bin(bin, flags, served);
    }
    let sum = Served(subtotal(served.departed), subtotal(served.empty), highest_of(served.highest));
    if (speaks()) {
        atomicAdd(&group_departed, sum.departed);
        atomicAdd(&group_empty, sum.empty);
        atomicMax(&group_highest, sum.highest);
    }
    workgroupBarrier();
    if (thread == 0u) {
        atomicAdd(&states[slot].departed, atomicLoad(&group_departed));
        atomicAdd(&states[slot].empty, atomicLoad(&group_empty));
        atomicMax(&states[slot].highest, atomicLoad(&group_highest));
    }
    if ((flags & SAMPLE_LOADS) != 0u) {
        flush_small_loads(thread);
    }
}

@compute @workgroup_size(WG)
fn close_rounds(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let slot = (group.x + group.y * groups.x) * WG + thread;
    if (slot < run.replicas) {
        let served = Served(
            atomicExchange(&states[slot].departed, 0u),
            atomicExchange(&states[slot].empty, 0u),
            atomicExchange(&states[slot].highest, 0u),
        );
        record_round(slot, vec2<u32>(states[slot].balls, states[slot].flags), served);
        plan_next(slot, seen[slot].rounds);
    }
}
