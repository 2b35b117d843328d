"""torch._foreach_NAME: an operator on every tensor of a list, by rule.

Arguments that are lists (of tensors or numbers, or one 1-dim tensor of numbers for `scalars`) go with the
tensors one by one; all else goes to every call. NAME returns a tuple; NAME_ changes the tensors and returns a
list of them.
"""
from . import _C
from ._C import Tensor

_ONE = ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg "
        "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero").split()
_TWO = "add clamp_max clamp_min copy div lerp maximum minimum mul pow sub".split()
_THREE = ("addcdiv", "addcmul")
_OTHER = {"clone": _C.clone, "norm": _C.linalg_vector_norm, "max": _C.max, "mm": _C.mm}
NAMES = {f"_foreach_{name}{end}" for name in (*_ONE, *_TWO, *_THREE) for end in ("", "_")}
NAMES |= {f"_foreach_{name}" for name in _OTHER}
NAMES -= {"_foreach_zero", "_foreach_copy"}


def _operator(name):
    """The function on one tensor."""
    base = name[len("_foreach_"):]
    if base in ("maximum", "clamp_min"):
        return lambda x, other: _limit(x, other, _C.maximum, "min")
    if base in ("minimum", "clamp_max"):
        return lambda x, other: _limit(x, other, _C.minimum, "max")
    if base.rstrip("_") in ("maximum", "clamp_min", "minimum", "clamp_max"):
        plain = _operator(name[:-1])
        return lambda x, other: x.copy_(plain(x, other))
    if base in _OTHER:
        return _OTHER[base]
    return getattr(Tensor, base)


def _limit(x, other, function, side):
    return function(x, other) if isinstance(other, Tensor) else x.clamp(**{side: other})


def _each(value, count, name):
    """The value for each tensor."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(f"{name}: expected lists of one length, got {count} tensors and {len(value)}")
    return value


def make(name):
    """The function torch._foreach_... of this name."""
    if name not in NAMES:
        raise AttributeError(f"module 'torch' (Flambeau) has no attribute '{name}'")
    operator, base = _operator(name), name[len("_foreach_"):].rstrip("_")

    def function(self, *args, scalars=None, **options):
        if base == "pow" and not isinstance(self, (list, tuple)):
            return tuple(_C.pow(self, exponent) for exponent in args[0])
        tensors = list(self)
        if not tensors:
            raise RuntimeError(f"{name}: expected a list of one tensor or more, got none")
        if base in _THREE and len(args) == 3:
            args, scalars = args[:2], args[2]
        columns = [_each(a, len(tensors), name) for a in args]
        values = scalars.tolist() if isinstance(scalars, Tensor) else scalars
        for option, value in options.items():
            options[option] = _each(value, len(tensors), name)
        results = []
        for k, x in enumerate(tensors):
            named = {option: values[k] for option, values in options.items()}
            given = [column[k] for column in columns]
            if values is not None:
                number = _each(values, len(tensors), name)[k]
                if base in _THREE:
                    named["value"] = number
                else:
                    given.append(number)
            results.append(operator(x, *given, **named))
        return results if name.endswith("_") else tuple(results)

    function.__name__ = name
    function.__doc__ = f"{base}() of every tensor of a list" + (", in place." if name.endswith("_") else ".")
    return function
