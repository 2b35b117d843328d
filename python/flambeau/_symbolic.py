"""Functions on numbers that may be symbolic: while compile() captures, a size may be a SymInt, and a float
that differs from call to call a SymFloat.
"""
import numbers

from . import _C
from ._C import SymFloat, SymInt

__all__ = ["SymInt", "SymFloat", "SymBool", "sym_int", "sym_float", "sym_not", "sym_max", "sym_min",
           "sym_ite", "sym_sum"]

numbers.Integral.register(SymInt)
numbers.Real.register(SymFloat)


class SymBool:
    """A condition on unknown sizes. Nothing is one: code is captured for the answer."""


def sym_int(a):
    """a without its fraction; a SymInt stays one."""
    return a if isinstance(a, SymInt) else int(a)


def sym_float(a):
    """a as a float; a SymFloat stays one."""
    return a if isinstance(a, SymFloat) else float(a)


def sym_not(a):
    """not a."""
    return not a


def _extreme(symbolic, plain, a, b):
    out = symbolic(a, b) if isinstance(a, SymInt) or isinstance(b, SymInt) else plain(a, b)
    return float(out) if isinstance(a, float) or isinstance(b, float) else out


def sym_max(a, b):
    """The larger number; a float if one of them is. Of sizes, an expression that is right for all sizes."""
    return _extreme(_C._sym_max, max, a, b)


def sym_min(a, b):
    """The smaller number; a float if one of them is. Of sizes, an expression that is right for all sizes."""
    return _extreme(_C._sym_min, min, a, b)


def sym_ite(b, t, f):
    """t if b else f."""
    return t if b else f


def sym_sum(args):
    """The sum of numbers."""
    return sum(args)
