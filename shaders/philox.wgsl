// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11) and the counter layout of src/rng/mod.rs.
// Uses: multiply(). Constants: PHILOX_M0, PHILOX_M1, PHILOX_W0, PHILOX_W1, DOMAIN_*.

fn philox_round(c: vec4<u32>, k: vec2<u32>) -> vec4<u32> {
    let p = multiply(PHILOX_M0, c.x);
    let q = multiply(PHILOX_M1, c.z);
    return vec4<u32>(q.y ^ c.y ^ k.x, q.x, p.y ^ c.w ^ k.y, p.x);
}

// Written out, because a loop would cost registers for its counter, and llvmpipe an iteration of its budget each.
fn philox(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
    let step = vec2<u32>(PHILOX_W0, PHILOX_W1);
    var c = philox_round(counter, key);
    c = philox_round(c, key + step);
    c = philox_round(c, key + 2u * step);
    c = philox_round(c, key + 3u * step);
    c = philox_round(c, key + 4u * step);
    c = philox_round(c, key + 5u * step);
    c = philox_round(c, key + 6u * step);
    c = philox_round(c, key + 7u * step);
    c = philox_round(c, key + 8u * step);
    return philox_round(c, key + 9u * step);
}

// The randomness of one replica in one round; round is (low 32 bits, high 16 bits), key is the seed, low word first.
struct Draws {
    key: vec2<u32>,
    round: vec2<u32>,
    replica: u32,
}

// Four words: block `item` of `domain`; attempt is 0 for a first draw.
fn draw_block(draws: Draws, domain: u32, attempt: u32, item: u32) -> vec4<u32> {
    let tag = domain | (attempt << 8u) | (draws.round.y << 16u);
    return philox(vec4<u32>(item, draws.round.x, draws.replica, tag), draws.key);
}
