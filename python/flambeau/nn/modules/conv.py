"""Convolutions."""
import flambeau as fl
from flambeau.nn import functional as F, init
from flambeau.nn.modules.lazy import LazyModuleMixin
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.tuples import _pair, _reverse_repeat_tuple, _single, _triple
from flambeau.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]


class _ConvNd(Module):
    """What convolutions of every number of dimensions share."""

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
                     "in_channels", "out_channels", "kernel_size"]

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
                 output_padding, groups, bias, padding_mode, device=None, dtype=None):
        super().__init__()
        _check_arguments(in_channels, out_channels, kernel_size, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_of_pad()
        how = {"device": device, "dtype": dtype}
        self.weight = Parameter(fl.empty(self._weight_shape(), **how))
        self.register_parameter("bias", Parameter(fl.empty(out_channels, **how)) if bias else None)
        self.reset_parameters()

    def _weight_shape(self):
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _padding_of_pad(self):
        """The padding as F.pad takes it: last dimension first, before and after."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        out = []
        for dilation, size in reversed(list(zip(self.dilation, self.kernel_size))):
            total = dilation * (size - 1) if self.padding == "same" else 0
            out += [total // 2, total - total // 2]
        return out

    def reset_parameters(self):
        """Weights and bias uniform on +-1 / sqrt(inputs of an output)."""
        init._reset_linear(self.weight, self.bias)

    def extra_repr(self):
        text = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}")
        zeros = (0,) * len(self.kernel_size)
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.kernel_size):
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check_arguments(in_channels, out_channels, kernel_size, stride, padding, groups, padding_mode):
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    modes = {"zeros", "reflect", "replicate", "circular"}
    if padding_mode not in modes:
        raise ValueError(f"'padding_mode' is '{padding_mode}'; possible are {sorted(modes)}")


class _Conv(_ConvNd):
    """A convolution, computed by _function; _tuple gives each argument a number for every dimension."""

    _tuple, _function = None, None

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 bias=True, padding_mode="zeros", device=None, dtype=None):
        as_tuple = type(self)._tuple
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
                         padding if isinstance(padding, str) else as_tuple(padding), as_tuple(dilation),
                         False, as_tuple(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        return type(self)._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution of (N, C, L) with kernels (out_channels, in_channels / groups, kernel)."""

    _tuple, _function = staticmethod(_single), staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution of (N, C, H, W) with kernels (out_channels, in_channels / groups, kernel, kernel)."""

    _tuple, _function = staticmethod(_pair), staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W) with kernels of three dimensions."""

    _tuple, _function = staticmethod(_triple), staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution by its input, as a layer."""

    _tuple, _function = None, None

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
                 groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        as_tuple = type(self)._tuple
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
                         as_tuple(padding), as_tuple(dilation), True, as_tuple(output_padding), groups, bias,
                         padding_mode, device, dtype)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims,
                        dilation=None):
        """What has to be added at the end to get output_size."""
        if output_size is None:
            return tuple(self.output_padding)
        if len(output_size) == num_spatial_dims + 2:
            output_size = output_size[2:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(f"ConvTranspose{num_spatial_dims}d: 'output_size' has {len(output_size)} "
                             f"numbers; with an 'input' of {input.dim()} dimensions it takes "
                             f"{num_spatial_dims} or {num_spatial_dims + 2}")
        dilation = dilation or (1,) * num_spatial_dims
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, k, d in
                 zip(input.shape[-num_spatial_dims:], stride, padding, kernel_size, dilation)]
        most = [low + s - 1 for low, s in zip(least, stride)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most)):
            raise ValueError(f"'output_size' {output_size} cannot be reached from {input.size()[2:]}: the "
                             f"least is {least}, the most {most}")
        return tuple(size - low for size, low in zip(output_size, least))

    def forward(self, input, output_size=None):
        output_padding = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                              len(self.kernel_size), self.dilation)
        return type(self)._function(input, self.weight, self.bias, self.stride, self.padding, output_padding,
                                    self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L)."""

    _tuple, _function = staticmethod(_single), staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W)."""

    _tuple, _function = staticmethod(_pair), staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W)."""

    _tuple, _function = staticmethod(_triple), staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes in_channels from the first input."""

    def __init__(self, out_channels, *args, **kwargs):
        super().__init__(0, 0, *args, **kwargs)
        how = {"device": self.weight.device, "dtype": self.weight.dtype}
        self.out_channels = out_channels
        self.weight = UninitializedParameter(**how)
        if self.bias is not None:
            self.bias = UninitializedParameter(**how)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        spatial = len(self.kernel_size)
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(f"{type(self).__name__}: 'input' needs {spatial + 1} dimensions, or "
                               f"{spatial + 2} with a batch; its shape is {input.shape}")
        self.in_channels = input.shape[-spatial - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A Conv1d that takes in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A Conv2d that takes in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A Conv3d that takes in_channels from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose3d
