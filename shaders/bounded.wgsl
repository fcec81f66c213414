// Exactly uniform bin indices, packed into words as src/rng/bounded.rs says (the packing rule is evaluated there).
// Uses: multiply(), draw_block(). Constants: BINS, CHOICES, INDICES_PER_WORD, BALLS_PER_WORD, PRODUCT, THRESHOLD,
// MAX_ATTEMPTS, BALLS_PER_UNIT, BLOCKS_PER_UNIT.
//
// A unit is the smallest run of whole Philox blocks that serves whole balls: BLOCKS_PER_UNIT blocks, BALLS_PER_UNIT
// balls, one of the two is 1. It is the work of one thread, so that no block is drawn twice.
// Draws consumed by unit u: blocks u BLOCKS_PER_UNIT .. (u + 1) BLOCKS_PER_UNIT of the domain, attempt 0; the word
// number j of the round, where rejected, from item j, attempts 1 .. MAX_ATTEMPTS.
// Range: word numbers stay below 2^31 (src/process refuses more).

// The words of a unit, taken in order. The block is rotated so that its next word is block.x.
struct Words {
    draws: Draws,
    domain: u32,
    block: vec4<u32>,
    next: u32,
    rest: u32,
}

fn words_of(draws: Draws, domain: u32, unit: u32) -> Words {
    return Words(draws, domain, vec4<u32>(0u), unit * BLOCKS_PER_UNIT * 4u, 0u);
}

fn rejects(word: u32) -> bool {
    return word * PRODUCT < THRESHOLD;
}

fn redraw(draws: Draws, domain: u32, index: u32) -> u32 {
    var word = 0u;
    for (var attempt = 1u; attempt <= MAX_ATTEMPTS; attempt++) {
        let words = draw_block(draws, domain, attempt, index);
        word = words.x;
        if (!rejects(word)) { break; }
        word = words.y;
        if (!rejects(word)) { break; }
        word = words.z;
        if (!rejects(word)) { break; }
        word = words.w;
        if (!rejects(word)) { break; }
    }
    return word;
}

// Index number `choice` of ball number `ball` of the unit; to be asked for in order, none left out.
fn next_index(words: ptr<function, Words>, ball: u32, choice: u32) -> u32 {
    if (((ball % BALLS_PER_WORD) * CHOICES + choice) % INDICES_PER_WORD == 0u) {
        let index = (*words).next;
        if (index % 4u == 0u) {
            (*words).block = draw_block((*words).draws, (*words).domain, 0u, index / 4u);
        }
        (*words).rest = (*words).block.x;
        (*words).block = (*words).block.yzwx;
        (*words).next = index + 1u;
        if (rejects((*words).rest)) {
            (*words).rest = redraw((*words).draws, (*words).domain, index);
        }
    }
    let product = multiply((*words).rest, BINS);
    (*words).rest = product.x;
    return product.y;
}
