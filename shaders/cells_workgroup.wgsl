// Layout `workgroup`: the cells of a replica live in workgroup memory during a dispatch, in `loads` between dispatches.
// Constants: CELLS (words a replica), WG.
var<workgroup> cells: array<atomic<u32>, CELLS>;

fn cell(i: u32) -> u32 { return atomicLoad(&cells[i]); }
fn cell_add(i: u32, x: u32) -> u32 { return atomicAdd(&cells[i], x); }
fn cell_set(i: u32, x: u32) { atomicStore(&cells[i], x); }

fn enter(slot: u32, thread: u32) {
    for (var i = thread; i < CELLS; i += WG) {
        atomicStore(&cells[i], atomicLoad(&loads[slot * CELLS + i]));
    }
}

fn leave(slot: u32, thread: u32) {
    for (var i = thread; i < CELLS; i += WG) {
        atomicStore(&loads[slot * CELLS + i], atomicLoad(&cells[i]));
    }
}

// All threads see all cells.
fn settle() {
    workgroupBarrier();
}
