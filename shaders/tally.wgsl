// Sampling and tallies. Constants: LEVELS, SMALL, PRE (measure before the deletions), WG.
// Uses: multiply(), arrivals(), load_and_joined(), set_load(), serve(), subtotal(), highest_of(), speaks().

const SAMPLE = 1u;
const SAMPLE_LOADS = 2u;

fn is_in(round: u32, first: u32, stride: u32) -> bool {
    return round >= first && (round - first) % stride == 0u;
}

// Of round k of the submission: (balls that arrive, what is sampled). With RETHROWS the occupied bins of the round before
// add as many balls.
fn plan_round(slot: u32, k: u32) -> vec2<u32> {
    let after = round_of(slot, k);
    let flags = select(0u, SAMPLE, is_in(after, run.first_sample, run.every))
        | select(0u, SAMPLE_LOADS, is_in(after, run.first_loads, run.loads_every));
    return vec2<u32>(arrivals(draws_at(slot, k)), flags);
}

// Counts of small loads in this workgroup, so that the few loads that most bins have do not meet in one global word.
var<workgroup> small_loads: array<atomic<u32>, SMALL>;

fn count_load(load: u32) {
    if (load < SMALL) {
        atomicAdd(&small_loads[load], 1u);
    } else if (load < LEVELS) {
        atomicAdd(&counts[load], 1u);
    } else {
        atomicAdd(&counts[LEVELS], 1u);
    }
}

fn clear_small_loads(thread: u32) {
    for (var i = thread; i < SMALL; i += WG) {
        atomicStore(&small_loads[i], 0u);
    }
}

fn flush_small_loads(thread: u32) {
    for (var i = thread; i < SMALL; i += WG) {
        let count = atomicExchange(&small_loads[i], 0u);
        if (count > 0u) {
            atomicAdd(&counts[i], count);
        }
    }
}

// What some bins did in one round: at most 2^32 - 1 balls left, since a bin deletes at most one.
struct Served {
    departed: u32,
    empty: u32,
    highest: u32,
}

fn serve_bin(bin: u32, flags: u32, sum: Served) -> Served {
    let before = load_and_joined(bin);
    let pre = before.x + before.y;
    let post = serve(before.x, before.y);
    set_load(bin, post);
    var next = sum;
    next.departed += pre - post;
    if (RETHROWS || flags != 0u) {
        let load = select(post, pre, PRE);
        next.empty += u32(load == 0u);
        next.highest = max(next.highest, load);
        if ((flags & SAMPLE_LOADS) != 0u) {
            count_load(load);
        }
    }
    return next;
}

// (sum, carry) of two words and a carry.
fn add_carry(a: u32, b: u32, carry: u32) -> vec2<u32> {
    let s = a + b;
    let t = s + carry;
    return vec2<u32>(t, u32(s < a) + u32(t < s));
}

// (low, high) of a 64-bit sum.
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

fn less_64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn add_squares(m: Moments, a: vec4<u32>) -> Moments {
    var r = m;
    let s0 = add_carry(m.squares_0, a.x, 0u);
    let s1 = add_carry(m.squares_1, a.y, s0.y);
    let s2 = add_carry(m.squares_2, a.z, s1.y);
    let s3 = add_carry(m.squares_3, a.w, s2.y);
    r.squares_0 = s0.x;
    r.squares_1 = s1.x;
    r.squares_2 = s2.x;
    r.squares_3 = s3.x;
    r.squares_4 += s3.y;
    return r;
}

// Adds one value below 2^63. Sums stay below 2^95, squares below 2^158: three and five words hold them.
fn add_value(m: Moments, x: vec2<u32>) -> Moments {
    let low = multiply(x.x, x.x);
    let cross = multiply(x.x, x.y);
    let high = multiply(x.y, x.y);
    var r = add_squares(m, vec4<u32>(low, high));
    r = add_squares(r, vec4<u32>(0u, cross, 0u));
    r = add_squares(r, vec4<u32>(0u, cross, 0u));
    let s0 = add_carry(m.sum_0, x.x, 0u);
    let s1 = add_carry(m.sum_1, x.y, s0.y);
    r.sum_0 = s0.x;
    r.sum_1 = s1.x;
    r.sum_2 += s1.y;
    if (less_64(vec2<u32>(m.largest_low, m.largest_high), x)) {
        r.largest_low = x.x;
        r.largest_high = x.y;
    }
    if (less_64(vec2<u32>(m.complement_low, m.complement_high), ~x)) {
        r.complement_low = ~x.x;
        r.complement_high = ~x.y;
    }
    return r;
}

// Ends a round of a replica, in which plan.x balls were thrown; called by one thread.
fn record_round(slot: u32, plan: vec2<u32>, served: Served) {
    let before = vec2<u32>(states[slot].total_low, states[slot].total_high);
    let pre = add_64(before, vec2<u32>(plan.x, 0u));
    let post = vec2<u32>(pre.x - served.departed, pre.y - u32(pre.x < served.departed));
    states[slot].total_low = post.x;
    states[slot].total_high = post.y;
    let arrived = add_64(vec2<u32>(seen[slot].arrived_low, seen[slot].arrived_high), vec2<u32>(plan.x, 0u));
    seen[slot].arrived_low = arrived.x;
    seen[slot].arrived_high = arrived.y;
    let departed =
        add_64(vec2<u32>(seen[slot].departed_low, seen[slot].departed_high), vec2<u32>(served.departed, 0u));
    seen[slot].departed_low = departed.x;
    seen[slot].departed_high = departed.y;
    seen[slot].rounds += 1u;
    if (RETHROWS) {
        states[slot].occupied = BINS - served.empty;
    }
    if (plan.y != 0u) {
        seen[slot].samples += 1u;
        let elsewhere = balls_elsewhere();
        let total = select(post, pre, PRE);
        let in_bins = vec2<u32>(total.x - elsewhere, total.y - u32(total.x < elsewhere));
        seen[slot].total_load = add_value(seen[slot].total_load, in_bins);
        if (POOL) {
            seen[slot].elsewhere = add_value(seen[slot].elsewhere, vec2<u32>(elsewhere, 0u));
        }
        seen[slot].empty_bins = add_value(seen[slot].empty_bins, vec2<u32>(served.empty, 0u));
        if (served.highest < LEVELS) {
            peaks[slot * LEVELS + served.highest] += 1u;
        } else {
            atomicAdd(&counts[LEVELS], 1u);
        }
    }
}
