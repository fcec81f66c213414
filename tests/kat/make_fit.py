"""Writes gamma.txt and fit.json from high-precision arithmetic (mpmath).

gamma.txt: the upper tail of the gamma law as 1 less the power series of the lower one, in so many digits that nothing is
lost; checked against mpmath's own incomplete gamma function. fit.json: weighted least squares from the normal equations
in exact fractions, and local exponents. Takes a few minutes.
"""

import json
import random
import struct
from fractions import Fraction

import mpmath as mp

# The smallest tail has 300 zeros.
mp.mp.dps = 360


def bits(value):
    return struct.pack(">d", value).hex()


def digits(value):
    return mp.nstr(value, 20)


def upper_tail(a, x):
    a, x = mp.mpf(a), mp.mpf(x)
    density = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
    total = term = mp.mpf(1)
    n = 0
    while term > total * mp.mpf(10) ** -355:
        n += 1
        term *= x / (a + n)
        total += term
    return 1 - density * total


def check_gamma():
    for a, x in [(0.5, 0.25), (0.5, 400), (3, 20), (30.5, 29), (100, 250)]:
        exact = mp.gammainc(a, x, mp.inf, regularized=True)
        assert abs(upper_tail(a, x) / exact - 1) < mp.mpf(10) ** -40, (a, x)


def write_gamma():
    with open("gamma.txt", "w", buffering=1) as out:
        out.write("# a, bits of x, P(X > x) of the gamma law with shape a: see make_fit.py\n")
        for a in (0.5, 1, 1.5, 2.5, 5, 10, 30.5, 100, 999.5, 1e4, 123456.5, 1e6, 1e8):
            points = [a + z * a**0.5 for z in (-7, -3, -1, -0.2, 0, 0.01, 0.3, 1, 2, 4, 8, 15, 25, 36)]
            # About the place where the formula changes, the far ends, and where the tail of small shapes is 1e-300.
            points += [a + 1 - 2**-20, a + 1, a / 1000, a * 1e-300, a + 40, a + 680]
            for x in sorted(x for x in points if x > 0):
                tail = upper_tail(a, x)
                if tail > mp.mpf(10) ** -300:
                    out.write(f"{a!r} {bits(x)} {digits(tail)}\n")


def exact_fit(points, places):
    """Everything from the uncentred normal equations, in fractions."""
    points = [[Fraction(number) for number in point] for point in points]
    s = sum(1 / e**2 for x, y, e in points)
    sx = sum(x / e**2 for x, y, e in points)
    sy = sum(y / e**2 for x, y, e in points)
    sxx = sum(x * x / e**2 for x, y, e in points)
    sxy = sum(x * y / e**2 for x, y, e in points)
    det = s * sxx - sx * sx
    a, b = (sxx * sy - sx * sxy) / det, (s * sxy - sx * sy) / det
    chi_square = sum(((y - a - b * x) / e) ** 2 for x, y, e in points)
    df = len(points) - 2

    def number(value):
        return float(value)

    def root(value):
        return float(mp.sqrt(mp.mpf(value.numerator) / value.denominator))

    p_value = None
    if df > 0:
        x = mp.mpf(chi_square.numerator) / chi_square.denominator
        p_value = float(upper_tail(mp.mpf(df) / 2, x / 2))
    at = []
    for x in places:
        x = Fraction(x)
        at.append([number(x), number(a + b * x), root((sxx - 2 * sx * x + s * x * x) / det)])
    return {
        "intercept": [number(a), root(sxx / det)],
        "slope": [number(b), root(s / det)],
        "covariance": number(-sx / det),
        "chi_square": number(chi_square),
        "p_value": p_value,
        "at": at,
    }


def exact_exponent(start, end):
    (x0, y0, e0), (x1, y1, e1) = ([mp.mpf(number) for number in point] for point in (start, end))
    run = mp.log(x1 / x0)
    return [float(mp.log(y1 / y0) / run), float(mp.sqrt((e0 / y0) ** 2 + (e1 / y1) ** 2) / abs(run))]


def write_fits():
    random.seed(1)

    def noisy(xs, line, errors):
        return [(float(x), random.gauss(line(x), e), e) for x, e in zip(xs, errors)]

    cases = {
        "two points": ([(1.0, 2.0, 0.1), (3.0, 1.0, 0.4)], [0.0, 2.0]),
        "three points at two places": ([(1.0, 2.0, 0.1), (1.0, 2.3, 0.2), (2.0, 5.0, 0.1)], [1.5]),
        "max load over log2 n": (
            noisy(range(10, 21), lambda x: 1.5 + 0.31 * x, [0.002 * 1.3**i for i in range(11)]), [15.0, 30.0]),
        "far from zero": (noisy([1e9 + i for i in range(12)], lambda x: 5 + 3 * (x - 1e9), [0.25] * 12), [1e9 + 5.5]),
        "near one": (noisy([1 - 2.0**-k for k in range(30, 40)], lambda x: 7 - 1e9 * (x - 1), [0.1] * 10), [1.0]),
        "errors of all sizes": (
            noisy(range(1, 14), lambda x: 100 - x, [10.0 ** ((7 * i) % 13 - 6) for i in range(13)]), [7.0]),
        "a wrong line": ([(float(x), float(x * x), 0.5) for x in range(8)], [3.5]),
        "tiny units": (noisy([i * 1e-150 for i in range(9)], lambda x: 1e-120 + 1e30 * x, [1e-121] * 9), [4e-150]),
        "huge units": (noisy([i * 1e150 for i in range(9)], lambda x: 1e120 + 1e-30 * x, [1e119] * 9), [4e150]),
        "many points": (noisy(range(400), lambda x: 2 + 0.01 * x, [0.3 + 0.001 * i for i in range(400)]), [200.0]),
    }
    lines = [{"name": name, "points": points, **exact_fit(points, places)} for name, (points, places) in cases.items()]
    pairs = [
        [(10.0, 2.0, 0.1), (1000.0, 7.0, 0.2)],
        [(1000.0, 7.0, 0.2), (10.0, 2.0, 0.1)],
        [(0.1, 3.0, 1e-3), (0.1 + 1e-9, 3.0 - 1e-6, 2e-3)],
        [(1e-9, 5e8, 1e5), (2e-9, 2.5e8, 1e4)],
        [(1e-300, 1e300, 1e299), (1e300, 1e-300, 1e-302)],
        [(1.0, 4.0, 0.25), (3.0, 4.0, 0.5)],
    ]
    exponents = [{"points": pair, "exponent": exact_exponent(*pair)} for pair in pairs]
    with open("fit.json", "w") as out:
        groups = [
            f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
            for name, rows in [("lines", lines), ("exponents", exponents)]
        ]
        out.write("{\n" + ",\n".join(groups) + "\n}\n")


if __name__ == "__main__":
    check_gamma()
    write_fits()
    write_gamma()
