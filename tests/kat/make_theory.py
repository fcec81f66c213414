#!/usr/bin/env python3
"""Values of the stationary laws of the leaky bins in high precision, by other means than the program's.

One choice: the power series of P(z) = (1 - lambda)(1 - z)/(A(z) - z), divided out in 400 digits, and its largest pole.
Two and more choices: the mean-field fixed point from the level balance in 400 digits, checked by one application of the
round map, whose residual (from the end of the table) is required to be below 1e-150. lambda is the exact value of its
double.

Usage: make_theory.py OUT.json     (needs mpmath; a few minutes)
"""
import json, sys
from mpmath import mp, mpf, exp, log, findroot, binomial, factorial, nstr, floor

mp.dps = 400


def out(x):
    return nstr(x, 18) if x else "0"


def pgf(kind, n, lam):
    """Coefficients of A, enough of them, and A as a function."""
    terms = 260
    if kind == "poisson":
        return [exp(-lam) * lam**k / factorial(k) for k in range(terms)], lambda z: exp(lam * (z - 1))
    if kind == "binomial":
        p = lam / n
        a = [binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(min(n, terms) + 1)]
        return a, lambda z: (1 + p * (z - 1)) ** n
    whole = int(floor(lam * n))
    rest = lam * n - whole
    p, r = mpf(1) / n, rest / n
    a = [binomial(whole, k) * p**k * (1 - p) ** (whole - k) for k in range(min(whole, terms) + 1)]
    a = [(a[k] if k < len(a) else 0) * (1 - r) + (a[k - 1] * r if k > 0 else 0) for k in range(len(a) + 1)]
    return a, lambda z: (1 + p * (z - 1)) ** whole * (1 + r * (z - 1))


def one_choice(kind, n, lam, levels):
    a, A = pgf(kind, n, lam)
    coefficient = lambda k: (a[k] if k < len(a) else mpf(0)) - (1 if k == 1 else 0)
    p, top = [], max(k for k in levels if k < 3000)
    for k in range(top + 1):
        right = (1 - lam) * (1 if k == 0 else -1 if k == 1 else 0)
        p.append((right - sum(coefficient(k - j) * p[j] for j in range(max(0, k - len(a) - 1), k))) / coefficient(0))
    gap = 1 - lam
    f = lambda z: log(A(z)) - log(z)
    guess = 1 + 2 * gap
    while f(guess) <= 0:
        guess = 1 + (guess - 1) * 2
    low, high = 1 + (guess - 1) / 4, guess
    while f(low) > 0:
        low = 1 + (low - 1) / 2
    for _ in range(1400):
        mid = (low + high) / 2
        low, high = (mid, high) if f(mid) <= 0 else (low, mid)
    z0 = low
    h = mpf(10) ** -150
    slope = (A(z0 + h) - A(z0 - h)) / (2 * h)
    exceed, below = {}, mpf(0)
    for k in range(top + 1):
        exceed[k] = 1 - below
        below += p[k]
    tail = lambda k: exceed[k] if k in exceed else gap / (slope - 1) / z0**k
    return {"arrivals": kind, "n": n, "lambda": float(lam), "rate": out(log(z0)), "empty": out(p[0]),
            "p_load_ge": {str(k): out(tail(k)) for k in levels}}


def mean_field(lam, d, levels):
    q = lambda x, y: sum(x**i * y ** (d - 1 - i) for i in range(d))
    p, arrivals, x, size = [], [], mpf(1), max(levels) + 40
    while len(p) < size:
        k = len(p)
        flow = 1 - lam if k == 0 else sum(p[j] * arrivals[j][k - j] for j in range(k))
        f = lambda v: v - lam * q(x, x - flow * exp(v))
        low, high = mpf(0), lam * q(x, x)
        for _ in range(8):
            mid = (low + high) / 2
            low, high = (low, mid) if f(mid) > 0 else (mid, high)
        v = (low + high) / 2
        for _ in range(60):
            g = lam * q(x, x - flow * exp(v))
            e = mpf(10) ** -200
            s = 1 - lam * (q(x, x - flow * exp(v + e)) - q(x, x - flow * exp(v - e))) / (2 * e)
            step = (v - g) / s
            v -= step
            if abs(step) < mpf(10) ** -380:
                break
        value = flow * exp(v)
        mu = lam * q(x, x - value)
        pois = [exp(-mu)]
        for i in range(1, size + 60):
            pois.append(pois[-1] * mu / i)
        tails = [mpf(0)] * len(pois)
        for i in range(len(pois) - 2, -1, -1):
            tails[i] = tails[i + 1] + pois[i + 1]
        arrivals.append(tails)
        p.append(value)
        x -= value
    exceed = [sum(p[k:]) for k in range(size + 1)]
    new = [mpf(0)] * size
    for j in range(size):
        mu = lam * q(exceed[j], exceed[j + 1])
        w = p[j] * exp(-mu)
        for a in range(size - j):
            new[max(j + a - 1, 0)] += w
            w *= mu / (a + 1)
    residual = sum(abs(a - b) for a, b in zip(new[: size - 30], p))
    assert residual < mpf(10) ** -150, nstr(residual, 5)
    return {"lambda": float(lam), "d": d, "mean": out(sum(k * v for k, v in enumerate(p))), "empty": out(p[0]),
            "p_load_ge": {str(k): out(exceed[k]) for k in levels}}


def main(path):
    few = [1, 2, 5, 10, 20, 50, 100]
    one = [
        ("poisson", 0, 0.5, few + [200, 500]), ("poisson", 0, 0.05, few), ("poisson", 0, 1e-6, [1, 2, 5, 20, 40]),
        ("poisson", 0, 0.99, few + [1000, 10**4]), ("poisson", 0, 1 - 1e-9, few + [10**6, 10**9, 10**12 // 10]),
        ("binomial", 2, 0.5, few), ("binomial", 3, 0.999, few + [1000]), ("binomial", 16, 0.75, few + [500]),
        ("binomial", 1024, 1 - 1e-6, few + [10**6, 10**8]), ("fixed", 1024, 0.95, few + [1000]),
        ("fixed", 3, 0.8, few), ("fixed", 100, 1 - 1e-9, few + [10**9]),
    ]
    some = [1, 2, 3, 5, 8, 12, 20, 40]
    field = [(0.5, 2, some + [150]), (0.01, 2, some + [100]),
             (0.9, 2, some + [150]), (0.99, 4, some + [150]), (0.999, 2, some + [150]),
             (1 - 1e-9, 2, some + [150]), (1 - 1e-9, 3, some + [150]), (0.95, 16, some + [150]),
             (1 - 1e-6, 16, some + [150])]
    result = {"one_choice": [one_choice(kind, n, mpf(lam), levels) for kind, n, lam, levels in one],
              "mean_field": [mean_field(mpf(lam), d, levels) for lam, d, levels in field]}
    with open(path, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
