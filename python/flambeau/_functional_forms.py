"""Functions of the torch namespace that are other forms of those in nn.functional, or of operators."""
from . import _C
from ._composites import _write, promote_types
from ._overloads import native_batch_norm, norm
from .autograd.function import Function
from .nn import functional as F
from .nn.utils.weight_norm import norm_except_dim as _norm_except_dim
from .overrides import public_in

__all__ = []
_public = public_in(__all__)


@_public
def bilinear(input1, input2, weight, bias=None):
    """nn.functional.bilinear()."""
    return F.bilinear(input1, input2, weight, bias)


@_public
def conv_tbc(input, weight, bias, pad=0):
    """nn.functional.conv_tbc()."""
    return F.conv_tbc(input, weight, bias, pad)


@_public
def native_channel_shuffle(input, groups):
    """nn.functional.channel_shuffle()."""
    return _C.channel_shuffle(input, groups)


@_public
def affine_grid_generator(theta, size, align_corners):
    """nn.functional.affine_grid()."""
    return F.affine_grid(theta, size, align_corners)


def _dropout(name, function):
    """f(input, p, train), and f_() in place."""
    def dropout(input, p, train):
        return function(input, p, train)

    def in_place(input, p, train):
        return function(input, p, train, inplace=True)

    for ending, form in (("", dropout), ("_", in_place)):
        form.__name__, form.__doc__ = name + ending, f"nn.functional.{function.__name__}()."
        globals()[name + ending] = _public(form)


_dropout("alpha_dropout", F.alpha_dropout)
_dropout("feature_alpha_dropout", F.feature_alpha_dropout)
_dropout("feature_dropout", F.dropout2d)


@_public
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Shortens the rows that indices names to max_norm, in place."""
    F.embeddings._renormalize(input, indices, max_norm, norm_type)
    return input


@_public
def norm_except_dim(v, pow=2, dim=0):
    """The norm of order `pow` over all dimensions but one (-1: over all)."""
    if dim == -1:
        return _C.linalg_vector_norm(v, pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return _C.linalg_vector_norm(v, pow, others, keepdim=True)


@_public
def _weight_norm(v, g, dim=0):
    """v * g / |v|, the norm over all dimensions but one."""
    return v * (g / _norm_except_dim(v, dim))


@_public
def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values of matrices."""
    return norm(input, "nuc", dim, keepdim)


@_public
def _shape_as_tensor(input):
    """The sizes as a tensor."""
    return _C.tensor(list(input.shape), dtype=_C.int64)


@_public
def lu(A, pivot=True, get_infos=False, out=None):
    """(LU, pivots) of P A = L U, and infos if asked for: linalg.lu_factor()."""
    results = _C.linalg_lu_factor_ex(A, pivot=pivot)
    if not get_infos:
        if bool((results[2] != 0).any()):
            raise _C.LinAlgError("lu(): a matrix is singular; get_infos=True says which")
        results = tuple(results)[:2]
    return results if out is None else tuple(map(_write, results, out))


# ---- Operators that PyTorch's own rules are made of.


@_public
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax by its input."""
    scaled = grad_output * output
    return (scaled - output * scaled.sum(dim, keepdim=True)).to(input_dtype)


@_public
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of log_softmax by its input."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


@_public
def native_dropout_backward(grad_output, mask, scale):
    """The gradient of native_dropout by its input."""
    return grad_output * mask * scale


@_public
def _safe_softmax(self, dim, dtype=None):
    """Softmax; of a row that is -inf everywhere, zeros."""
    masked = (self == float("-inf")).all(dim, keepdim=True)
    return _C.where(masked, 0.0, _C.softmax(_C.where(masked, 0.0, self), dim, dtype=dtype))


@_public
def _native_batch_norm_legit(input, weight, bias, *statistics, out=None):
    """native_batch_norm(); without running_mean and running_var it keeps none."""
    running = statistics[:2] if len(statistics) == 5 else (None, None)
    return native_batch_norm(input, weight, bias, *running, *statistics[-3:], out=out)


@_public
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """native_batch_norm() in training, and an empty tensor in the place of a library's own results."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, _C.empty(0, dtype=_C.uint8, device=input.device))


class _MaxPoolGradient(Function):
    """Linear in the outputs' gradients; the input is there for its size."""

    @staticmethod
    def forward(ctx, grad_output, input, indices):
        ctx.save_for_backward(indices)
        gradient = _C.zeros_like(input).flatten(-2)
        return gradient.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).view(input.shape)

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        return g.flatten(-2).gather(-1, indices.flatten(-2)).view(indices.shape), _C.zeros_like(g), None


@_public
def max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode,
                                     indices):
    """The gradient of max_pool2d by its input: each output's, at the place that its index names."""
    return _MaxPoolGradient.apply(grad_output, self, indices)


@_public
def _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p=0.0, is_causal=False, *,
                                                attn_mask=None, scale=None):
    """(attention, the logarithm of the sum of its exponentials for each query)."""
    if dropout_p:
        raise RuntimeError("_scaled_dot_product_flash_attention_for_cpu(): expected dropout_p=0, got "
                           f"{dropout_p}")
    output = _C.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    wide = promote_types(query.dtype, _C.float32)
    scale = query.size(-1) ** -0.5 if scale is None else scale
    scores = query.detach().to(wide) @ key.detach().to(wide).transpose(-2, -1) * scale
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        later = _C.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return output, scores.logsumexp(-1)
