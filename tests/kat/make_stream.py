"""Writes PROCESS.jsonl for each process: an implementation of the streams apart from the Rust one, in plain Python
integers.

It follows the documentation of src/rng/mod.rs, src/rng/bounded.rs and src/process, with arrival thresholds from exact
rational arithmetic, and the stationary law of one bin for d = 1 with 60 digits. Each line is an object: the process and
its parameters, the seed, replica, first round and rounds, the balls that arrived and departed, and the FNV-1a digest of
the final loads.
"""

import json
from bisect import bisect_right
from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60

MASK = 0xFFFFFFFF
ARRIVALS, CHOICES, START = 1, 2, 3


def philox(counter, key):
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (q >> 32) ^ b ^ k0, q & MASK, (p >> 32) ^ d ^ k1, p & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return a, b, c, d


class Draws:
    def __init__(self, seed, replica, round_):
        self.key, self.replica, self.round = (seed & MASK, seed >> 32), replica, round_

    def block(self, domain, attempt, item):
        last = domain | attempt << 8 | (self.round >> 32) << 16
        return philox((item, self.round & MASK, self.replica, last), self.key)


def acceptable(n, m):
    return n**m <= 2**32 and 2**32 % n**m <= 2**24


def packing(n, d):
    """(indices a word, balls a word, words a ball)"""
    for balls in (4, 3, 2, 1):
        if acceptable(n, balls * d):
            return balls * d, balls, 1
    m = max([m for m in range(1, d) if acceptable(n, m)], default=1)
    words = -(-d // m)
    return m, 1, words if words <= 2 else -(-words // 4) * 4


def word(draws, domain, n, m, index):
    limit = 2**32 % n**m
    w = draws.block(domain, 0, index // 4)[index % 4]
    attempt = 1
    while (w * n**m) % 2**32 < limit:
        for w in draws.block(domain, attempt, index):
            if (w * n**m) % 2**32 >= limit:
                break
        attempt += 1
    return w


def indices(draws, domain, n, d, ball):
    m, balls, words = packing(n, d)
    out = []
    first = ball // balls * words
    for index in range(first, first + words):
        w = word(draws, domain, n, m, index)
        for _ in range(m):
            wide = w * n
            out.append(wide >> 32)
            w = wide & MASK
    skip = ball % balls * d
    return out[skip : skip + d]


def thresholds(law, n, lam):
    """(first value, cumulative thresholds in units of 2^-64)"""
    p = Fraction(lam)
    if law == "fixed":
        floor = int(p * n)
        rest = p * n - floor
        return floor, [] if rest == 0 else [round((1 - rest) * 2**64)]
    if law == "binomial":
        weights = [Fraction(1)]
        for k in range(n):
            weights.append(weights[-1] * (n - k) / (k + 1) * p / (1 - p))
    else:
        weights = [Fraction(1)]
        for k in range(int(4 * n * lam) + 80):
            weights.append(weights[-1] * p * n / (k + 1))
    total, cumulative, scaled = sum(weights), Fraction(0), []
    for w in weights:
        cumulative += w
        scaled.append(round(cumulative / total * 2**64))
    first = next(k for k, t in enumerate(scaled) if t > 0)
    return first, [t for t in scaled[first:] if t < 2**64]


def stationary(n, lam):
    """Cumulative thresholds of the stationary load of one bin, d = 1, binomial arrivals: 0, 1, .. up to 2^-64."""
    lam = Decimal(lam)
    q = lam / n
    arrivals = [(1 - q) ** n]
    for k in range(n):
        arrivals.append(arrivals[-1] * (n - k) / (k + 1) * q / (1 - q))
    beyond = [sum(arrivals[i + 1 :]) for i in range(n)]
    p = [(1 - lam) / arrivals[0]]
    while p[-1] > Decimal(2) ** -90:
        p.append(sum(beyond[i] * p[len(p) - i] for i in range(1, min(len(p) + 1, n))) / arrivals[0])
    exceedances = [1 - sum(p[:k]) for k in range(1, len(p))]
    scaled = [int((e * 2**64).to_integral_value(ROUND_HALF_UP)) for e in exceedances]
    return [2**64 - t for t in scaled if t > 0]


def initial(start, n, lam, seed, replica):
    kind, _, number = start.partition(":")
    if kind == "mean-field":
        cumulative = stationary(n, lam)
        uniforms = [Draws(seed, replica, 0).block(START, 0, b) for b in range(n)]
        return [bisect_right(cumulative, high << 32 | low) for low, high, _, _ in uniforms]
    loads = [int(number) if kind == "each" else 0] * n
    if kind == "one-bin":
        loads[0] = int(number)
    for ball in range(int(number) if kind == "random" else 0):
        (bin_,) = indices(Draws(seed, replica, 0), START, n, 1, ball)
        loads[bin_] += 1
    return loads


def new_balls(draws, law):
    least, table = law
    low, high, _, _ = draws.block(ARRIVALS, 0, 0)
    return least + bisect_right(table, high << 32 | low)


def leaky(draws, loads, law, d):
    balls, joined = new_balls(draws, law), [0] * len(loads)
    for ball in range(balls):
        joined[min(indices(draws, CHOICES, len(loads), d, ball), key=lambda b: loads[b])] += 1
    before = [load + more for load, more in zip(loads, joined)]
    return balls, [max(load - 1, 0) for load in before]


def tetris(draws, loads, law):
    balls, after = new_balls(draws, law), [max(load - 1, 0) for load in loads]
    for ball in range(balls):
        after[indices(draws, CHOICES, len(loads), 1, ball)[0]] += 1
    return balls, after


def repeated(draws, loads):
    return tetris(draws, loads, (sum(load > 0 for load in loads), []))


def digest(loads):
    value = 0xCBF29CE484222325
    for load in loads:
        value = (value ^ load) * 0x100000001B3 % 2**64
    return value


def write(name, cases):
    with open(name + ".jsonl", "w") as out:
        for parameters, seed, replica, first_round, rounds in cases:
            n, lam = parameters["n"], parameters.get("lambda")
            if name != "repeated":
                law = thresholds(parameters.get("arrivals", "fixed"), n, lam)
            loads, arrived, departed = initial(parameters["start"], n, lam, seed, replica), 0, 0
            for t in range(first_round, first_round + rounds):
                draws, before = Draws(seed, replica, t), sum(loads)
                if name == "leaky":
                    balls, loads = leaky(draws, loads, law, parameters["d"])
                elif name == "tetris":
                    balls, loads = tetris(draws, loads, law)
                else:
                    balls, loads = repeated(draws, loads)
                arrived, departed = arrived + balls, departed + before + balls - sum(loads)
            line = {"process": name, "parameters": parameters, "seed": seed, "replica": replica}
            line |= {"first_round": first_round, "rounds": rounds}
            line |= {"arrived": arrived, "departed": departed, "digest": digest(loads)}
            print(json.dumps(line), file=out)


def main():
    far = 2**40
    of_leaky = [
        (1024, 2, "fixed", 0.95, "random:2048", 11, 5, far, 6),
        (1000, 1, "fixed", 0.95, "random:1500", 2**63 + 12345, 4294967295, far, 6),
        (1000, 3, "fixed", 0.99, "empty", 3, 0, 0, 6),
        (16000, 2, "fixed", 0.9, "empty", 5, 1, 7, 2),
        (50000, 3, "fixed", 0.5, "random:10", 5, 2, 2**32 - 1, 2),
        (100, 2, "binomial", 0.95, "random:200", 11, 5, far, 8),
        (60, 1, "poisson", 0.9, "empty", 7, 0, 0, 20),
        (7, 3, "binomial", 0.75, "random:20", 0, 0, 0, 50),
        (3, 20, "poisson", 0.5, "empty", 1, 2, 3, 50),
        (1, 2, "poisson", 0.75, "random:5", 1, 2, 3, 50),
        (1000, 1, "binomial", 0.875, "mean-field", 9, 4, far, 3),
        (3, 1, "binomial", 0.96875, "mean-field", 9, 4294967295, 0, 20),
    ]
    names = ["n", "lambda", "d", "arrivals", "start"]
    write("leaky", [(dict(zip(names, (n, lam, d, law, start))), *rest) for n, d, law, lam, start, *rest in of_leaky])
    of_repeated = [
        (1024, "each:1", 11, 5, far, 6),
        (1000, "one-bin:1000", 2**63 + 12345, 4294967295, 0, 20),
        (7, "random:20", 0, 0, 0, 50),
        (1, "each:3", 1, 2, 3, 5),
        (50000, "each:2", 5, 2, 2**32 - 1, 2),
    ]
    write("repeated", [({"n": n, "start": start}, *rest) for n, start, *rest in of_repeated])
    of_tetris = [
        (1024, 0.75, "random:500", 11, 5, far, 6),
        (1000, 0.75, "one-bin:30", 2**63 + 12345, 4294967295, 0, 20),
        (7, 0.75, "empty", 0, 0, 0, 50),
        (3, 0.9, "each:2", 1, 2, 3, 50),
    ]
    write("tetris", [({"n": n, "lambda": lam, "start": start}, *rest) for n, lam, start, *rest in of_tetris])


if __name__ == "__main__":
    main()
