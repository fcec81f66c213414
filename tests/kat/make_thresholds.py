"""Writes thresholds.txt: cumulative arrival probabilities in units of 2^-64, from 60-digit arithmetic (mpmath).

Each line: law, n, lambda (the bits of its f64, hexadecimal), value k, round(P(A <= k) 2^64).
"""

import struct

import mpmath as mp

mp.mp.dps = 60
TWO64 = mp.mpf(2) ** 64


def binomial(n, p, k):
    p = mp.mpf(p)
    return mp.exp(
        mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1) + k * mp.log(p) + (n - k) * mp.log1p(-p)
    )


def poisson(n, rate, k):
    mean = mp.mpf(rate) * n
    return mp.exp(k * mp.log(mean) - mean - mp.loggamma(k + 1))


def cumulative(pmf, mean, sd, last):
    """(k, P(A <= k)) over all k whose probability matters at 2^-64, summed from the left."""
    low = max(0, int(mean - 16 * sd - 60))
    high = min(last, int(mean + 16 * sd + 60))
    total = mp.mpf(0)
    rows = []
    for k in range(low, high + 1):
        total += pmf(k)
        rows.append((k, total))
    assert abs(total - 1) < mp.mpf(10) ** -40, total
    return rows


def main():
    cases = [("binomial", n, lam) for n, lam in [
        (3, 0.75), (64, 0.5), (1000, 0.99), (1024, 0.95), (4096, 1 - 2.0**-12), (100000, 0.9), (1000000, 0.95),
        (1000000, 1e-7), (30000000, 0.5)]]
    cases += [("poisson", n, lam) for n, lam in [(1, 0.5), (128, 0.75), (1024, 0.95), (1000000, 0.95)]]
    with open("thresholds.txt", "w") as out:
        out.write("# law, n, bits of lambda, k, round(P(A <= k) 2^64): 60-digit arithmetic, see make_thresholds.py\n")
        for law, n, lam in cases:
            variance = n * lam * (1 - lam) if law == "binomial" else n * lam
            pmf = (lambda k: binomial(n, lam, k)) if law == "binomial" else (lambda k: poisson(n, lam, k))
            rows = cumulative(pmf, n * lam, variance**0.5, n if law == "binomial" else 10**9)
            scaled = [(k, int(mp.nint(c * TWO64))) for k, c in rows]
            inside = [(k, t) for k, t in scaled if 0 < t < 2**64]
            step = max(1, len(inside) // 12)
            chosen = sorted(set(inside[:2] + inside[::step] + inside[-2:]))
            for k, t in chosen:
                out.write(f"{law} {n} {struct.pack('>d', lam).hex()} {k} {t}\n")


if __name__ == "__main__":
    main()
