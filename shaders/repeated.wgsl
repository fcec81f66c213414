// Repeated balls-into-bins: every non-empty bin gives one ball, and these balls are thrown (throw.wgsl) into bins with
// CHOICES = 1 (Becchetti et al., SPAA 2015). Definition: src/process/repeated.rs. Balls that are on their way lie in no
// bin: the throw comes first here, onto the joins, and the deletions are taken from the loads at the start of the round.
// Threads: one a bin.
// Draws: those of the throw.
// Layout: none of its own, loads in balls.
// Invariants: as many balls leave as are thrown (RETHROWS): the sum of the loads stays.

// The load at the end of the round, given that at its start and the joins of the round.
fn serve(load: u32, joined: u32) -> u32 {
    return load - min(load, 1u) + joined;
}
