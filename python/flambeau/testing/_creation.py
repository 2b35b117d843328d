"""make_tensor()."""
import math

import flambeau

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def make_tensor(*shape, dtype, device="cpu", low=None, high=None, requires_grad=False, noncontiguous=False,
                exclude_zero=False, memory_format=None):
    """A tensor of random elements in [low, high): [-9, 9) unless given, [0, 10) for uint8, both for bool.

    noncontiguous: in memory, there is a gap after every element. exclude_zero: 0 is replaced by the smallest
    number.
    """
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad` is not supported for dtype {dtype}")
    sizes = (*shape[:-1], 2 * shape[-1]) if noncontiguous and shape else shape
    t = _random(sizes, dtype, device, low, high)
    if noncontiguous and shape:
        t = t[..., ::2]
    elif memory_format is not None:
        t = t.contiguous(memory_format=memory_format)
    if exclude_zero:
        tiny = flambeau.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        t[t == 0] = tiny
    return t.requires_grad_() if requires_grad else t


def _random(sizes, dtype, device, low, high):
    if dtype is flambeau.bool:
        low, high = _bounds(0, 2, low, high, 0, 2)
        return flambeau.randint(low, high, sizes, device=device).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        limit = flambeau.finfo(dtype)
        low, high = _bounds(-9.0, 9.0, low, high, limit.min, limit.max)
        real = (flambeau.float64 if dtype is flambeau.complex128 else flambeau.float32 if dtype.is_complex
                else dtype)
        work = real if str(real).split(".")[-1] in _FLOATS else flambeau.float32

        def part():
            u = flambeau.rand(sizes, dtype=work, device=device)
            return (high * u + low * (1 - u)).clamp(low, max(low, high - abs(high) * limit.eps))

        return flambeau.complex(part(), part()) if dtype.is_complex else part().to(dtype)
    limit = flambeau.iinfo(dtype)
    low, high = _bounds(0 if dtype is flambeau.uint8 else -9, 10, low, high, limit.min, limit.max + 1)
    return flambeau.randint(math.floor(low), math.ceil(high), sizes, dtype=dtype, device=device)


def _bounds(default_low, default_high, low, high, least, most):
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` must be numbers other than NaN: low={low}, high={high}")
    if low > high:
        raise ValueError(f"`low` must be less than or equal to `high`, but got low={low} and high={high}")
    return max(low, least), min(high, most)
