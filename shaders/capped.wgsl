// CAPPED(c, lambda): the balls of the pool ask one bin each, oldest first, and a bin takes balls until it holds PLACES
// (Berenbrink et al., ICDCS 2021). Definition: src/process/capped. The deletions are those of leaky.wgsl.
// Threads: one a unit of balls (see bounded.wgsl); thread 0 keeps the pool.
// Draws: one block of DOMAIN_ARRIVALS a round (arrivals.wgsl), the units of DOMAIN_CHOICES.
// Layout: elsewhere(i) is the number of balls that have been rejected i + 1 times, for the last i as often or oftener.
// Waiting times, in rounds, are counted in counts[LEVELS + 1 + w], w < LEVELS.
// Invariants: while balls of one age ask, the number in a bin goes down only by what a rejected ball has added to it, so
// that a bin that is full stays full: how many are accepted, and which places they find, does not depend on the order of
// the threads. Ages are a barrier apart. Balls are neither made nor lost: rejected = asked - accepted, both counted by the
// threads, so that a ball that a thread leaves out is missing on the host.
// Range: a place is below PLACES; a narrow join and its undoing stay within the 16 bits as long as the places do.

// Of the ages of each parity: emptied a barrier after they were filled, and a barrier before they are filled again.
var<workgroup> asked: array<atomic<u32>, 2>;
var<workgroup> accepted: array<atomic<u32>, 2>;
// Largest age in the pool.
var<workgroup> oldest: u32;
var<workgroup> small_waits: array<atomic<u32>, SMALL>;
// Balls in the pool at the end of the round; thread 0 knows.
var<private> pool: u32;

fn enter_pool(slot: u32, thread: u32) {
    for (var i = thread; i < SMALL; i += WG) {
        atomicStore(&small_waits[i], 0u);
    }
    if (thread < 2u) {
        atomicStore(&asked[thread], 0u);
        atomicStore(&accepted[thread], 0u);
    }
    if (thread == 0u) {
        oldest = states[slot].oldest;
    }
}

fn leave_pool(slot: u32, thread: u32) {
    if (thread == 0u) {
        states[slot].oldest = oldest;
    }
}

fn balls_elsewhere() -> u32 {
    return pool;
}

fn count_wait(wait: u32) {
    if (wait < SMALL) {
        atomicAdd(&small_waits[wait], 1u);
    } else if (wait < LEVELS) {
        atomicAdd(&counts[LEVELS + 1u + wait], 1u);
    } else {
        atomicAdd(&counts[LEVELS], 1u);
    }
}

// Whether a ball that asks `bin` is accepted; counts its waiting time if it is sampled.
fn ask(bin: u32, age: u32, sampled: bool) -> bool {
    if (balls_now(bin) >= PLACES) {
        return false;
    }
    let place = join(bin);
    if (place >= PLACES) {
        leave_again(bin);
        return false;
    }
    if (sampled) {
        count_wait(age + place);
    }
    return true;
}

// The balls of one age, numbered `first` to `first + balls - 1` in the round; (asked, accepted) of this thread. A unit
// belongs to the same thread whatever the age, which keeps the work of the threads alike where there are many ages.
fn ask_all(draws: Draws, thread: u32, first: u32, balls: u32, age: u32, sampled: bool) -> vec2<u32> {
    var sum = vec2<u32>(0u);
    let end = first + balls;
    let first_unit = first / BALLS_PER_UNIT;
    for (
        var unit = first_unit + (thread + WG - first_unit % WG) % WG;
        unit * BALLS_PER_UNIT < end;
        unit += WG
    ) {
        var words = words_of(draws, DOMAIN_CHOICES, unit);
        for (var i = 0u; i < BALLS_PER_UNIT; i++) {
            let bin = next_index(&words, i, 0u);
            let ball = unit * BALLS_PER_UNIT + i;
            if (ball >= first && ball < end) {
                sum += vec2<u32>(1u, u32(ask(bin, age, sampled)));
            }
        }
    }
    return sum;
}

// The throw of a round in which `arrived` balls arrive; all threads of the replica.
fn throw_all(draws: Draws, thread: u32, arrived: u32, sampled: bool) {
    var first = 0u;
    let begin = workgroupUniformLoad(&oldest);
    pool = 0u;
    for (var k = 0u; k <= begin; k++) {
        let age = begin - k;
        var balls = arrived;
        if (age > 0u) {
            balls = elsewhere(age - 1u);
        }
        let own = ask_all(draws, thread, first, balls, age, sampled);
        let sum = vec2<u32>(subtotal(own.x), subtotal(own.y));
        if (speaks()) {
            atomicAdd(&asked[k & 1u], sum.x);
            atomicAdd(&accepted[k & 1u], sum.y);
        }
        first += balls;
        settle();
        if (thread == 0u) {
            let rejected = atomicExchange(&asked[k & 1u], 0u) - atomicExchange(&accepted[k & 1u], 0u);
            pool += rejected;
            let to = min(age, AGES - 1u);
            // Balls older than can be told are there before those that come to be as old.
            set_elsewhere(to, rejected + select(0u, elsewhere(to), k > 0u && to + 1u == AGES));
            if (age == 0u) {
                var last = min(begin + 1u, AGES);
                while (last > 0u && elsewhere(last - 1u) == 0u) {
                    last--;
                }
                oldest = last;
            }
        }
    }
    if (sampled) {
        for (var i = thread; i < SMALL; i += WG) {
            let count = atomicExchange(&small_waits[i], 0u);
            if (count > 0u) {
                atomicAdd(&counts[LEVELS + 1u + i], count);
            }
        }
    }
}
