// What host and device share; src/backend/gpu/records.rs has the same structs, and a test compares the offsets.
// A replica is a slot of the chunk here: slot s is replica run.first_replica + s, or with STAGGERED the one that its state
// names. Constant: STAGGERED (the slots have replicas that do not follow each other, or are at different rounds).

// One submission.
struct Run {
    key_low: u32,
    key_high: u32,
    // Number of the submission's first round; with STAGGERED, that of a slot which is ahead by none.
    round_low: u32,
    round_high: u32,
    first_replica: u32,
    replicas: u32,
    // Rounds of the submission.
    rounds: u32,
    // Sampled are the rounds first_sample, first_sample + every, .. from the submission's first on.
    first_sample: u32,
    every: u32,
    // The same for the rounds that add their load histogram.
    first_loads: u32,
    loads_every: u32,
}

// A replica's state beside its loads, kept from submission to submission.
struct State {
    // Balls in the system, from the numbers that arrived and left; the host compares it with the sum of the loads.
    total_low: u32,
    total_high: u32,
    // Bins with a ball at the end of the last round; kept with RETHROWS only.
    occupied: u32,
    // Largest age of a ball in the pool; kept with POOL only.
    oldest: u32,
    // Of the running round, in the grid layout: balls that are thrown, what is sampled, balls that left, empty bins, max.
    balls: u32,
    flags: u32,
    departed: atomic<u32>,
    empty: atomic<u32>,
    highest: atomic<u32>,
    // With STAGGERED only: the replica, and the rounds that it is ahead by, fewer than 2^31.
    replica: u32,
    ahead: u32,
}

// Exact power sums of a 64-bit observable over fewer than 2^32 samples. All zero is empty: the smallest value is kept
// as the largest complement.
struct Moments {
    sum_0: u32,
    sum_1: u32,
    sum_2: u32,
    squares_0: u32,
    squares_1: u32,
    squares_2: u32,
    squares_3: u32,
    squares_4: u32,
    largest_low: u32,
    largest_high: u32,
    complement_low: u32,
    complement_high: u32,
}

// What a replica did during one submission; cleared before each.
struct Seen {
    rounds: u32,
    samples: u32,
    arrived_low: u32,
    arrived_high: u32,
    departed_low: u32,
    departed_high: u32,
    total_load: Moments,
    empty_bins: Moments,
    // Balls in no bin at the end of a round; with POOL only.
    elsewhere: Moments,
}

@group(0) @binding(0) var<uniform> run: Run;
@group(0) @binding(1) var<storage, read> thresholds: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> loads: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> states: array<State>;
@group(0) @binding(4) var<storage, read_write> seen: array<Seen>;
// counts[v]: bins of load v; counts[LEVELS]: values that were LEVELS or more; with POOL, counts[LEVELS + 1 + v]: balls
// that wait for v rounds. Shared by the chunk, cleared before each
// submission; the host keeps submissions short of 2^32 of each.
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>>;
// peaks[slot * LEVELS + v]: sampled rounds of the replica in which its max load was v. Kept from submission to
// submission; the host reads and clears them before 2^32 rounds are sampled.
@group(0) @binding(6) var<storage, read_write> peaks: array<u32>;

fn replica_of(slot: u32) -> u32 {
    if (STAGGERED) { return states[slot].replica; }
    return run.first_replica + slot;
}

// Round k of the submission of a slot, counted from the submission's first round.
fn round_of(slot: u32, k: u32) -> u32 {
    if (STAGGERED) { return states[slot].ahead + k; }
    return k;
}

fn draws_at(slot: u32, k: u32) -> Draws {
    let after = round_of(slot, k);
    let low = run.round_low + after;
    let round = vec2<u32>(low, run.round_high + u32(low < after));
    return Draws(vec2<u32>(run.key_low, run.key_high), round, replica_of(slot));
}
