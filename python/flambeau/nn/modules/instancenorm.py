"""Instance normalisation: each channel of each image by itself."""
import warnings

from flambeau.nn import functional as F
from flambeau.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """(input - mean) / sqrt(var + eps) for each channel of each image; running statistics if asked for."""

    _rank_without_batch = None

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False,
                 device=None, dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        low = self._rank_without_batch
        if input.dim() not in (low, low + 1):
            raise ValueError(f"'input' needs {low} or {low + 1} dimensions, not {input.dim()}")

    def _get_no_batch_dim(self):
        return self._rank_without_batch

    def _apply_instance_norm(self, input):
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats, momentum, self.eps)

    def forward(self, input):
        self._check_input_dim(input)
        features = input.size(input.dim() - self._rank_without_batch)
        if features != self.num_features:
            if self.affine:
                raise ValueError(f"dimension {input.dim() - self._rank_without_batch} of 'input' is "
                                 f"{features}, but 'num_features' is {self.num_features}.")
            warnings.warn(f"dimension {input.dim() - self._rank_without_batch} of 'input' is {features}, "
                          f"'num_features' is {self.num_features}: without affine this has no effect.")
        if input.dim() == self._rank_without_batch:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            old = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if old:
                error_msgs.append(f"{type(self).__name__} has track_running_stats=False, but there is "
                                  f"{' and '.join(old)}. Files from before version 0.4.0 may hold these, as "
                                  "statistics were kept by default then; delete the keys from state_dict.")
                for key in old:
                    state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    _rank_without_batch = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    _rank_without_batch = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    _rank_without_batch = 4


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None,
                 *, bias=True):
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def initialize_parameters(self, input):
        super().initialize_parameters(input if input.dim() > self._rank_without_batch else input.unsqueeze(0))


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """An InstanceNorm1d that takes num_features from its first input."""

    cls_to_become, _rank_without_batch = InstanceNorm1d, 2


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """An InstanceNorm2d that takes num_features from its first input."""

    cls_to_become, _rank_without_batch = InstanceNorm2d, 3


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """An InstanceNorm3d that takes num_features from its first input."""

    cls_to_become, _rank_without_batch = InstanceNorm3d, 4
