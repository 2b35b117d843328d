"""Whether values are as near to each other as their dtypes let expect."""
import cmath
import collections.abc
import sys

import flambeau
from flambeau import Tensor

# dtype: relative, absolute tolerance. Everything else is compared exactly.
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
               "float64": (1e-7, 1e-7), "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5),
               "complex128": (1e-7, 1e-7)}


def default_tolerances(*inputs):
    """The widest of the inputs' dtypes: (rtol, atol)."""
    pairs = [_TOLERANCES.get(str(getattr(x, "dtype", x)).split(".")[-1], (0.0, 0.0)) for x in inputs]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False,
                 check_device=True, check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and shapes,
    dtypes and devices are equal. Tensors, arrays, numbers, and lists and dicts of them. msg: the message, or
    a function of it.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or unspecified, but got no "
                         f"{'rtol' if rtol is None else 'atol'}")
    options = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, device=check_device, dtype=check_dtype,
                   stride=check_stride, subclasses=allow_subclasses)
    problem = _difference(actual, expected, "", options)
    if problem:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def _difference(actual, expected, where, o):
    """What differs as text, or None."""
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if not isinstance(expected, (str, Tensor)) and isinstance(expected, collections.abc.Sequence):
        if not isinstance(actual, collections.abc.Sequence):
            return f"The types of the inputs do not match: {type(actual)} and {type(expected)}.{at}"
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at}"
        pairs = [(f"{where}[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected))]
        return _first(pairs, o)
    if isinstance(expected, collections.abc.Mapping):
        if not isinstance(actual, collections.abc.Mapping) or actual.keys() != expected.keys():
            missing = sorted(expected.keys() - getattr(actual, "keys", set)(), key=repr)
            more = sorted(getattr(actual, "keys", set)() - expected.keys(), key=repr)
            return (f"The mappings have different keys.\nOnly in expected: {missing}\n"
                    f"Only in actual: {more}{at}")
        return _first([(f"{where}[{k!r}]", actual[k], expected[k]) for k in expected], o)
    if expected is None or actual is None:
        return None if actual is expected else f"None mismatch: {actual!r} is not {expected!r}{at}"
    if isinstance(expected, (int, float, complex)) and isinstance(actual, (int, float, complex)):
        text = _numbers(actual, expected, o)
    else:
        text = _tensors(_tensor(actual), _tensor(expected), o)
    return text + at if text else None


def _first(pairs, o):
    for where, actual, expected in pairs:
        if text := _difference(actual, expected, where, o):
            return text
    return None


def _tensor(x):
    if isinstance(x, Tensor):
        return x
    numpy = sys.modules.get("numpy")
    if (isinstance(x, (bool, int, float, complex)) or numpy is not None
            and isinstance(x, (numpy.ndarray, numpy.generic))):
        return flambeau.as_tensor(x)
    raise TypeError(f"No comparison is known for values of type {type(x)}")


def _kind(x):
    return (flambeau.float64 if isinstance(x, float) else flambeau.complex128 if isinstance(x, complex)
            else flambeau.int64)


def _numbers(a, e, o):
    if o["dtype"] and type(a) is not type(e):
        return f"The (d)types do not match: {type(a)} != {type(e)}."
    rtol, atol = default_tolerances(_kind(a), _kind(e)) if o["rtol"] is None else (o["rtol"], o["atol"])
    if o["equal_nan"] and cmath.isnan(a) and cmath.isnan(e) or a == e:
        return None
    off = abs(a - e)
    if cmath.isfinite(a) and off <= atol + rtol * abs(e):
        return None
    relative = off / abs(e) if e else float("inf")
    if not rtol and not atol:
        return f"Scalars are not equal!\n\nExpected {e} but got {a}.\nAbsolute difference: {off}\n" \
               f"Relative difference: {relative}"
    return (f"Scalars are not close!\n\nExpected {e} but got {a}.\n"
            f"Absolute difference: {off} (up to {atol} allowed)\n"
            f"Relative difference: {relative} (up to {rtol} allowed)")


def _tensors(a, e, o):
    if tuple(a.shape) != tuple(e.shape):
        return f"The shapes differ: {tuple(a.shape)} != {tuple(e.shape)}."
    for name in [n for n in ("device", "dtype") if o[n]]:
        if getattr(a, name) != getattr(e, name):
            return f"The {name}s differ: {getattr(a, name)} != {getattr(e, name)}."
    if o["stride"] and a.stride() != e.stride():
        return f"The strides differ: {a.stride()} != {e.stride()}."
    if a.device.type == "meta":
        return None
    rtol, atol = default_tolerances(a, e) if o["rtol"] is None else (o["rtol"], o["atol"])
    a, e = a.detach(), e.detach()
    if a.dtype != e.dtype:
        common = flambeau.promote_types(a.dtype, e.dtype)
        a, e = a.to(common), e.to(common)
    if a.dtype in (flambeau.float16, flambeau.bfloat16):
        a, e = a.float(), e.float()
    exact = not rtol and not atol
    close = a == e
    if o["equal_nan"]:
        close = close | ((a != a) & (e != e))
    if not exact and not bool(close.all()):
        wide = a.dtype if a.dtype.is_floating_point or a.dtype.is_complex else flambeau.float64
        off, size = (a.to(wide) - e.to(wide)).abs(), e.to(wide).abs()
        close = close | ((off <= atol + rtol * size) & off.isfinite())
    if bool(close.all()):
        return None
    return _report(a, e, close, rtol, atol, exact)


def _report(a, e, close, rtol, atol, exact):
    """How many elements differ, and by how much."""
    wide = a.dtype if a.dtype.is_floating_point or a.dtype.is_complex else flambeau.float64
    off = (a.to(wide) - e.to(wide)).abs().double()
    off = flambeau.where(close, flambeau.zeros_like(off), off)
    relative = off / e.to(wide).abs().double()
    relative = flambeau.where(close, flambeau.zeros_like(relative), relative)
    wrong, total = int((~close).sum()), close.numel()
    lines = ["Tensor-likes are not equal!" if exact else "Tensor-likes are not close!", "",
             f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"]
    for name, values, limit in (("absolute", off, atol), ("relative", relative, rtol)):
        flat = flambeau.where(values != values, flambeau.full_like(values, float("inf")), values).flatten()
        at, place = int(flat.argmax()), []
        rest = at
        for n in reversed(a.shape):
            place.insert(0, rest % n)
            rest //= n
        where = f" at index {tuple(place)}" if place else ""
        lines.append(f"Greatest {name} difference: {values.flatten()[at].item()}{where}" +
                     ("" if exact else f" (up to {limit} allowed)"))
    return "\n".join(lines)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """An older form of assert_close."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, check_stride=False, msg=msg or None)
