// Tetris: every non-empty bin discards one ball, and new balls are thrown (throw.wgsl) into bins with CHOICES = 1
// (Becchetti et al., SPAA 2015). Definition: src/process/tetris.rs. The throw comes first here, onto the joins, and the
// deletions are taken from the loads at the start of the round.
// Threads: one a bin.
// Draws: one block of DOMAIN_ARRIVALS a round (arrivals.wgsl), and those of the throw.
// Layout: none of its own, loads in balls.
// Invariants: at most one ball leaves a bin.

// The load at the end of the round, given that at its start and the joins of the round.
fn serve(load: u32, joined: u32) -> u32 {
    return load - min(load, 1u) + joined;
}
