"""Functions of functions: derivatives, maps over a dimension, modules called with other parameters."""
from ..nn.utils.stateless import functional_call
from .batches import vmap
from .derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .modules import replace_all_batch_norm_modules_, stack_module_state

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
           "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state",
           "vjp", "vmap"]


def functionalize(func, *, remove="mutations"):
    """func itself. Has no effect: compile() takes mutations and views out of its graphs by itself."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError("functionalize(): expected remove to be 'mutations' or 'mutations_and_views', got "
                           f"{remove!r}")
    return func


def debug_unwrap(tensor, *, recurse=True):
    """The tensor itself: functions of functions call theirs with plain tensors."""
    return tensor
