"""Writes capped.json: exact laws of few bins of CAPPED(c, lambda), by the whole Markov chain, apart from the program.

A state is the loads in descending order and the size of the pool; balls ask one after the other, since ages change
neither. Each case: n, c, lambda, the number of arrivals lambda n (fixed), and for some rounds from empty bins, and for
so many that nothing changes any more, P(pool = k) and P(max load = k), k = 0, 1, .. , after the deletions.
"""

import json
from collections import defaultdict

NEGLIGIBLE = 1e-18


def throw(law, n, c):
    """One ball asks a bin: (loads, rejected) -> probability."""
    after = defaultdict(float)
    for (loads, rejected), p in law.items():
        for bin_ in range(n):
            if loads[bin_] < c:
                more = tuple(sorted(loads[:bin_] + (loads[bin_] + 1,) + loads[bin_ + 1 :], reverse=True))
                after[more, rejected] += p / n
            else:
                after[loads, rejected + 1] += p / n
    return after


def kernel(loads, competing, n, c, known={}):
    """The states before the deletions after so many balls have asked, as a list of (loads, rejected, probability)."""
    key = loads, competing, c
    if key not in known:
        if competing == 0:
            known[key] = [(loads, 0, 1.0)]
        else:
            before = {(l, r): p for l, r, p in kernel(loads, competing - 1, n, c)}
            known[key] = [(l, r, p) for (l, r), p in throw(before, n, c).items()]
    return known[key]


def step(law, n, c, balls):
    after = defaultdict(float)
    for (loads, pool), p in law.items():
        if p < NEGLIGIBLE:
            continue
        for full, rejected, q in kernel(loads, pool + balls, n, c):
            after[tuple(max(load - 1, 0) for load in full), rejected] += p * q
    return after


def describe(law, c):
    pool = [0.0] * (1 + max(pool for (_, pool), p in law.items() if p > 1e-14))
    top = [0.0] * c
    for (loads, k), p in law.items():
        if k < len(pool):
            pool[k] += p
        top[loads[0]] += p
    return {"pool": pool, "max_load": top}


def case(n, c, lam, rounds):
    balls = round(lam * n)
    assert balls == lam * n
    law, t, laws = {((0,) * n, 0): 1.0}, 0, {}
    for goal in rounds:
        while t < goal:
            law, t = step(law, n, c, balls), t + 1
        laws[str(goal)] = describe(law, c)
    while True:
        before = describe(law, c)
        for _ in range(8):
            law, t = step(law, n, c, balls), t + 1
        now = describe(law, c)
        pairs = zip(before["pool"] + before["max_load"], now["pool"] + now["max_load"])
        if len(before["pool"]) == len(now["pool"]) and all(abs(a - b) < 1e-14 for a, b in pairs):
            break
    assert abs(sum(now["pool"]) - 1) < 1e-12
    return {"n": n, "c": c, "lambda": lam, "at_round": laws, "stationary": now, "rounds_iterated": t}


def main():
    cases = [(2, 1, 0.5), (2, 2, 0.5), (4, 1, 0.5), (4, 1, 0.75), (4, 2, 0.75), (4, 3, 0.75), (8, 1, 0.75), (8, 2, 0.875)]
    with open("capped.json", "w") as out:
        json.dump({"small_chain": [case(*one, (1, 2, 5, 20)) for one in cases]}, out)
        print(file=out)


if __name__ == "__main__":
    main()
