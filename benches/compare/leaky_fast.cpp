// Batched leaky bins with two choices on one core: what a tuned C++ program for this one process looks like.
//
// Loads are bytes, random words come in vectors into a buffer that stays in the first-level cache, and the choice has
// no branch. Unlike leakybins it is not exact (a bin is word * n / 2^32 without rejection), does not notice a load
// above 255, and its result depends on the order of the draws.
//
//   c++ -O3 -march=native -std=c++17 leaky_fast.cpp -o leaky_fast
//   ./leaky_fast GENERATOR n lambda rounds warmup replicas seed
//
// GENERATOR  xo8     eight xoshiro256++ (Blackman & Vigna) side by side, a word for each choice
//            ph8     Philox4x32-10 (Salmon et al., SC'11), eight blocks side by side
//            ph16    the same in AVX-512 intrinsics, sixteen blocks twice (where compiled for it)
//            ..-w16  the same with one word for both choices; n must be a power of two, at most 65536
//
// Prints: balls, seconds, millions of balls a second, mean maximum load after a round.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

typedef uint64_t Vector __attribute__((vector_size(64)));

static uint64_t splitmix(uint64_t &state) {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Every generator fills a multiple of 128 words.

struct Xoshiro8 {
    Vector s0, s1, s2, s3;

    explicit Xoshiro8(uint64_t seed) {
        for (int i = 0; i < 8; i++) {
            s0[i] = splitmix(seed);
            s1[i] = splitmix(seed);
            s2[i] = splitmix(seed);
            s3[i] = splitmix(seed);
        }
    }

    void fill(uint32_t *words, int count) {
        Vector a = s0, b = s1, c = s2, d = s3;
        for (int i = 0; i < count; i += 16) {
            Vector sum = a + d;
            Vector result = ((sum << 23) | (sum >> 41)) + a;
            Vector shifted = b << 17;
            c ^= a;
            d ^= b;
            b ^= c;
            a ^= d;
            c ^= shifted;
            d = (d << 45) | (d >> 19);
            memcpy(words + i, &result, 64);
        }
        s0 = a, s1 = b, s2 = c, s3 = d;
    }
};

const uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u, W0 = 0x9E3779B9u, W1 = 0xBB67AE85u;

struct Philox8 {
    uint32_t key0, key1, stream;
    uint64_t counter = 0;

    explicit Philox8(uint64_t seed) {
        key0 = (uint32_t)splitmix(seed);
        key1 = (uint32_t)splitmix(seed);
        stream = (uint32_t)splitmix(seed);
    }

    // Eight 64-bit lanes hold 32-bit words, so that a product is one instruction.
    void fill(uint32_t *words, int count) {
        const Vector low = (Vector){} + 0xFFFFFFFFull, lane = {0, 1, 2, 3, 4, 5, 6, 7};
        for (int i = 0; i < count; i += 32) {
            Vector a = (lane + counter) & low, b = (lane + counter) >> 32, c = (Vector){} + stream, d = (Vector){};
            uint32_t k0 = key0, k1 = key1;
            counter += 8;
#pragma GCC unroll 10
            for (int round = 0; round < 10; round++) {
                Vector p = a * ((Vector){} + M0), q = c * ((Vector){} + M1);
                a = (q >> 32) ^ b ^ (uint64_t)k0;
                c = (p >> 32) ^ d ^ (uint64_t)k1;
                b = q & low;
                d = p & low;
                k0 += W0;
                k1 += W1;
            }
            Vector first = a | (b << 32), second = c | (d << 32);
            memcpy(words + i, &first, 64);
            memcpy(words + i + 16, &second, 64);
        }
    }
};

#ifdef __AVX512F__
struct Philox16 {
    uint32_t key0, key1, stream;
    uint64_t counter = 0;

    explicit Philox16(uint64_t seed) {
        key0 = (uint32_t)splitmix(seed);
        key1 = (uint32_t)splitmix(seed);
        stream = (uint32_t)splitmix(seed);
    }

    static void multiply(__m512i x, __m512i m, __m512i &high, __m512i &low) {
        __m512i even = _mm512_mul_epu32(x, m), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
        low = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
        high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    }

    static void round(__m512i (&x)[4], __m512i k0, __m512i k1) {
        __m512i p_high, p_low, q_high, q_low;
        multiply(x[0], _mm512_set1_epi32((int)M0), p_high, p_low);
        multiply(x[2], _mm512_set1_epi32((int)M1), q_high, q_low);
        x[0] = _mm512_ternarylogic_epi32(q_high, x[1], k0, 0x96);
        x[2] = _mm512_ternarylogic_epi32(p_high, x[3], k1, 0x96);
        x[1] = q_low;
        x[3] = p_low;
    }

    void fill(uint32_t *words, int count) {
        const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for (int i = 0; i < count; i += 128) {
            __m512i x[4] = {_mm512_add_epi32(lane, _mm512_set1_epi32((int)counter)),
                            _mm512_set1_epi32((int)(counter >> 32)), _mm512_set1_epi32((int)stream),
                            _mm512_setzero_si512()};
            __m512i y[4] = {_mm512_add_epi32(x[0], _mm512_set1_epi32(16)), x[1], x[2], x[3]};
            uint32_t k0 = key0, k1 = key1;
            counter += 32;
#pragma GCC unroll 10
            for (int r = 0; r < 10; r++) {
                round(x, _mm512_set1_epi32((int)k0), _mm512_set1_epi32((int)k1));
                round(y, _mm512_set1_epi32((int)k0), _mm512_set1_epi32((int)k1));
                k0 += W0;
                k1 += W1;
            }
            for (int v = 0; v < 4; v++) {
                _mm512_storeu_si512(words + i + 16 * v, x[v]);
                _mm512_storeu_si512(words + i + 64 + 16 * v, y[v]);
            }
        }
    }
};
#endif

const int CHUNK = 1024; // balls whose words are drawn at once

template <class Generator, bool ONE_WORD>
void run(uint32_t n, double lambda, long rounds, long warmup, int replicas, uint64_t seed) {
    std::vector<uint8_t> before(n + 64), after(n + 64);
    std::vector<uint32_t> buffer(2 * CHUNK + 128);
    uint64_t balls = 0, samples = 0;
    double sum_of_max = 0;
    auto start = std::chrono::steady_clock::now();
    for (int replica = 0; replica < replicas; replica++) {
        Generator generator(seed + 1000003ull * replica);
        std::mt19937_64 arrivals_generator(seed * 77 + replica);
        std::binomial_distribution<int> arrivals((int)n, lambda);
        std::fill(before.begin(), before.end(), 0);
        for (long t = 0; t < warmup + rounds; t++) {
            int arrived = arrivals(arrivals_generator);
            balls += (uint64_t)arrived;
            memcpy(after.data(), before.data(), n);
            uint8_t *__restrict x = before.data();
            uint8_t *__restrict y = after.data();
            uint32_t *words = buffer.data();
            for (int done = 0; done < arrived; done += CHUNK) {
                int now = arrived - done < CHUNK ? arrived - done : CHUNK;
                int count = ((ONE_WORD ? now : 2 * now) + 127) / 128 * 128;
                generator.fill(words, count);
                if (!ONE_WORD) {
                    for (int i = 0; i < count; i++) words[i] = (uint32_t)(((uint64_t)words[i] * n) >> 32);
                }
                for (int i = 0; i < now; i++) {
                    uint32_t b, c;
                    if (ONE_WORD) {
                        b = ((words[i] & 0xFFFF) * n) >> 16;
                        c = ((words[i] >> 16) * n) >> 16;
                    } else {
                        b = words[2 * i];
                        c = words[2 * i + 1];
                    }
                    uint32_t less = (uint32_t)(((int)x[c] - (int)x[b]) >> 31);
                    y[b ^ ((b ^ c) & less)]++;
                }
            }
            uint8_t max = 0;
            for (uint32_t i = 0; i < n; i++) {
                uint8_t load = y[i];
                load -= load > 0;
                x[i] = load;
                max = load > max ? load : max;
            }
            if (t >= warmup) {
                sum_of_max += max;
                samples++;
            }
        }
    }
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printf("balls=%llu seconds=%.4f Mballs_per_s=%.2f mean_max=%.5f\n", (unsigned long long)balls, seconds,
           (double)balls / seconds / 1e6, sum_of_max / (double)samples);
}

int main(int count, char **arguments) {
    if (count != 8) {
        fprintf(stderr, "usage: leaky_fast GENERATOR n lambda rounds warmup replicas seed\n");
        return 2;
    }
    std::string generator = arguments[1];
    uint32_t n = (uint32_t)atoi(arguments[2]);
    double lambda = atof(arguments[3]);
    long rounds = atol(arguments[4]), warmup = atol(arguments[5]);
    int replicas = atoi(arguments[6]);
    uint64_t seed = (uint64_t)atoll(arguments[7]);
    auto is = [&](const char *name) { return generator == name; };
    if (is("xo8")) run<Xoshiro8, false>(n, lambda, rounds, warmup, replicas, seed);
    else if (is("xo8-w16")) run<Xoshiro8, true>(n, lambda, rounds, warmup, replicas, seed);
    else if (is("ph8")) run<Philox8, false>(n, lambda, rounds, warmup, replicas, seed);
    else if (is("ph8-w16")) run<Philox8, true>(n, lambda, rounds, warmup, replicas, seed);
#ifdef __AVX512F__
    else if (is("ph16")) run<Philox16, false>(n, lambda, rounds, warmup, replicas, seed);
    else if (is("ph16-w16")) run<Philox16, true>(n, lambda, rounds, warmup, replicas, seed);
#endif
    else {
        fprintf(stderr, "%s is not a generator of this build\n", arguments[1]);
        return 2;
    }
}
