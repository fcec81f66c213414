// Test kernel: the random functions alone, one question a thread.
// Layout: `asked` is (counter, (key, 0, 0)) for each question of `blocks`; `answers` has one vec4 a question, in the
// order asked. `choices` answers with the first index of ball t (and 0, 0, 0) in the round and replica of the counter
// asked[0] under the key asked[1].

@group(0) @binding(0) var<storage, read> asked: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> answers: array<vec4<u32>>;

@compute @workgroup_size(64)
fn blocks(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&answers)) {
        answers[id.x] = philox(asked[2u * id.x], asked[2u * id.x + 1u].xy);
    }
}

@compute @workgroup_size(64)
fn choices(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&answers)) {
        let draws = Draws(asked[1].xy, vec2<u32>(asked[0].y, asked[0].w >> 16u), asked[0].z);
        var words = words_of(draws, DOMAIN_CHOICES, id.x / BALLS_PER_UNIT);
        var index = 0u;
        for (var ball = 0u; ball <= id.x % BALLS_PER_UNIT; ball++) {
            for (var choice = 0u; choice < CHOICES; choice++) {
                let next = next_index(&words, ball, choice);
                if (choice == 0u) {
                    index = next;
                }
            }
        }
        answers[id.x] = vec4<u32>(index, 0u, 0u, 0u);
    }
}
