// One workgroup a replica, run.rounds rounds a dispatch, two barriers a round.
// Threads: thread t throws the units t, t + WG, .. and serves the bins t, t + WG, ..; the last thread, which has the
// fewest units, also plans the next round meanwhile; thread 0 records a round while the next one is thrown.
// Workgroups: slot = x + y * (workgroups in x), because one dimension ends at 65,535.
// Workgroup memory is initialised here: all of it is written before the first barrier.

var<workgroup> plans: array<vec2<u32>, 2>;
// Of the round of each parity: the slot of a round is next touched two barriers after thread 0 has emptied it.
var<workgroup> departed: array<atomic<u32>, 2>;
// This one is read by all threads at the start of the next round, and emptied a round later, a barrier after that and a
// barrier before it is touched again. Before the first round it is what the last dispatch left.
var<workgroup> empty: array<atomic<u32>, 2>;
var<workgroup> highest: array<atomic<u32>, 2>;

@compute @workgroup_size(WG)
fn advance(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let slot = group.x + group.y * groups.x;
    if (slot >= run.replicas) {
        return;
    }
    enter(slot, thread);
    enter_pool(slot, thread);
    clear_small_loads(thread);
    if (thread < 2u) {
        atomicStore(&departed[thread], 0u);
        atomicStore(&empty[thread], thread * (BINS - states[slot].occupied));
        atomicStore(&highest[thread], 0u);
    }
    if (thread == WG - 1u) {
        plans[0] = plan_round(slot, 0u);
    }
    settle();
    for (var k = 0u; k < run.rounds; k++) {
        let parity = k & 1u;
        let plan = vec2<u32>(
            plans[parity].x + select(0u, BINS - atomicLoad(&empty[1u - parity]), RETHROWS),
            plans[parity].y,
        );
        if (thread == WG - 1u && k + 1u < run.rounds) {
            plans[1u - parity] = plan_round(slot, k + 1u);
        }
        let draws = draws_at(slot, k);
        throw_all(draws, thread, plan.x, plan.y != 0u);
        var served = Served(0u, 0u, 0u);
        for (var bin = thread; bin < BINS; bin += WG) {
            served = serve_bin(bin, plan.y, served);
        }
        let sum = Served(subtotal(served.departed), subtotal(served.empty), highest_of(served.highest));
        if (speaks()) {
            atomicAdd(&departed[parity], sum.departed);
            if (RETHROWS || plan.y != 0u) {
                atomicAdd(&empty[parity], sum.empty);
                atomicMax(&highest[parity], sum.highest);
            }
        }
        settle();
        if (thread == 0u) {
            let all = Served(
                atomicExchange(&departed[parity], 0u),
                atomicLoad(&empty[parity]),
                atomicExchange(&highest[parity], 0u),
            );
            atomicStore(&empty[1u - parity], 0u);
            record_round(slot, plan, all);
        }
        if ((plan.y & SAMPLE_LOADS) != 0u) {
            flush_small_loads(thread);
        }
    }
    leave_pool(slot, thread);
    leave(slot, thread);
}
