"""Derive the coefficient tables of flambeau/loop/math_*.cpp.

Polynomials are minimax in relative error (Remez exchange over a dense grid, mpmath), with the coefficients
rounded to the target format one after another, lowest degree first, and the rest fitted again after each.
Rationals are fitted by the same exchange on the linearised problem.  Needs mpmath.

    python tools/fit_polynomials.py            # every table
    python tools/fit_polynomials.py exp log    # some
"""
import struct
import sys

from mpmath import mp, mpf

import mpmath

mp.prec = 260


def single(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def double(x):
    return mpf(float(x))


def grid(lo, hi, count=400):
    lo, hi = mpf(lo), mpf(hi)
    return [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / count) for i in range(count + 1)]


def alternating(errors, count):
    """Indices of `count` extrema of alternating sign with the largest errors."""
    picks = []
    for i, e in enumerate(errors):
        if picks and (errors[picks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[picks[-1]]):
                picks[-1] = i
        else:
            picks.append(i)
    while len(picks) > count:
        if len(picks) == count + 1:
            picks.pop(0 if abs(errors[picks[0]]) < abs(errors[picks[-1]]) else -1)
            continue
        worst = min(range(len(picks) - 1), key=lambda k: max(abs(errors[picks[k]]), abs(errors[picks[k + 1]])))
        del picks[worst:worst + 2]
    return picks


def remez(target, weight, powers, xs):
    """Coefficients c minimising max |(sum c_j x^powers_j - target) * weight| over xs; and that maximum."""
    n = len(powers)
    picks = [round(i * (len(xs) - 1) / n) for i in range(n + 1)]
    basis = [[x**p for p in powers] for x in xs]
    c, best = None, None
    for _ in range(30):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for row, i in enumerate(picks):
            for j in range(n):
                a[row, j] = basis[i][j]
            a[row, n] = (-1)**row / weight[i]
            b[row] = target[i]
        solution = mp.lu_solve(a, b)
        c = [solution[j] for j in range(n)]
        errors = [(mpmath.fdot(c, basis[i]) - target[i]) * weight[i] for i in range(len(xs))]
        peak = max(abs(e) for e in errors)
        if best is None or peak < best[1]:
            best = (c, peak)
        if peak < abs(solution[n]) * mpf("1.0001"):
            break
        picks = alternating(errors, n + 1)
        if len(picks) < n + 1:
            break
    return best


def polynomial(f, lo, hi, powers, weight=None, rounding=single, fixed=()):
    """f on [lo, hi] over the given powers of x, relative to weight (default f itself); fixed: first
    coefficients given."""
    xs = [x for x in grid(lo, hi) if abs(x) > (mpf(hi) - lo) * mpf("1e-4")]
    values = [f(x) for x in xs]
    weights = [1 / abs(weight(x) if weight else v) for x, v in zip(xs, values)]
    done = [mpf(v) for v in fixed]
    while len(done) < len(powers):
        rest = [v - sum(c * x**p for c, p in zip(done, powers)) for x, v in zip(xs, values)]
        c, _ = remez(rest, weights, powers[len(done):], xs)
        done.append(rounding(c[0]))
    error = max(abs(sum(c * x**p for c, p in zip(done, powers)) - v) * w for x, v, w in zip(xs, values, weights))
    return done, error


def solve_rational(values, xs, fixed, unknown, weights, rounds):
    """Coefficients (keys "p0", "q1", ...) minimising the largest relative error of p/q, some of them fixed, by
    least squares reweighted with q and with the errors (Lawson)."""
    def column(key, x, v):
        return x**int(key[1:]) if key[0] == "p" else -v * x**int(key[1:])
    columns = {k: [column(k, x, v) for x, v in zip(xs, values)] for k in [*fixed, *unknown]}
    rests = [-sum(c * columns[k][i] for k, c in fixed.items()) for i in range(len(xs))]
    q_at, best = None, None
    for step in range(rounds):
        n = len(unknown)
        ata, atb = mp.zeros(n), mp.zeros(n, 1)
        scale = [w / (v * (q_at[i] if q_at else 1))**2 for i, (w, v) in enumerate(zip(weights, values))]
        for i, ki in enumerate(unknown):
            scaled = [s * c for s, c in zip(scale, columns[ki])]
            for j in range(i, n):
                ata[i, j] = ata[j, i] = mpmath.fdot(scaled, columns[unknown[j]])
            atb[i] = mpmath.fdot(scaled, rests)
        solution = mp.lu_solve(ata, atb) if n else []
        c = {**fixed, **{k: solution[i] for i, k in enumerate(unknown)}}
        def value(letter, x):
            return sum(v * x**int(k[1:]) for k, v in c.items() if k[0] == letter)
        q_at = [value("q", x) for x in xs]
        errors = [abs(value("p", x) / q / v - 1) for x, q, v in zip(xs, q_at, values)]
        peak = max(errors)
        if best is None or peak < best[1]:
            best = (c, peak)
        if step >= 3:
            weights = [w * (e / peak + mpf("1e-3")) for w, e in zip(weights, errors)]
            total = sum(weights) / len(weights)
            weights = [w / total for w in weights]
    return best[0], best[1], weights


def rational(f, lo, hi, p_degree, q_degree, rounding=single, fixed=None):
    """p(x) / q(x) for f on [lo, hi] in relative error, q(0) = 1 unless fixed says otherwise; the coefficients are rounded one after another,
    those with the largest share of the value first, and the others fitted again."""
    xs = grid(lo, hi, 120)
    values = [f(x) for x in xs]
    fixed = fixed or {"q0": mpf(1)}
    unknown = [k for k in [f"p{i}" for i in range(p_degree + 1)] + [f"q{i}" for i in range(1, q_degree + 1)]
               if k not in fixed]
    c, error, weights = solve_rational(values, xs, fixed, unknown, [mpf(1)] * len(xs), 50)
    exact_error = error
    def share(key):
        same = [k for k in c if k[0] == key[0]]
        return max(abs(c[key] * x**int(key[1:])) / sum(abs(c[k] * x**int(k[1:])) for k in same) for x in xs)
    for key in sorted(unknown, key=share, reverse=True):
        fixed[key] = rounding(c[key])
        unknown.remove(key)
        c, error, weights = solve_rational(values, xs, fixed, unknown, weights, 8 if unknown else 1)
    print(f"  (before rounding 2^{float(mp.log(exact_error, 2)):.2f})")
    return [c[f"p{i}"] for i in range(p_degree + 1)], [c[f"q{i}"] for i in range(q_degree + 1)], error


def show(name, coefficients, error, rounding=single):
    digits = 9 if rounding is single else 17
    print(f"{name}: error 2^{float(mp.log(error, 2)):.2f}")
    print("  {" + ", ".join(f"{float(c):.{digits}g}" for c in coefficients) + "}")


def series_quotient(f, order):
    """(f(x) - its Taylor terms below order) / x^order is taken where f itself would cancel."""
    return lambda x: f(x) / x**order


def fit_exp():
    half = mp.log(2) / 2 * mpf("1.001")
    show("exp: 1 + r + r^2 p(r)", *polynomial(lambda x: (mp.exp(x) - 1 - x) / x**2, -half, half, range(5),
                                             weight=lambda x: mp.exp(x) / x**2))
    show("exp2: 2^r = 1 + r p(r)", *polynomial(lambda x: (2**x - 1) / x, -0.5, 0.5, range(6),
                                              weight=lambda x: 2**x / x))
    show("expm1: r + r^2 p(r)", *polynomial(lambda x: (mp.expm1(x) - x) / x**2, -half, half, range(6),
                                           weight=lambda x: mp.expm1(x) / x**2))


def fit_log():
    for degree in (7, 8):
        show("log: f + f^2 p(f), [2/3, 4/3]", *polynomial(
            lambda x: (mp.log1p(x) - x) / x**2, mpf(-1) / 3, mpf(1) / 3, range(degree + 1),
            weight=lambda x: mp.log1p(x) / x**2))
    show("log1p: f + f^2 p(f), [3/4, 3/2]", *polynomial(
        lambda x: (mp.log1p(x) - x) / x**2, mpf(-1) / 4, mpf(1) / 2, range(9),
        weight=lambda x: mp.log1p(x) / x**2))


def fit_tanh():
    quarter = mp.log(2) / 4 * mpf("1.001")
    show("tanh: -expm1(-2r)/2 = r + r^2 p(r)", *polynomial(
        lambda x: (mp.expm1(-2 * x) / -2 - x) / x**2, -quarter, quarter, range(5),
        weight=lambda x: mp.expm1(-2 * x) / x**2))


def fit_erf():
    """log2(erfc(a)) / a; an error d of log(erfc(a)) changes erf(a) by d erfc(a)."""
    for degree in (7, 8):
        show(f"erf: log2(erfc(a)) / a, degree {degree}", *polynomial(
            lambda a: mp.log(mp.erfc(a), 2) / a, mpf("1e-3"), mpf("3.95"), range(degree + 1),
            weight=lambda a: mp.erf(a) / mp.erfc(a) / a / mp.log(2)))


def fit_erfc():
    def scaled(q):  # q = 1 - 4 / (a + 2); (a + 2) exp(a^2) erfc(a)
        a = 4 / (1 - q) - 2
        return (a + 2) * mp.exp(a * a) * mp.erfc(a)
    top = 1 - 4 / mpf("12.1")
    for degree in (8, 9, 10):
        show(f"erfc: (a + 2) e^(a^2) erfc(a) = p(1 - 4/(a + 2)), degree {degree}",
             *polynomial(scaled, -1, top, range(degree + 1)))


def fit_trig():
    quarter = mp.pi / 4 * mpf("1.0001")
    show("sin: r + r^3 p(r^2)", *polynomial(lambda y: (mp.sin(mp.sqrt(y)) / mp.sqrt(y) - 1) / y, mpf("1e-6"), quarter**2,
                                           range(3), weight=lambda y: mp.sin(mp.sqrt(y)) / mp.sqrt(y) / y))
    show("cos: 1 - r^2/2 + r^4 p(r^2)", *polynomial(
        lambda y: (mp.cos(mp.sqrt(y)) - 1 + y / 2) / y**2, mpf("1e-6"), quarter**2, range(3),
        weight=lambda y: mp.cos(mp.sqrt(y)) / y**2))


def fit_reduction():
    """2/pi less the bits that only add multiples of 4, as two parts of 29 bits and the rest."""
    for start in (0, 40, 72, 104):
        top = mpf(2)**(25 - start) if start else mpf(1)
        part = 2 / mp.pi - mp.floor(2 / mp.pi / top) * top
        parts = []
        for _ in range(2):
            top *= mpf(2)**-29
            parts.append(mp.floor(part / top) * top)
            part -= parts[-1]
        print(f"2/pi from 2^{start}:", ", ".join(float(v).hex() for v in [*parts, part]))


def fit_pow():
    show("log2((1+s)/(1-s)) = s p(s^2), |s| < 0.1716", *polynomial(
        lambda y: mp.log((1 + mp.sqrt(y)) / (1 - mp.sqrt(y)), 2) / mp.sqrt(y), mpf("1e-9"), (3 - 2 * mp.sqrt(2))**2,
        range(6), rounding=double), double)
    show("2^f = 1 + f p(f)", *polynomial(lambda x: (2**x - 1) / x, -0.5, 0.5, range(7), weight=lambda x: 2**x / x,
                                        rounding=double), double)


if __name__ == "__main__":
    names = sys.argv[1:] or [n[4:] for n in list(globals()) if n.startswith("fit_")]
    for name in names:
        globals()["fit_" + name]()
