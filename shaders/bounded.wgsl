// Exactly uniform bin indices, packed into words as src/rng/bounded.rs says (the packing rule is evaluated there).
// Uses: multiply(), draw_block(). Constants: BINS, CHOICES, INDICES_PER_WORD, BALLS_PER_WORD, PRODUCT, THRESHOLD,
// MAX_ATTEMPTS, BALLS_PER_UNIT, BLOCKS_PER_UNIT.
//
// A unit is the smallest run of whole Philox blocks that serves whole balls: BLOCKS_PER_UNIT blocks, BALLS_PER_UNIT
// balls, one of the two is 1. It is the work of one thread, so that no block is drawn twice.
// Draws consumed by unit u: blocks u BLOCKS_PER_UNIT .. (u + 1) BLOCKS_PER_UNIT of the domain, attempt 0; the word
// number j of the round, where rejected, from item j, attempts 1 .. MAX_ATTEMPTS.
// Range: word numbers stay below 2^31 (src/process refuses more).

fn rejects(word: u32) -> bool {
    return word * PRODUCT < THRESHOLD;
}

// The first word that is accepted, else the last.
fn first_accepted(words: vec4<u32>) -> u32 {
    if (!rejects(words.x)) { return words.x; }
    if (!rejects(words.y)) { return words.y; }
    return select(words.w, words.z, !rejects(words.z));
}

// Block number `item` with its rejected words redrawn. Here rather than where a word is used, so that the loops over
// balls and choices stay small enough to be unrolled; one loop over words and attempts, so that this is not.
fn accepted_block(draws: Draws, domain: u32, item: u32) -> vec4<u32> {
    var block = draw_block(draws, domain, 0u, item);
    if (THRESHOLD > 0u && any(block * PRODUCT < vec4<u32>(THRESHOLD))) {
        var word = 0u;
        var attempt = 0u;
        while (word < 4u) {
            if (rejects(block.x) && attempt < MAX_ATTEMPTS) {
                attempt++;
                block.x = first_accepted(draw_block(draws, domain, attempt, 4u * item + word));
            } else {
                attempt = 0u;
                word++;
                block = block.yzwx;
            }
        }
    }
    return block;
}

// The words of a unit, taken in order: the block is rotated so that its next word is block.x, `rest` is what is left of
// the last word taken.
struct Words {
    draws: Draws,
    domain: u32,
    first_block: u32,
    block: vec4<u32>,
    taken: u32,
    rest: u32,
}

fn words_of(draws: Draws, domain: u32, unit: u32) -> Words {
    let first = unit * BLOCKS_PER_UNIT;
    return Words(draws, domain, first, accepted_block(draws, domain, first), 0u, 0u);
}

// Index number `choice` of ball number `ball` of the unit; to be asked for in order, none left out.
fn next_index(words: ptr<function, Words>, ball: u32, choice: u32) -> u32 {
    if (((ball % BALLS_PER_WORD) * CHOICES + choice) % INDICES_PER_WORD == 0u) {
        let taken = (*words).taken;
        if (BLOCKS_PER_UNIT > 1u && taken > 0u && taken % 4u == 0u) {
            let item = (*words).first_block + taken / 4u;
            (*words).block = accepted_block((*words).draws, (*words).domain, item);
        }
        (*words).rest = (*words).block.x;
        (*words).block = (*words).block.yzwx;
        (*words).taken = taken + 1u;
    }
    let product = multiply((*words).rest, BINS);
    (*words).rest = product.x;
    return product.y;
}
