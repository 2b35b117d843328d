"""Gradients kept within bounds. foreach, PyTorch's choice of how to loop over them, has no effect."""
import warnings

import flambeau as fl

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, fl.Tensor) else list(parameters)
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of the norms of tensors: as if they were one vector."""
    with fl.no_grad():
        tensors = [tensors] if isinstance(tensors, fl.Tensor) else list(tensors)
        if not tensors:
            return fl.tensor(0.0)
        norm_type = float(norm_type)
        device = tensors[0].device
        norms = [fl.linalg_vector_norm(t, norm_type).to(device) for t in tensors]
        total = fl.linalg_vector_norm(fl.stack(norms), norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(f"the total norm (order {norm_type}) of the gradients is non-finite. Pass "
                               "error_if_nonfinite=False to scale them by it all the same")
        return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients by max_norm / total_norm where that is less than 1."""
    with fl.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _gradients(parameters):
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their total norm is at most max_norm. Returns the norm before."""
    parameters = [parameters] if isinstance(parameters, fl.Tensor) else list(parameters)
    if not parameters:
        warnings.warn("clip_grad_norm_(): 'parameters' is empty, so nothing is clipped.", stacklevel=2)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of clip_grad_norm_."""
    warnings.warn("clip_grad_norm() is an old name and deprecated; call clip_grad_norm_().", FutureWarning,
                  stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Each element of the gradients kept within [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with fl.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)
