// One thread speaks for its subgroup, which saves atomics on one address. Sums and maxima over whichever threads are
// active together: right however the device groups them.
fn subtotal(x: u32) -> u32 { return subgroupAdd(x); }
fn highest_of(x: u32) -> u32 { return subgroupMax(x); }
fn speaks() -> bool { return subgroupExclusiveAdd(1u) == 0u; }
