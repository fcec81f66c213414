// Loads of the bins of one replica, on top of cell(), cell_add(), cell_set() of the layout. Constant: WIDE.
//
// Narrow: one word a bin, its load in the low half and the joins of the running round in the high half.
// Wide: two words a bin, load and joins.
// load_at() is the load at the start of the round whatever joins meanwhile: this makes the order of threads irrelevant.
// Overflow: a narrow load above 65,535, or as many joins in one round, loses a positive number of balls for good
// (65,535 for each 2^16 of load that is read back as a join, 65,536 for each carry out of the word) and never creates
// one; so the host, which compares the sum of the loads with the flow of balls after the chunk, finds every overflow,
// throws the chunk away and computes it again in the wide form. That form holds any load below 2^32.

fn load_at(bin: u32) -> u32 {
    if (WIDE) { return cell(2u * bin); }
    return cell(bin) & 0xffffu;
}

// One more ball in the bin; gives the number before, joins included.
fn join(bin: u32) -> u32 {
    if (WIDE) { return cell(2u * bin) + cell_add(2u * bin + 1u, 1u); }
    return halves(cell_add(bin, 0x10000u));
}

// Takes back a join.
fn leave_again(bin: u32) {
    if (WIDE) {
        cell_add(2u * bin + 1u, 0xffffffffu);
    } else {
        cell_add(bin, 0xffff0000u);
    }
}

// The balls in the bin, joins so far included.
fn balls_now(bin: u32) -> u32 {
    if (WIDE) { return cell(2u * bin) + cell(2u * bin + 1u); }
    return halves(cell(bin));
}

fn halves(word: u32) -> u32 {
    return (word & 0xffffu) + (word >> 16u);
}

// Balls that are in no bin, by what the process tells them apart by; behind the bins.
fn elsewhere(i: u32) -> u32 { return cell(ELSEWHERE + i); }
fn set_elsewhere(i: u32, balls: u32) { cell_set(ELSEWHERE + i, balls); }

// The load at the start of the round, and the joins of the round.
fn load_and_joined(bin: u32) -> vec2<u32> {
    if (WIDE) { return vec2<u32>(cell(2u * bin), cell(2u * bin + 1u)); }
    let word = cell(bin);
    return vec2<u32>(word & 0xffffu, word >> 16u);
}

// Ends the round of a bin.
fn set_load(bin: u32, load: u32) {
    if (WIDE) {
        cell_set(2u * bin, load);
        cell_set(2u * bin + 1u, 0u);
    } else {
        cell_set(bin, load);
    }
}
