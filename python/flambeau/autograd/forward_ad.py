"""Forward mode: derivatives along directions that inputs carry with them.

There are no formulas of its own: the gradient of an output is linear in its seed, and the derivative of that
linear map by the seed, along the tangents, is the forward derivative. So make_dual() gives a tensor whose
history is recorded, and unpack_dual() differentiates twice. Inside a level grad mode is on; under no_grad()
tangents end, as they do at detach().
"""
import threading
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from . import function
from .grad_mode import enable_grad

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual() gives. tangent: None for what does not depend on a dual tensor of the level."""
    primal: Tensor
    tangent: Tensor | None


class _Levels(threading.local):
    def __init__(self):
        self.stack = []


_levels = _Levels()


def push_forward(outputs, inputs, tangents, create_graph):
    """The derivative of each output along the tangents of the inputs; None where there is no dependence."""
    return _PushForward(outputs, inputs)(tangents, create_graph)


class _PushForward:
    """Outputs as a function of inputs, linearized."""

    def __init__(self, outputs, inputs):
        self.count, self.live = len(outputs), [k for k, y in enumerate(outputs) if y.requires_grad]
        live = [outputs[k] for k in self.live]
        self.seeds = [_C.zeros_like(y).requires_grad_() for y in live]
        self.gradients = [None] * len(inputs)
        if live:
            self.gradients = _C._grad(live, list(inputs), self.seeds, True, True, True)

    def __call__(self, tangents, create_graph):
        pairs = [(g, t) for g, t in zip(self.gradients, tangents)
                 if g is not None and g.requires_grad and t is not None]
        found = [None] * self.count
        if pairs:
            along = _C._grad([g for g, _ in pairs], self.seeds, [t for _, t in pairs], True, create_graph,
                             True)
            for k, derivative in zip(self.live, along):
                found[k] = derivative
        return found


def jacobian_by_columns(outputs, inputs, create_graph):
    """For each output, for each input: the derivatives, [*output, *input]. A pass for each input element."""
    linear, blocks = _PushForward(outputs, inputs), [[] for _ in outputs]
    for i, x in enumerate(inputs):
        columns = [[] for _ in outputs]
        for k in range(x.numel()):
            tangent = _C.zeros_like(x).reshape(-1)
            tangent[k] = 1
            tangents = [tangent.view(x.shape) if j == i else None for j in range(len(inputs))]
            for of, y, d in zip(columns, outputs, linear(tangents, create_graph)):
                of.append(_C.zeros_like(y) if d is None else d)
        for block, of, y in zip(blocks, columns, outputs):
            block.append((_C.stack(of, -1) if of else y.new_zeros((*y.shape, 0))).view(*y.shape, *x.shape))
    return blocks


class Level:
    """The dual tensors of a level, and their tangents."""

    def __init__(self):
        self.duals, self.tangents = [], []

    def __enter__(self):
        self._grad_mode = enable_grad()
        self._grad_mode.__enter__()
        _levels.stack.append(self)
        return self

    def __exit__(self, *error):
        if _levels.stack[-1:] != [self]:
            raise RuntimeError("exiting a forward AD level that was not the last that was entered")
        _levels.stack.pop()
        self._grad_mode.__exit__(*error)

    def add(self, dual, tangent):
        self.duals.append(dual)
        self.tangents.append(tangent)

    def tangents_of(self, outputs, create_graph):
        return push_forward(outputs, self.duals, self.tangents, create_graph)

    def has_other_history(self, outputs):
        """Whether outputs depend on something that requires grad and is no dual tensor of this level."""
        from ..func.derivatives import _history_beside

        return _history_beside(outputs, [d for d in self.duals if d.grad_fn is None])


def enter_dual_level():
    """Starts a level, and returns its number. dual_level() is the same as a context manager."""
    if _levels.stack:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    Level().__enter__()
    return 0


def exit_dual_level(*, level=None):
    """Ends the level: dual tensors are plain ones from then on."""
    if not _levels.stack:
        raise RuntimeError("Trying to exit a forward AD level but there is none")
    _levels.stack[-1].__exit__(None, None, None)


class dual_level:
    """A context in which tensors may have tangents; with no other inside."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *error):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """The tensor with a tangent, which what is computed of it in this level has, too: unpack_dual()."""
    if not _levels.stack:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the "
                           f"original Tensor, this is not supported. Tensor is of size {list(tensor.shape)} "
                           f"while the given forward gradient is of size {list(tangent.shape)}.")
    tangent = tangent.to(tensor.dtype)
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels.stack[-1].add(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """(tensor, tangent) of a tensor that was computed in this level."""
    if not _levels.stack:
        return UnpackedDualTensor(tensor, None)
    level = _levels.stack[-1]
    for dual, tangent in zip(level.duals, level.tangents):
        if dual is tensor and dual.grad_fn is None:
            return UnpackedDualTensor(tensor.detach(), tangent)
    if not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    keeps = level.has_other_history([tensor]) or any(t.requires_grad for t in level.tangents)
    with enable_grad():
        (tangent,) = level.tangents_of([tensor], keeps)
    if keeps or tangent is None:
        return UnpackedDualTensor(tensor, tangent)
    return UnpackedDualTensor(tensor.detach(), tangent.detach())


def _apply_own_rule(cls, args, kwargs):
    """A Function that has a jvp, applied to arguments of which some have tangents; else NotImplemented."""
    if not _levels.stack:
        return NotImplemented
    parts = [unpack_dual(a) if isinstance(a, Tensor) else UnpackedDualTensor(a, None) for a in args]
    if all(p.tangent is None for p in parts):
        return NotImplemented
    if any(p.primal.requires_grad for p in parts if p.tangent is not None):
        if cls.backward is not function.Function.backward:
            return NotImplemented  # through backward, which serves both directions
        raise NotImplementedError(f"{cls.__name__}.jvp of tensors that require grad, without a backward")
    ctx = cls._ctx_class()
    outputs = cls._apply(ctx, [p.primal for p in parts], kwargs)
    if ctx.saved_for_forward:
        ctx._to_save, ctx._state = ctx.saved_for_forward, None
    tangents = cls.jvp(ctx, *(p.tangent for p in parts))
    single = not isinstance(outputs, tuple)
    pairs = zip((outputs,) if single else outputs, (tangents,) if single else tangents)
    duals = tuple(make_dual(y, t) if t is not None else y for y, t in pairs)
    return duals[0] if single else duals


function.apply_own_forward_rule = _apply_own_rule
