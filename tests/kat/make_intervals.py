"""Writes beta.txt, clopper_pearson.txt and quantiles.txt from 30-digit arithmetic (mpmath).

Floats are written as the bits of their f64, hexadecimal, where they are an argument, and with 20 digits where they
are an answer. Tails come from integrating the density of the log-odds, checked against mpmath's own incomplete beta
function where that is affordable. Takes a few minutes.
"""

import struct

import mpmath as mp

mp.mp.dps = 30


def bits(value):
    return struct.pack(">d", value).hex()


def digits(value):
    return mp.nstr(value, 20)


def legendre(points):
    """Nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    rule = []
    for i in range(1, points + 1):
        x = mp.cos(mp.pi * (i - mp.mpf("0.25")) / (points + mp.mpf("0.5")))
        for _ in range(8):
            p, before = x, mp.mpf(1)
            for k in range(2, points + 1):
                p, before = ((2 * k - 1) * x * p - (k - 1) * before) / k, p
            slope = points * (x * p - before) / (x * x - 1)
            x -= p / slope
        rule.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return rule


RULE = legendre(30)


class Beta:
    """Beta(a, b) through its log-odds v, with x = 1 / (1 + exp(-v))."""

    def __init__(self, a, b):
        self.a, self.b = mp.mpf(a), mp.mpf(b)
        with mp.extradps(20):
            self.ln_b = mp.loggamma(self.a) + mp.loggamma(self.b) - mp.loggamma(self.a + self.b)

    def density(self, v):
        with mp.extradps(20):
            return mp.exp(-(self.a + self.b) * mp.log1p(mp.exp(-v)) - self.b * v - self.ln_b)

    def tail(self, v, upper):
        """The tail above or below v: panels outward from v until nothing is left."""
        sign = 1 if upper else -1
        spread = min(mp.sqrt(1 / self.a + 1 / self.b), mp.mpf(1))
        total, at = mp.mpf(0), v
        while True:
            # Where the density falls steeply the panels are some e-foldings wide.
            slope = abs(self.a - (self.a + self.b) * odds_to_x(at))
            width = min(spread, 8 / (slope + mp.mpf("1e-9")))
            part = width * sum(weight * self.density(at + sign * width * node) for node, weight in RULE)
            total += part
            at += sign * width
            if sign * (at - mp.log(self.a / self.b)) > 0 and part < total * mp.mpf(10) ** -29:
                return total

    def quantile(self, probability, upper):
        """The log-odds at which the tail has the probability: Newton on ln(tail)."""
        z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(probability))
        sign = 1 if upper else -1
        v = mp.log(self.a / self.b) + sign * z * mp.sqrt(1 / self.a + 1 / self.b)
        for _ in range(60):
            tail = self.tail(v, upper)
            step = sign * (mp.log(tail) - mp.log(probability)) * tail / self.density(v)
            v += step
            if abs(step) < mp.mpf(10) ** -24 * (1 + abs(v)):
                return v
        raise ArithmeticError((self.a, self.b, probability, upper))


def odds_to_x(v):
    return 1 / (1 + mp.exp(-v))


def check():
    for a, b, x in [(0.5, 3, 0.25), (5, 96, 0.125), (40, 17.5, 0.75)]:
        v = mp.log(mp.mpf(x) / (1 - mp.mpf(x)))
        for upper in (False, True):
            exact = mp.betainc(a, b, x, 1, regularized=True) if upper else mp.betainc(a, b, 0, x, regularized=True)
            assert abs(Beta(a, b).tail(v, upper) / exact - 1) < mp.mpf(10) ** -24, (a, b, x, upper)


def write_beta():
    with open("beta.txt", "w", buffering=1) as out:
        out.write("# a, b, bits of x, P(X < x), P(X > x) of Beta(a, b): 30-digit arithmetic, see make_intervals.py\n")
        shapes = [(0.5, 0.5), (0.5, 5e8), (1, 1e15), (2, 3), (5, 1e8), (100, 1e12), (999, 1001), (1001, 1e6),
                  (2500.5, 1e9), (1e5, 1e5), (5e5, 1e15), (1e9, 1e12), (1e12, 3e12)]
        for a, b in shapes:
            law = Beta(a, b)
            spread = (1 / a + 1 / b) ** 0.5
            for z in (-5, -1.6, -0.9, 0, 0.01, 1, 3, 7):
                v = mp.log(mp.mpf(a) / b) + min(max(z * spread, -20), 20)
                x = float(odds_to_x(v))
                v = mp.log(mp.mpf(x) / (1 - mp.mpf(x)))
                lower, upper = law.tail(v, False), law.tail(v, True)
                assert abs(lower + upper - 1) < mp.mpf(10) ** -22, (a, b, x)
                if min(lower, upper) < 1e-80:
                    continue
                out.write(f"{a!r} {b!r} {bits(x)} {digits(lower)} {digits(upper)}\n")


def write_clopper_pearson():
    with open("clopper_pearson.txt", "w", buffering=1) as out:
        out.write("# hits, trials, bits of the confidence, low, high: see make_intervals.py\n")
        for confidence in (0.95, 1 - 1e-9):
            for trials in (1, 10, 1000, 10**6, 10**8, 10**12, 10**15):
                chosen = {0, 1, 5, 100, trials // 2, trials - 1, trials}
                for hits in sorted(k for k in chosen if 0 <= k <= trials):
                    low, high = mp.mpf(0), mp.mpf(1)
                    half = (1 - mp.mpf(confidence)) / 2
                    if hits == 0:
                        high = -mp.expm1(mp.log(half) / trials)
                    elif hits == trials:
                        low = mp.exp(mp.log(half) / trials)
                    if 0 < hits:
                        low = low or odds_to_x(Beta(hits, trials - hits + 1).quantile(half, False))
                    if hits < trials:
                        high = high if hits == 0 else odds_to_x(Beta(hits + 1, trials - hits).quantile(half, True))
                    out.write(f"{hits} {trials} {bits(confidence)} {digits(low)} {digits(high)}\n")


def write_quantiles():
    with open("quantiles.txt", "w", buffering=1) as out:
        out.write("# normal, bits of q, z with P(Z > z) = q; student, df, bits of q, t with P(T > t) = q\n")
        for q in (1e-300, 1e-100, 1e-15, 1e-6, 0.025, 0.0749, 0.076, 0.3, 0.499999, 0.75, 0.975, 1 - 1e-10):
            side = mp.mpf(q) if q < 0.5 else 1 - mp.mpf(q)
            with mp.workdps(60):
                z = mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.log(side), mp.sqrt(-2 * mp.log(side)))
            out.write(f"normal {bits(q)} {digits(z if q < 0.5 else -z)}\n")
        for df in (1, 2, 3, 7, 30, 999, 10**6, 10**9):
            for q in (1e-12, 1e-6, 0.005, 0.025, 0.4, 0.4999999, 0.95):
                side = mp.mpf(q) if q < 0.5 else 1 - mp.mpf(q)
                odds = mp.exp(Beta(mp.mpf("0.5"), mp.mpf(df) / 2).quantile(2 * side, True))
                t = mp.sqrt(df * odds)
                out.write(f"student {df} {bits(q)} {digits(t if q < 0.5 else -t)}\n")


if __name__ == "__main__":
    check()
    write_beta()
    write_quantiles()
    write_clopper_pearson()
