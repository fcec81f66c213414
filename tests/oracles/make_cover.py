"""Writes cover.json: balls with identities in repeated balls-into-bins, apart from the Rust implementation.

`means`: exact mean numbers of rounds until all balls, and until the first ball, have been in every bin, of small systems
with one ball a bin or all in bin 0, by exact rational arithmetic on all queues and all sets of visited bins. A set only
grows, so the equations are solved set by set.

`ways`: single replicas with the stream of tests/kat/make_stream.py, in plain Python: the queues after some rounds, the
rounds until all balls and the first ball were everywhere, and the longest delay.
"""

import json
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "kat"))
from make_stream import CHOICES, Draws, indices, initial

QUEUE = 5


def start(n, loads):
    """Balls numbered bin by bin, the lowest first in each queue."""
    queues, next_ = [], 0
    for load in loads:
        queues.append(tuple(range(next_, next_ + load)))
        next_ += load
    return tuple(queues)


def given(queue, places):
    """All (ball, queue without it, probability) for a queue whose balls at these places are equally likely to go."""
    return [(queue[i], queue[:i] + queue[i + 1 :], Fraction(1, len(places))) for i in places]


def options(queue, discipline):
    if not queue:
        return [(None, queue, Fraction(1))]
    last = len(queue) - 1
    return given(queue, {"fifo": [0], "lifo": [last], "random": range(last + 1)}[discipline])


def after(state, discipline):
    """Law of the state after a round; a state is (queues, sets of visited bins)."""
    queues, visited = state
    n, law = len(queues), {}
    for taken in product(*(options(queue, discipline) for queue in queues)):
        balls = [ball for ball, _, _ in taken if ball is not None]
        p = Fraction(1, n ** len(balls))
        for _, _, q in taken:
            p *= q
        for targets in product(range(n), repeat=len(balls)):
            next_, seen = [rest for _, rest, _ in taken], list(visited)
            for ball, bin_ in zip(balls, targets):
                next_[bin_] += (ball,)
                seen[ball] |= 1 << bin_
            if discipline == "random":
                # The order in a queue does not matter.
                next_ = [tuple(sorted(queue)) for queue in next_]
            to = (tuple(next_), tuple(seen))
            law[to] = law.get(to, 0) + p
    return law


def solve(states, laws, known):
    """Mean rounds of states with the same sets: x = 1 + sum of p x over them and over what is known."""
    place = {state: i for i, state in enumerate(states)}
    rows = []
    for state in states:
        row = [Fraction(0)] * len(states) + [Fraction(1)]
        row[place[state]] += 1
        for to, p in laws[state].items():
            if to in place:
                row[place[to]] -= p
            else:
                row[-1] += p * known[to]
        rows.append(row)
    for i in range(len(rows)):
        pivot = next(r for r in range(i, len(rows)) if rows[r][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(len(rows)):
            if r != i and rows[r][i]:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i])]
    return {state: row[-1] for state, row in zip(states, rows)}


def means(n, loads, discipline):
    """Mean rounds to (all balls, the first ball) everywhere."""
    queues = start(n, loads)
    visited = tuple(1 << bin_ for bin_, queue in enumerate(queues) for _ in queue)
    begin, everywhere = (queues, visited), 2**n - 1
    laws, left = {}, [begin]
    while left:
        state = left.pop()
        if state not in laws:
            laws[state] = after(state, discipline)
            left.extend(laws[state])
    by_sets = {}
    for state in laws:
        by_sets.setdefault(state[1], []).append(state)
    out = []
    for done in (all, any):
        known = {}
        for sets in sorted(by_sets, key=lambda sets: -sum(map(int.bit_count, sets))):
            if done(seen == everywhere for seen in sets):
                known.update((state, Fraction(0)) for state in by_sets[sets])
            else:
                known.update(solve(by_sets[sets], laws, known))
        out.append(float(known[begin]))
    return out


def below(draws, item, bound):
    attempt = 0
    while True:
        for w in draws.block(QUEUE, attempt, item):
            if w * bound % 2**32 >= 2**32 % bound:
                return w * bound >> 32
        attempt += 1


def way(n, begin, discipline, seed, replica, rounds):
    """The queues after so many rounds, and what is known of the way until all balls were everywhere."""
    loads = initial(begin, n, 0, seed, replica)
    queues = [list(queue) for queue in start(n, loads)]
    m = sum(loads)
    place = [bin_ for bin_, load in enumerate(loads) for _ in range(load)]
    visited, came, moves, longest = [{bin_} for bin_ in place], [0] * m, 0, 0
    round_, first, cover, kept = 0, None, None, None
    while cover is None or round_ < rounds:
        draws, balls = Draws(seed, replica, round_), []
        for bin_, queue in enumerate(queues):
            if not queue:
                continue
            if discipline == "fifo":
                balls.append(queue.pop(0))
            elif discipline == "lifo" or len(queue) == 1:
                balls.append(queue.pop())
            else:
                i = below(draws, bin_, len(queue))
                balls.append(queue[i])
                queue[i] = queue[-1]
                queue.pop()
        for i, ball in enumerate(balls):
            (bin_,) = indices(draws, CHOICES, n, 1, i)
            queues[bin_].append(ball)
            visited[ball].add(bin_)
            if cover is None:
                longest = max(longest, round_ - came[ball])
            came[ball] = round_ + 1
        round_ += 1
        if round_ == rounds:
            kept = [list(queue) for queue in queues]
        full = [len(seen) == n for seen in visited]
        if first is None and any(full):
            first = round_
        if cover is None:
            moves += len(balls)
            if all(full):
                cover = round_
                longest = max([longest] + [round_ - since for since in came])
    return {
        "n": n,
        "start": begin,
        "queue": discipline,
        "seed": seed,
        "replica": replica,
        "rounds": rounds,
        "queues": kept,
        "cover": cover,
        "first": first,
        "max_delay": longest,
        "moves": moves,
    }


def main():
    disciplines = ["fifo", "lifo", "random"]
    systems = [
        (2, "one-bin:1", [1, 0]),
        (2, "each:1", [1, 1]),
        (2, "one-bin:3", [3, 0]),
        (3, "one-bin:2", [2, 0, 0]),
        (3, "each:1", [1, 1, 1]),
    ]
    exact = []
    for n, begin, loads in systems:
        for discipline in disciplines:
            cover, first = means(n, loads, discipline)
            exact.append({"n": n, "start": begin, "queue": discipline, "cover": cover, "first": first})
    ways = []
    for n, begin, seed, replica, rounds in [
        (7, "each:2", 3, 0, 12),
        (5, "one-bin:11", 2**63 + 5, 4, 9),
        (70, "random:100", 8, 2**32 - 1, 300),
    ]:
        ways += [way(n, begin, discipline, seed, replica, rounds) for discipline in disciplines]
    parts = [",\n  ".join(json.dumps(value) for value in values) for values in (exact, ways)]
    text = '{"means": [\n  %s\n ],\n "ways": [\n  %s\n ]}\n' % tuple(parts)
    (Path(__file__).parent / "cover.json").write_text(text)


if __name__ == "__main__":
    main()
