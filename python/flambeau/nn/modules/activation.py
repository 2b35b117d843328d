"""Activation functions as modules, and multi-head attention."""
import flambeau as fl
from flambeau.nn import functional as F
from flambeau.nn.init import constant_, xavier_normal_, xavier_uniform_
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU",
    "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]


class _InPlace(Module):
    """An activation without parameters that may overwrite its input."""

    __constants__ = ["inplace"]
    _function = None

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        return type(self)._function(input, inplace=self.inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(input, 0)."""

    _function = staticmethod(F.relu)


class SELU(_InPlace):
    """ELU with the constants that keep mean and variance."""

    _function = staticmethod(F.selu)


class SiLU(_InPlace):
    """input * sigmoid(input)."""

    _function = staticmethod(F.silu)


class Mish(_InPlace):
    """input * tanh(softplus(input))."""

    _function = staticmethod(F.mish)


class Hardsigmoid(_InPlace):
    """min(max(input + 3, 0), 6) / 6."""

    _function = staticmethod(F.hardsigmoid)


class Hardswish(_InPlace):
    """input * Hardsigmoid(input)."""

    _function = staticmethod(F.hardswish)


class _Plain(Module):
    """An activation without arguments."""

    _function = None

    def forward(self, input):
        return type(self)._function(input)


class Sigmoid(_Plain):
    """1 / (1 + e^-input)."""

    _function = staticmethod(fl.sigmoid)


class Tanh(_Plain):
    """tanh(input)."""

    _function = staticmethod(fl.tanh)


class LogSigmoid(_Plain):
    """log(sigmoid(input))."""

    _function = staticmethod(F.logsigmoid)


class Softsign(_Plain):
    """input / (1 + |input|)."""

    _function = staticmethod(F.softsign)


class Tanhshrink(_Plain):
    """input - tanh(input)."""

    _function = staticmethod(F.tanhshrink)


class Threshold(Module):
    """input where it is greater than threshold, value elsewhere."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """LeakyReLU whose slopes are random in training."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """The input between min_val and max_val."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(input, 0), 6)."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ELU(Module):
    """The input where positive, alpha (e^input - 1) elsewhere."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """ELU whose slope is continuous at 0."""

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """The input where positive, negative_slope times it elsewhere."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """LeakyReLU whose slope is a parameter: one, or one for each channel."""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(fl.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """The input times the normal distribution function of it; approximate="tanh" is a form by tanh."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """One half of the input times the sigmoid of the other."""

    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class _Shrink(Module):
    __constants__ = ["lambd"]
    _function = None

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return type(self)._function(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class Hardshrink(_Shrink):
    """0 between -lambd and lambd, the input elsewhere."""

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """The input moved towards 0 by lambd."""

    _function = staticmethod(F.softshrink)


class Softplus(Module):
    """log(1 + e^(beta input)) / beta."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """e^input divided by its sum along dim."""

    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=6)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(Softmax):
    """Softmax(-input)."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=6)


class LogSoftmax(Softmax):
    """log(Softmax(input))."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=6)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: 'input' needs 3 or 4 dimensions, not {input.dim()}")
        return F.softmax(input, -3)


class MultiheadAttention(Module):
    """Attention of several heads: softmax(Q K^T / sqrt(d)) V for each, with linear maps before and after.

    batch_first: inputs are (batch, length, width), else (length, batch, width).
    """

    __constants__ = ["batch_first"]

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False,
                 kdim=None, vdim=None, batch_first=False, device=None, dtype=None):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"'embed_dim' and 'num_heads' have to be positive, not {embed_dim} and "
                             f"{num_heads}")
        how = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(fl.empty((3 * embed_dim, embed_dim), **how))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(fl.empty((embed_dim, embed_dim), **how))
            self.k_proj_weight = Parameter(fl.empty((embed_dim, self.kdim), **how))
            self.v_proj_weight = Parameter(fl.empty((embed_dim, self.vdim), **how))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(fl.empty(3 * embed_dim, **how))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **how)
        self.bias_k = Parameter(fl.empty((1, 1, embed_dim), **how)) if add_bias_kv else None
        self.bias_v = Parameter(fl.empty((1, 1, embed_dim), **how)) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for weight in weights:
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        """The output, and the attention weights if need_weights.

        key_padding_mask (batch, source) and attn_mask (target, source), or (batch * heads, target, source):
        True or -inf where not to look. is_causal says that attn_mask is the causal one.
        """
        batched = query.dim() == 3
        key_padding_mask = F._canonical_mask(key_padding_mask, "key_padding_mask",
                                             None if attn_mask is None else attn_mask.dtype, "attn_mask",
                                             query.dtype)
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if self.batch_first and batched:
            query, key, value = _transposed(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, average_attn_weights=average_attn_weights,
            is_causal=is_causal, **separate)
        return (output.transpose(1, 0) if self.batch_first and batched else output), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one (batch, heads, target, source), and its type (0 attn_mask, 1 padding, 2 both)."""
        kind, merged = None, None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length = query.shape[:2]
            kind = 2
            if attn_mask.dim() == 3:
                expanded = attn_mask.view(batch, -1, length, length)
            else:
                expanded = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            merged = expanded
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, length)
                merged = expanded + padding.expand(-1, self.num_heads, -1, -1)
        return merged, kind


def _transposed(query, key, value):
    """Batch and length exchanged; tensors that are one stay one."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    v = q if value is query else k if value is key else value.transpose(1, 0)
    return q, k, v
