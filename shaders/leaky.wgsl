// Leaky bins: balls arrive in batches (throw.wgsl), then every non-empty bin deletes one ball (Berenbrink et al., PODC
// 2016). Definition: src/process/leaky.
// Threads: one a bin.
// Draws: one block of DOMAIN_ARRIVALS a round (arrivals.wgsl), and those of the throw.
// Layout: none of its own, loads in balls.
// Invariants: at most one ball leaves a bin.

// The load at the end of the round, given that at its start and the joins of the round.
fn serve(load: u32, joined: u32) -> u32 {
    let pre = load + joined;
    return pre - min(pre, 1u);
}
