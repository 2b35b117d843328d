"""Automatic differentiation: gradients, functions with gradients of one's own, hooks, and checks."""
import importlib

from .. import _C, overrides
from .._C import Tensor
from . import anomaly_mode, function, grad_mode, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import (_force_original_view_tracking, enable_grad, inference_mode, no_grad, set_grad_enabled,
                        set_multithreading_enabled)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "grad",
    "gradcheck", "gradgradcheck", "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name):
    """Loaded when they are first used."""
    if name in ("forward_ad", "functional", "profiler"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _as_list(value):
    return [value] if isinstance(value, Tensor) or value is None else list(value)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None,
             inputs=None):
    """Adds the gradients of sum(tensors * grad_tensors) to `.grad` of the leaves, or of `inputs` only."""
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if inputs is not None and not isinstance(inputs, Tensor) and not list(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    _C._backward(_as_list(tensors), None if grad_tensors is None else _as_list(grad_tensors), retain_graph,
                 create_graph, None if inputs is None else _as_list(inputs))


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of the sum of outputs * grad_outputs by the inputs: a tuple.

    An input that the outputs do not depend on is an error; its gradient is None under allow_unused, and zeros
    under materialize_grads. With is_grads_batched the first dimension of grad_outputs counts several passes.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("materialize_grads=True fills in gradients of unused inputs, so allow_unused=False "
                         "contradicts it: leave allow_unused out.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = _as_list(outputs), _as_list(inputs)
    grad_outputs = None if grad_outputs is None else _as_list(grad_outputs)
    if overrides.has_torch_function([*outputs, *inputs]):
        return overrides.handle_torch_function(
            grad, [*outputs, *inputs], outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, allow_unused=allow_unused, is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads)
    if is_grads_batched:
        result = _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    else:
        result = _C._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    if materialize_grads:
        result = tuple(_C.zeros_like(x) if g is None else g for x, g in zip(inputs, result))
    return result


def _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused):
    count = grad_outputs[0].size(0)
    passes = []
    for k in range(count):
        keep = retain_graph or create_graph or k + 1 < count
        given = [None if g is None else g[k] for g in grad_outputs]
        passes.append(_C._grad(outputs, inputs, given, keep, create_graph, allow_unused))
    return tuple(None if grads[0] is None else _C.stack(list(grads)) for grads in zip(*passes))


# A class that users test node classes against.
graph.Node.register(_C.Node)
