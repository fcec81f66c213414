// Layouts `storage` and `grid`: the cells of a replica stay in `loads`. Constant: CELLS (words a replica).
// slot * CELLS stays below 2^30: a binding is at most 4 GiB.
var<private> base: u32;

fn cell(i: u32) -> u32 { return atomicLoad(&loads[base + i]); }
fn cell_add(i: u32, x: u32) -> u32 { return atomicAdd(&loads[base + i], x); }
fn cell_set(i: u32, x: u32) { atomicStore(&loads[base + i], x); }

fn enter(slot: u32, thread: u32) {
    base = slot * CELLS;
}

fn leave(slot: u32, thread: u32) {}

// All threads of the workgroup see all cells.
fn settle() {
    storageBarrier();
    workgroupBarrier();
}
