#!/usr/bin/env python3
"""Writes run.json, sweep.json and recover.json: documents of the shape that the commands write, of plausible numbers
from simple formulas. They test pictures, no statistics."""

import json
import math
import random

random.seed(1)


def rounded(x):
    return float(f"{x:.6g}")


def run():
    n, lam = 1024, 0.95
    # Doubly exponential tail, as d = 2 has it; 25,600 rounds with 256 replicas as the evidence.
    max_exceedance = {k: 1 - math.exp(-math.exp(-1.75 * (k - 6.1))) if k > 3 else 1.0 for k in range(0, 22)}
    total = 25600
    at_least = [total if k <= 4 else round(total * max_exceedance[k] * random.uniform(0.97, 1.03)) for k in range(0, 13)]
    at_least[4] = total
    histogram = {str(k): at_least[k] - at_least[k + 1] for k in range(4, 12) if at_least[k] > at_least[k + 1]}
    seen = sum(histogram.values())
    exceedance = []
    left = seen
    for k in range(4, 13):
        p = left / seen
        error = 2.6 * math.sqrt(max(p * (1 - p), 1e-5) / (seen / 8))
        exceedance.append(
            {
                "k": k,
                "p": p,
                "low": rounded(max(0.0, p - error)),
                "high": rounded(min(1.0, p + error)),
                "method": "replica-t" if p > 1e-3 else "clopper-pearson",
            }
        )
        left -= histogram.get(str(k), 0)
    levels = [
        {"k": k, "load_exceedance": rounded(min(1.0, 0.74 ** k * math.exp(-0.02 * k**2.6))), "max_exceedance": rounded(p)}
        for k, p in max_exceedance.items()
    ]
    return {
        "schema": 1,
        "kind": "run",
        "version": "0.1.0",
        "stream_version": 1,
        "process": "leaky",
        "parameters": {"n": n, "lambda": lam, "d": 2, "arrivals": "binomial", "start": "empty"},
        "seed": 1,
        "replicas": 256,
        "rounds": 2000,
        "burn_in": 1000,
        "every": 10,
        "loads_every": 1,
        "measure": "post",
        "confidence": 0.95,
        "band": "simultaneous",
        "observables": {
            "max_load": {
                "mean": 5.757148,
                "standard_error": 0.006,
                "low": 5.745,
                "high": 5.769,
                "histogram": histogram,
                "exceedance": exceedance,
            }
        },
        "theory": {
            "load": {"basis": "mean-field", "mean": 1.25},
            "max_load": {"basis": "independent-bins", "mean": 5.75, "quantiles": [[0.5, 6]]},
            "levels": levels,
        },
    }


def sweep():
    points, fits = [], []
    for d, n in [(1, 1024), (2, 1024), (2, 65536)]:
        for lam in [0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999]:
            gap = 1 - lam
            x = math.log(n / gap) / gap if d == 1 else math.log(1 / gap)
            mean_max = 1.1 + 0.46 * x if d == 1 else 1.2 + 1.44 * x + 0.35 * math.log2(math.log2(n))
            error = 0.05 * mean_max * random.uniform(0.5, 1.0) * (2 if lam > 0.99 else 0.5)
            mean = mean_max + random.gauss(0, error / 2)
            points.append(
                {
                    "n": n,
                    "lambda": lam,
                    "d": d,
                    "arrivals": "binomial",
                    "replicas": 64,
                    "rounds": 4000,
                    "burn_in": 2000,
                    "max_load": {
                        "mean": rounded(mean),
                        "standard_error": rounded(error / 2),
                        "low": rounded(mean - error),
                        "high": rounded(mean + error),
                        "quantiles": [[0.5, round(mean)]],
                    },
                    "load": {"mean": rounded(lam / gap), "low": rounded(lam / gap), "high": rounded(lam / gap)},
                    "exceedance": [],
                    "theory": {"mean_load": rounded(lam / gap), "mean_max": rounded(mean_max), "quantiles": []},
                }
            )
        fits.append(
            {
                "d": d,
                "n": n,
                "x": "ln(n/(1-lambda))/(1-lambda)" if d == 1 else "ln(1/(1-lambda))",
                "intercept": 1.5 if d == 1 else rounded(1.3 + 0.35 * math.log2(math.log2(n))),
                "intercept_error": 0.1,
                "slope": 0.45 if d == 1 else 1.41,
                "slope_error": 0.0123,
                "chi2": 7.0,
                "degrees_of_freedom": 7,
                "p_value": 0.43,
                "points": 9,
            }
        )
    return {"schema": 1, "kind": "sweep", "process": "leaky", "confidence": 0.95, "points": points, "fits": fits, "exponents": []}


def recover():
    n, start = 1024, 1000
    trajectory = []
    rounds = sorted({0, *(round(10 ** (i / 8)) for i in range(0, 34))})
    for r in rounds:
        mean_max = max(start - r * 0.97, 0) + 5.76 * (1 - math.exp(-r / 30))
        mean_max = max(mean_max, 0.05 + 5.76 * (1 - math.exp(-r / 30)))
        mean_total = n * 1.25 * (1 - math.exp(-r / 20)) + max(start - r, 0)
        spread = 0.4 + 0.01 * min(r, 400) + 0.1 * mean_max * (0 < r < 1200) * 0.3
        trajectory.append(
            {
                "round": r,
                "max_load": {
                    "mean": rounded(mean_max),
                    "low": rounded(mean_max - 0.1),
                    "high": rounded(mean_max + 0.1),
                    "quantiles": [
                        [0.05, round(max(1, mean_max - spread))],
                        [0.5, round(mean_max)],
                        [0.95, round(mean_max + 1.3 * spread)],
                    ],
                },
                "total_load": {
                    "mean": rounded(mean_total),
                    "low": rounded(mean_total - 3),
                    "high": rounded(mean_total + 3),
                    "quantiles": [[0.05, round(mean_total - 40)], [0.5, round(mean_total)], [0.95, round(mean_total + 40)]],
                },
                "theory": {"mean_max": rounded(1.02 * mean_max), "mean_total": rounded(1.01 * mean_total)},
            }
        )
    return {
        "schema": 1,
        "kind": "recover",
        "process": "leaky",
        "parameters": {"n": n, "lambda": 0.95, "d": 2, "arrivals": "binomial", "start": f"one-bin:{start}"},
        "replicas": 128,
        "trajectory": trajectory,
        "recovery": {"level": 9, "recovered": 128, "mean": 1025.3, "quantiles": [[0.05, 1001], [0.5, 1024], [0.95, 1052]]},
    }


for document in (run(), sweep(), recover()):
    with open(f"{document['kind']}.json", "w", encoding="ascii") as file:
        json.dump(document, file)
        file.write("\n")
