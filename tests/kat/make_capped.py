"""Writes capped.jsonl: CAPPED(c, lambda) ball by ball, in plain Python, apart from the Rust implementation.

It follows the documentation of src/process/capped, with queues of single balls where that has numbers of balls; the
waiting time that is written down where a ball finds its place is held to the one that it has where it is deleted. Lines
are those of make_stream.py, the digest being that of the loads and of the pool by age, with two things more: the digest
of the numbers of waiting times 0, 1, .. up to the largest, and the balls in the pool at the end.
"""

import json
from bisect import bisect_right
from math import inf

from make_stream import ARRIVALS, CHOICES, START, Draws, digest, indices, thresholds

# Ages that the program tells apart; no case comes near.
AGES = 1024


def counts(values):
    return [values.count(value) for value in range(max(values, default=-1) + 1)]


def run(n, c, law, lam, start, seed, replica, first_round, rounds):
    least, table = thresholds(law, n, lam)
    # A ball: the round it arrived in, and once it has a place the round it is to be deleted in. Those that have a place at
    # the start have neither; those beyond the capacity wait.
    queues = [[] for _ in range(n)]
    waiting_balls = []
    form, balls = start.split(":")
    for ball in range(int(balls)):
        bin_ = 0 if form == "one-bin" else indices(Draws(seed, replica, 0), START, n, 1, ball)[0]
        if len(queues[bin_]) < c:
            queues[bin_].append([None, None])
        else:
            waiting_balls.append([first_round - 1, None])
    arrived = departed = 0
    waits = []
    for t in range(first_round, first_round + rounds):
        draws = Draws(seed, replica, t)
        low, high, _, _ = draws.block(ARRIVALS, 0, 0)
        new = least + bisect_right(table, high << 32 | low)
        arrived += new
        waiting_balls += [[t, None] for _ in range(new)]
        rejected = []
        # The pool is in the order of arrival: oldest first.
        for number, ball in enumerate(waiting_balls):
            (bin_,) = indices(draws, CHOICES, n, 1, number)
            if len(queues[bin_]) < c:
                ball[1] = t + len(queues[bin_])
                waits.append(ball[1] - ball[0])
                queues[bin_].append(ball)
            else:
                rejected.append(ball)
        waiting_balls = rejected
        for queue in queues:
            if queue:
                due = queue.pop(0)[1]
                assert due is None or due == t
                departed += 1
    # In the next round a ball of the last one has age 1, which is the first entry.
    ages = [first_round + rounds - 1 - ball[0] for ball in waiting_balls]
    pool_by_age = counts(ages)
    state = [*map(len, queues), *pool_by_age, *[0] * (AGES - len(pool_by_age))]
    return arrived, departed, digest(state), digest(counts(waits)), len(ages)


def main():
    far = 2**40
    cases = [
        (1024, 1, "fixed", 0.9375, "random:0", 11, 5, far, 8),
        (1000, 2, "fixed", 0.95, "random:4500", 2**63 + 12345, 4294967295, far, 8),
        (100, 3, "binomial", 0.96875, "random:1300", 3, 0, 0, 40),
        (60, 2, "poisson", 0.9, "one-bin:200", 7, 0, 7, 40),
        (3, 1, "fixed", 0.75, "one-bin:40", 1, 2, 3, 60),
        (1, 2, "fixed", 1.0, "one-bin:9", 1, 2, 3, 50),
        (50, inf, "binomial", 0.9, "random:300", 5, 2, 2**32 - 1, 20),
    ]
    names = ["arrived", "departed", "digest", "waiting_digest", "pool"]
    with open("capped.jsonl", "w") as out:
        for n, c, law, lam, start, seed, replica, first_round, rounds in cases:
            parameters = {"n": n, "c": "inf" if c == inf else c, "lambda": lam, "arrivals": law}
            parameters["start"] = start
            line = {"process": "capped", "parameters": parameters, "seed": seed, "replica": replica}
            line |= {"first_round": first_round, "rounds": rounds}
            line |= dict(zip(names, run(n, c, law, lam, start, seed, replica, first_round, rounds)))
            print(json.dumps(line), file=out)


if __name__ == "__main__":
    main()
