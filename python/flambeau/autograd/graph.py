"""The graph that operators leave behind: its nodes, and hooks on what they save."""
import abc
import contextlib
import threading
from collections import namedtuple

from .. import _C

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu",
           "saved_tensors_hooks"]


class Node(abc.ABC):
    """The class of every grad_fn: name(), next_functions, metadata, register_hook(), register_prehook()."""


class GradientEdge(namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))):
    """Where the gradient by a tensor goes: input number output_nr of a node."""

    __slots__ = ()


def get_gradient_edge(tensor):
    """The edge of a tensor that requires grad."""
    if not tensor.requires_grad:
        raise RuntimeError("a gradient edge exists only for a Tensor with requires_grad=True")
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor):
    """Tells autograd that the elements of a tensor, or of several, were changed where it could not see."""
    for t in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        t._bump_version()


class saved_tensors_hooks:
    """Tensors that are saved for backward inside go through pack_hook, and come back through unpack_hook."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if _disabled:
            raise RuntimeError(_disabled[-1])
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error):
        _C._pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors wait in the CPU's memory; pin_memory: in its page-locked part."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(t):
            pins = pin_memory and t.is_cuda
            return t.device, t.cpu().pin_memory() if pins else t.cpu()

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


_disabled = []


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Inside, entering saved_tensors_hooks raises RuntimeError(error_message)."""
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.pop()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, tensors that are saved for backward may be changed in place: copies are saved."""
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        yield


class _Handles:
    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        for h in self._handles:
            h.remove()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """In every backward pass that reaches some of the tensors, calls fn once.

    mode "all": with a list of their gradients, None where the pass gives none, once all are there; "any":
    with the first gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        last = threading.local()  # a pass runs in one thread

        def only_first(grad):
            if getattr(last, "number", None) != _C._current_pass():
                last.number = _C._current_pass()
                fn(grad)

        return _Handles([t.register_hook(only_first) for t in tensors])
    nodes = [_C._gradient_edge(t)[0] for t in tensors]
    passes, lock = {}, threading.Lock()  # number: gradients to come, and those that are there

    def hook_of(k):
        def hook(grad):
            number = _C._current_pass()
            with lock:
                if number not in passes:
                    passes[number] = sum(n._is_reached() for n in nodes), [None] * len(tensors)
                waiting, grads = passes[number]
                grads[k] = grad
                passes[number] = waiting - 1, grads
                if waiting == 1:
                    del passes[number]
            if waiting == 1:
                fn(grads)

        return hook

    return _Handles([t.register_hook(hook_of(k)) for k, t in enumerate(tensors)])
