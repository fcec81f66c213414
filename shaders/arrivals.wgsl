// Number of balls of a round: one 64-bit uniform against the host's cumulative thresholds (src/rng/thresholds.rs).
// Uses: draw_block(). Constants: ARRIVALS_FIRST, ARRIVALS_TABLE (entries). Binding: thresholds, (low, high) words.
// Draws: words 0 (low) and 1 (high) of block 0 of DOMAIN_ARRIVALS.

fn arrivals(draws: Draws) -> u32 {
    let u = draw_block(draws, DOMAIN_ARRIVALS, 0u, 0u);
    var low = 0u;
    var high = ARRIVALS_TABLE;
    while (low < high) {
        let middle = (low + high) / 2u;
        let t = thresholds[middle];
        if (t.y < u.y || (t.y == u.y && t.x <= u.x)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return ARRIVALS_FIRST + low;
}
