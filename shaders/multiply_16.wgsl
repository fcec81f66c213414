// The 64-bit product of two 32-bit words as (low, high), from 16-bit limbs: for devices without 64-bit integers.
// No term can overflow: (2^16 - 1)^2 + 2 (2^16 - 1) = 2^32 - 1.
fn multiply(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let t = a1 * b0 + ((a0 * b0) >> 16u);
    let u = a0 * b1 + (t & 0xffffu);
    return vec2<u32>(a * b, a1 * b1 + (t >> 16u) + (u >> 16u));
}
