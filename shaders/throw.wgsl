// A batch of balls: each joins a least loaded of CHOICES random bins by the loads at the START of the round.
// Threads: one a unit of balls (see bounded.wgsl).
// Draws: the units of DOMAIN_CHOICES.
// Layout: none of its own; loads are reached through load_at() and join() alone (bins.wgsl), in balls.
// Invariants: a ball of the batch joins exactly one bin, so the joins of a round sum to `balls`; indices are below BINS
// (bounded.wgsl). load_at() does not see the joins of the running round, and a strict < keeps the first sample of the
// smallest load: the result does not depend on the order of the threads.

// The throw of a round in which `balls` balls are thrown, by all threads of a replica; all see the joins when it ends.
fn throw_all(draws: Draws, thread: u32, balls: u32, sampled: bool) {
    for (var unit = thread; unit * BALLS_PER_UNIT < balls; unit += WG) {
        throw_unit(draws, unit, balls);
    }
    settle();
}

// There is no pool.
fn enter_pool(slot: u32, thread: u32) {}
fn leave_pool(slot: u32, thread: u32) {}
fn balls_elsewhere() -> u32 { return 0u; }

fn throw_unit(draws: Draws, unit: u32, balls: u32) {
    var words = words_of(draws, DOMAIN_CHOICES, unit);
    for (var ball = 0u; ball < BALLS_PER_UNIT; ball++) {
        var best = next_index(&words, ball, 0u);
        if (CHOICES > 1u) {
            var least = load_at(best);
            for (var choice = 1u; choice < CHOICES; choice++) {
                let bin = next_index(&words, ball, choice);
                let load = load_at(bin);
                if (load < least) {
                    least = load;
                    best = bin;
                }
            }
        }
        if (unit * BALLS_PER_UNIT + ball < balls) {
            join(best);
        }
    }
}
