"""Control flow as functions: branches and loops on the values of tensors."""
from . import _C
from ._C import Tensor

__all__ = ["cond", "while_loop"]


def _holds(value, name):
    """The truth of a condition's value."""
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.dtype is not _C.bool:
            raise RuntimeError(f"{name}(): expected the condition to be a bool tensor of one element, got "
                               f"one of shape {tuple(value.shape)} and dtype {value.dtype}")
        return bool(value)
    if not isinstance(value, (bool, int, float)):
        raise RuntimeError(f"{name}(): expected the condition to be a bool or a tensor, got "
                           f"{type(value).__name__}")
    return bool(value)


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) if pred else false_fn(*operands). compile() makes a graph of the branch that is
    taken.
    """
    for name, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise RuntimeError(f"cond(): expected {name} to be callable, got {type(function).__name__}")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond(): expected operands as a tuple, got {type(operands).__name__}")
    return true_fn(*operands) if _holds(pred, "cond") else false_fn(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Values = body_fn(*values), from carried_inputs on, as long as cond_fn(*values)."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop(): expected cond_fn and body_fn to be callable")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError("while_loop(): expected carried_inputs as a tuple, got "
                           f"{type(carried_inputs).__name__}")
    values = tuple(carried_inputs)
    while _holds(cond_fn(*values), "while_loop"):
        results = body_fn(*values)
        results = results if isinstance(results, (tuple, list)) else (results,)
        if len(results) != len(values):
            raise RuntimeError(f"while_loop(): body_fn got {len(values)} values and returned {len(results)}")
        values = tuple(results)
    return values
