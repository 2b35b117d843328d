"""What the tests of capture compile with, and how they look at tensors.

FLAMBEAU_CAPTURE_TESTS=eager: nothing is compiled; the tests are tested.
"""
import math
import os

import program  # noqa: F401  first: it chooses the library
import flambeau


def identity(function, **options):
    return function


EAGER = os.environ.get("FLAMBEAU_CAPTURE_TESTS") == "eager" or not getattr(flambeau._C, "_has_capture", False)
COMPILE = identity if EAGER else flambeau.compile


def values(x):
    """Tensors as lists, in whatever they lie in."""
    if isinstance(x, flambeau.Tensor):
        return x.detach().tolist()
    if isinstance(x, dict):
        return {key: values(value) for key, value in x.items()}
    return [values(item) for item in x] if isinstance(x, (list, tuple)) else x


def close(a, b, tolerance=1e-6):
    """Whether nested lists of numbers are equal; nan equals nan."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, complex) or isinstance(b, complex):
        return abs(a - b) <= tolerance
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(1, abs(b))
