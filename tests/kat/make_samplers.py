"""Reference values for the samplers, from mpmath and exact fractions: prints samplers.json.

python3 tests/kat/make_samplers.py > tests/kat/samplers.json
"""

import json

from mpmath import erfc, exp, log, loggamma, mp, mpf, npdf, nsum, pi, sqrt

mp.dps = 60


def text(x):
    return mp.nstr(x, 20)


def stirling_error(x):
    x = mpf(x)
    return loggamma(x + 1) - (x + mpf(1) / 2) * log(x) + x - log(2 * pi) / 2


def deviance(x, mean):
    x, mean = mpf(x), mpf(mean)
    return x * log(x / mean) + mean - x


def log_pmf(n, odds, k):
    # `odds` is the exact value of an f64.
    odds = mpf(odds)
    return loggamma(mpf(n) + 1) - loggamma(mpf(k) + 1) - loggamma(mpf(n) - k + 1) + k * log(odds) - n * log(1 + odds)


def binomial_tail(n, odds, k):
    """P(K > k), summed from the pmf."""
    total, term = mpf(0), exp(log_pmf(n, odds, k + 1))
    j = k + 1
    while j <= n and (term > total * mpf(10) ** -40 or j < n * mpf(odds) / (1 + mpf(odds))):
        total += term
        term *= mpf(n - j) / (j + 1) * mpf(odds)
        j += 1
    return total


def cells(n, odds):
    """Edges e_1 < e_2 < .. and P(K <= e_i): cells of a chi-square test, finer in the tails."""
    p = mpf(odds) / (1 + mpf(odds))
    mean, variance = n * p, n * p * (1 - p)
    z = [mpf(x) / 2 for x in range(-9, 10)]
    edges = sorted({int(mp.floor(mean + x * sqrt(variance))) for x in z})
    edges = [e for e in edges if 0 <= e < n]
    if variance < 10**7:
        low = max(0, int(mean - 14 * sqrt(variance)))
        value = exp(log_pmf(n, odds, low))
        sums, total = {}, mpf(0)
        for k in range(low, edges[-1] + 1):
            total += value
            if k in edges:
                sums[k] = total
            value *= mpf(n - k) / (k + 1) * mpf(odds)
        return edges, [sums[e] for e in edges]
    # Edgeworth's series with the correction for lattices: error of order variance^-1.5.
    skew = (1 - 2 * p) / sqrt(variance)
    kurt = (1 - 6 * p * (1 - p)) / variance

    def cdf(e):
        x = (e + mpf(1) / 2 - mean) / sqrt(variance)
        h2, h3, h5 = x**2 - 1, x**3 - 3 * x, x**5 - 10 * x**3 + 15 * x
        lattice = x / (24 * variance)
        return erfc(-x / sqrt(mpf(2))) / 2 - npdf(x) * (skew / 6 * h2 + kurt / 24 * h3 + skew**2 / 72 * h5 + lattice)

    return edges, [cdf(e) for e in edges]


BULK = [
    (1, 0.3), (2, 1.0), (7, 0.25), (30, 0.1), (1000, 0.009), (10**6, 1e-6), (10**15, 5e-15),
    (20, 1.0), (25, 0.9), (100, 0.12), (100, 19.0), (1000, 0.0102), (1000, 0.5), (10**6, 1.2e-5), (10**6, 0.3),
    (10**15, 1.1e-14), (10**15, 1e-9), (10**9, 0.7), (10**12, 19.0), (10**15, 0.02), (10**15, 19.0), (10**15, 1.0),
]

shapes = []
for n, odds in [(20, 1.0), (100, 0.12), (1000, 0.5), (10**6, 0.3), (10**9, 1e-7), (10**12, 0.05), (10**15, 0.7), (10**15, 2e-12)]:
    p = mpf(odds) / (1 + mpf(odds))
    deviation = sqrt(n * p * (1 - p))
    mode = int(mp.floor((n + 1) * p))
    for z in [-12, -6, -3, -1, -0.1, 0, 0.3, 1, 2, 5, 9, 15]:
        k = int(mp.floor(n * p + z * deviation))
        if 0 <= k <= n:
            shapes.append([n, odds, k, mode, text(log_pmf(n, odds, k) - log_pmf(n, odds, mode))])
    shapes.append([n, odds, 0, mode, text(log_pmf(n, odds, 0) - log_pmf(n, odds, mode))])

tails = []
for n, odds in [(2, 0.5), (5, 1.0), (9, 0.8), (40, 0.2), (1000, 0.0099), (10**6, 3e-6), (10**15, 9e-15), (10**15, 1e-25), (3, 1e-18)]:
    mean = n * odds / (1 + odds)
    for k in range(0, min(n, int(mean + 12 * mean**0.5 + 4))):
        tail = binomial_tail(n, odds, k)
        if tail > mpf(10) ** -30:
            tails.append([n, odds, k, text(tail)])

ladders = []
for mean in [1e-17, 1e-9, 0.01, 0.457, 0.95, 1.653, 7.5, 60.0, 900.0]:
    for k in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 70, 89, 850, 900, 950, 1000]:
        m = mpf(mean)
        above = nsum(lambda i: exp(-m + i * log(m) - loggamma(i + 1)), [k + 1, k + 400])
        if above > mpf(2) ** -60 and above < 1 - mpf(10) ** -250:
            ladders.append([mean, k, text(above / exp(-m + k * log(m) - loggamma(mpf(k) + 1)))])

print(
    json.dumps(
        {
            "stirling_error": [[x, text(stirling_error(x))] for x in [*range(1, 20), 100, 12345, 10**9, 10**15]],
            "deviance": [
                [x, mean, text(deviance(x, mean))]
                for x, mean in [
                    (1, 1.5), (3, 40.25), (40, 3.25), (100, 99.5), (1000, 1210.0), (1000, 1230.0), (10**6, 1000123.5),
                    (10**9, 1000000001.0), (10**15, 1000000031622776.0), (10**15, 999999999999999.0),
                ]
            ],
            "binomial_bulk": [
                {"n": n, "odds": odds, "edges": cells(n, odds)[0], "at_most": [text(c) for c in cells(n, odds)[1]]}
                for n, odds in BULK
            ],
            "binomial_log_ratio": shapes,
            "binomial_tail": tails,
            "poisson_odds": ladders,
        },
        indent=0,
    )
)
