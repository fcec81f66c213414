// The 64-bit product of two 32-bit words as (low, high): the zero-extended form that compilers know as one instruction.
fn multiply(a: u32, b: u32) -> vec2<u32> {
    let product = u64(a) * u64(b);
    return vec2<u32>(u32(product), u32(product >> 32u));
}
