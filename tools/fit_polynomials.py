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


def polynomial(f, lo, hi, powers, weight=None, rounding=single):
    """f on [lo, hi] over the given powers of x, relative to weight (default f itself)."""
    xs = [x for x in grid(lo, hi) if abs(x) > (mpf(hi) - lo) * mpf("1e-4")]
    values = [f(x) for x in xs]
    weights = [1 / abs(weight(x) if weight else v) for x, v in zip(xs, values)]
    done = []
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


def fit_inverse_trig():
    def asin_tail(z):
        s = mp.sqrt(z)
        return (mp.asin(s) / s - 1) / z
    show("asin: s + s z p(z), z = s^2 in [0, 1/4]", *polynomial(
        asin_tail, mpf("1e-6"), mpf("0.2501"), range(5), weight=lambda z: mp.asin(mp.sqrt(z)) / mp.sqrt(z) / z))
    for degree in (6, 7, 8):
        show(f"atan: t + t z p(z), z = t^2 in [0, 1], degree {degree}", *polynomial(
            lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf("1e-6"), 1, range(degree + 1),
            weight=lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z) / z))


def fit_hyperbolic():
    square = (mp.log(2) / 2 * mpf("1.001"))**2
    show("sinh: r + r^3 p(r^2)", *polynomial(lambda y: (mp.sinh(mp.sqrt(y)) / mp.sqrt(y) - 1) / y, mpf("1e-6"), square,
                                            range(2), weight=lambda y: mp.sinh(mp.sqrt(y)) / mp.sqrt(y) / y))
    show("cosh: 1 + r^2 p(r^2)", *polynomial(lambda y: (mp.cosh(mp.sqrt(y)) - 1) / y, mpf("1e-6"), square,
                                            range(3), weight=lambda y: mp.cosh(mp.sqrt(y)) / y))


def fit_gamma():
    """All in float64."""
    show("log((1+s)/(1-s)) = 2s + s^3 p(s^2), |s| < 0.1716", *polynomial(
        lambda y: (mp.log((1 + mp.sqrt(y)) / (1 - mp.sqrt(y))) / mp.sqrt(y) - 2) / y, mpf("1e-6"),
        (3 - 2 * mp.sqrt(2))**2, range(7), rounding=double, weight=lambda y: 2 / y), double)
    def stirling(y):
        w = 1 / mp.sqrt(y)
        return (mp.loggamma(w) - (w - mpf(1) / 2) * mp.log(w) + w - mp.log(2 * mp.pi) / 2) * w
    show("lgamma(w) - Stirling's = v p(v^2), v = 1/w < 1/5 (absolute)", *polynomial(
        stirling, mpf("1e-6"), mpf(1) / 25, range(8), rounding=double, weight=lambda y: 1 / mp.sqrt(y)), double)
    def digamma_tail(y):
        w = 1 / mp.sqrt(y)
        return (mp.digamma(w) - mp.log(w) + 1 / (2 * w)) / y
    show("digamma(w) - log w + v/2 = v^2 p(v^2), v = 1/w < 1/8 (absolute)", *polynomial(
        digamma_tail, mpf("1e-6"), mpf(1) / 64, range(6), rounding=double, weight=lambda y: 1 / y), double)
    show("sin(pi r) = r p(r^2), |r| < 1/2", *polynomial(
        lambda y: mp.sin(mp.pi * mp.sqrt(y)) / mp.sqrt(y), mpf("1e-9"), mpf(1) / 4, range(9), rounding=double), double)
    show("cos(pi r) = (1/4 - r^2) p(r^2), |r| < 1/2", *polynomial(
        lambda y: mp.cos(mp.pi * mp.sqrt(y)) / (mpf(1) / 4 - y), mpf("1e-9"), mpf("0.2499"), range(8),
        rounding=double), double)


def erfinv_ratio(w):
    """erfinv(x) / x for x = sqrt(1 - e^-w)."""
    x = mp.sqrt(-mp.expm1(-w))
    complement = mp.exp(-w) / (1 + x)  # 1 - x without cancellation
    r = mp.erfinv(x) if w < 2 else mp.sqrt(w)
    if w >= 2:
        while True:  # Newton on log(erfc(r)) = log(1 - x)
            tail = mp.erfc(r)
            step = mp.log(tail / complement) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(r * r)
            r += step
            if abs(step) < mpf("1e-60"):
                break
    return r / x


def fit_erfinv():
    small, middle, large = mpf("6.25"), 16, mpf("36.8")
    show("erfinv f32: p(w - 2.5), w < 5", *polynomial(lambda t: erfinv_ratio(t + mpf("2.5")), mpf("-2.49999"), 2.5, range(11)))
    show("erfinv f32: p(sqrt(w) - 3), w < 17", *polynomial(
        lambda t: erfinv_ratio((t + 3)**2), mp.sqrt(5) - 3, mp.sqrt(17) - 3, range(10)))
    show("erfinv f64: p(w - 3.125), w < 6.25", *polynomial(
        lambda t: erfinv_ratio(t + small / 2), -small / 2 + mpf("1e-6"), small / 2, range(23), rounding=double), double)
    show("erfinv f64: p(sqrt(w) - 3.25), w < 16", *polynomial(
        lambda t: erfinv_ratio((t + mpf("3.25"))**2), mp.sqrt(small) - mpf("3.25"), mp.sqrt(middle) - mpf("3.25"),
        range(19), rounding=double), double)
    show("erfinv f64: p(sqrt(w) - 5), w < 36.8", *polynomial(
        lambda t: erfinv_ratio((t + 5)**2), mp.sqrt(middle) - 5, mp.sqrt(large) - 5, range(17), rounding=double), double)


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
