"""Writes repeated.json and tetris.json: exact laws of small systems, by exact rational arithmetic on profiles, and for
Tetris the stationary law of one bin. No simulation.

A state is a sorted tuple of loads: bins are exchangeable. A round takes a ball from every non-empty bin and throws balls
into bins drawn uniformly, K of them for repeated balls-into-bins (K the non-empty bins), lambda n for Tetris.
"""

import json
from fractions import Fraction
from functools import lru_cache
from math import factorial


@lru_cache(maxsize=None)
def throws(n, balls):
    """Occupancies of n bins by so many balls, with their probabilities."""

    def fill(bins, left):
        if bins == 1:
            yield (left,)
            return
        for here in range(left + 1):
            for rest in fill(bins - 1, left - here):
                yield (here, *rest)

    out = []
    for occupancy in fill(n, balls):
        ways = factorial(balls)
        for joined in occupancy:
            ways //= factorial(joined)
        out.append((occupancy, Fraction(ways, n**balls)))
    return out


@lru_cache(maxsize=None)
def after(state, balls):
    """Law of the state after a round with so many balls, or as many as bins are not empty."""
    left = [max(load - 1, 0) for load in state]
    law = {}
    thrown = sum(load > 0 for load in state) if balls is None else balls
    for occupancy, p in throws(len(state), thrown):
        next_ = tuple(sorted(load + joined for load, joined in zip(left, occupancy)))
        law[next_] = law.get(next_, 0) + p
    return law


def step(law, balls=None):
    next_ = {}
    for state, p in law.items():
        for after_, q in after(state, balls).items():
            next_[after_] = next_.get(after_, 0) + p * q
    return next_


def max_law(law):
    top = max(state[-1] for state in law)
    return [float(sum(p for state, p in law.items() if state[-1] == k)) for k in range(top + 1)]


def empty_fraction(law):
    return float(sum(p * state.count(0) for state, p in law.items()) / len(next(iter(law))))


def partitions(balls, bins, most=None):
    most = balls if most is None else most
    if bins == 0:
        if balls == 0:
            yield ()
        return
    for first in range(min(balls, most) + 1):
        for rest in partitions(balls - first, bins - 1, first):
            yield (*rest, first)


def stationary(n, m):
    states = sorted(partitions(m, n))
    size = len(states)
    # p (T - 1) = 0 with the last equation replaced by: the sum is 1.
    rows = [[after(state, None).get(to, Fraction(0)) - (state == to) for state in states] for to in states]
    rows[-1] = [Fraction(1)] * size
    right = [Fraction(0)] * (size - 1) + [Fraction(1)]
    for i in range(size):
        pivot = next(r for r in range(i, size) if rows[r][i] != 0)
        rows[i], rows[pivot], right[i], right[pivot] = rows[pivot], rows[i], right[pivot], right[i]
        for r in range(size):
            if r != i and rows[r][i] != 0:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
                right[r] -= factor * right[i]
    return {state: right[i] / rows[i][i] for i, state in enumerate(states)}


def rounds(start, wanted, balls=None):
    law, out = {tuple(sorted(start)): Fraction(1)}, {}
    for t in range(1, max(wanted) + 1):
        law = step(law, balls)
        if t in wanted:
            out[str(t)] = {"max_load": max_law(law), "empty_fraction": empty_fraction(law)}
    return out


def one_bin(n, lam):
    """Stationary law of the load of a bin of Tetris after the throw, lambda n balls each round."""
    balls = round(lam * n)
    arrivals = [float(Fraction(factorial(balls), factorial(k) * factorial(balls - k)) * Fraction(1, n) ** k
                      * Fraction(n - 1, n) ** (balls - k)) for k in range(min(balls, 40) + 1)]
    law = [1.0]
    for _ in range(4000):
        left = [law[0] + (law[1] if len(law) > 1 else 0)] + law[2:]
        law = [0.0] * min(len(left) + len(arrivals) - 1, 300)
        for i, p in enumerate(left):
            for k, a in enumerate(arrivals):
                if i + k < len(law):
                    law[i + k] += p * a
    return [p for p in law if p > 1e-18]


def main():
    table = []
    for n, m in [(2, 2), (2, 3), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (3, 6), (4, 8)]:
        law = stationary(n, m)
        maxima = max_law(law)
        mean = sum(k * p for k, p in enumerate(maxima))
        case = {"n": n, "m": m, "mean_max": mean, "empty_fraction": empty_fraction(law), "max_load": maxima}
        table.append(case)
    ways = [
        {"n": 4, "start": "one-bin:6", "rounds": rounds((0, 0, 0, 6), {1, 2, 3, 8})},
        {"n": 5, "start": "each:1", "rounds": rounds((1,) * 5, {1, 2, 5})},
        {"n": 3, "start": "each:2", "rounds": rounds((2,) * 3, {1, 4, 20})},
    ]
    with open("repeated.json", "w") as out:
        json.dump({"stationary": table, "ways": ways}, out)
    ways = [
        {"n": 4, "lambda": 0.75, "start": "empty", "rounds": rounds((0,) * 4, {1, 2, 5}, 3)},
        {"n": 4, "lambda": 0.75, "start": "one-bin:5", "rounds": rounds((0, 0, 0, 5), {1, 3, 6}, 3)},
        {"n": 2, "lambda": 0.5, "start": "each:3", "rounds": rounds((3, 3), {1, 4, 10}, 1)},
    ]
    bins = []
    for n, lam in [(4, 0.75), (1000, 0.75), (10, 0.5)]:
        law = one_bin(n, lam)
        mean = sum(k * p for k, p in enumerate(law))
        assert abs(mean - (lam + (lam * lam - lam / n) / (2 * (1 - lam)))) < 1e-9, (n, lam, mean)
        bins.append({"n": n, "lambda": lam, "mean": mean, "load": law})
    with open("tetris.json", "w") as out:
        json.dump({"ways": ways, "stationary_load": bins}, out)


if __name__ == "__main__":
    main()
