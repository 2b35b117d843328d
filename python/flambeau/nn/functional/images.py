"""Padding, resizing and sampling of images; channels rearranged."""
import math
import warnings

import flambeau as fl
from flambeau import channel_shuffle, pixel_shuffle, pixel_unshuffle  # noqa: F401

__all__ = [
    "affine_grid", "channel_shuffle", "grid_sample", "interpolate", "native_channel_shuffle", "pad",
    "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear", "upsample_nearest",
]


def pad(input, pad, mode="constant", value=None):
    """Padding before and after each dimension, from the last one on.

    mode: "constant" (with value), "reflect", "replicate" or "circular".
    """
    pad = list(pad)
    if mode == "circular" and any(p < 0 for p in pad):
        input, pad = fl.constant_pad_nd(input, [min(p, 0) for p in pad]), [max(p, 0) for p in pad]
    return fl.pad(input, pad, mode, value)


def native_channel_shuffle(input, groups):
    return fl.channel_shuffle(input, groups)


# --- resizing ---
_BY_MODE = {
    ("nearest", 3): "upsample_nearest1d", ("nearest", 4): "upsample_nearest2d",
    ("nearest", 5): "upsample_nearest3d", ("nearest-exact", 3): "_upsample_nearest_exact1d",
    ("nearest-exact", 4): "_upsample_nearest_exact2d", ("nearest-exact", 5): "_upsample_nearest_exact3d",
    ("linear", 3): "upsample_linear1d", ("bilinear", 4): "upsample_bilinear2d",
    ("trilinear", 5): "upsample_trilinear3d", ("bicubic", 4): "upsample_bicubic2d",
    ("area", 3): "adaptive_avg_pool1d", ("area", 4): "adaptive_avg_pool2d",
    ("area", 5): "adaptive_avg_pool3d",
}
_RANK = {"linear": 3, "bilinear": 4, "trilinear": 5, "bicubic": 4}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    """Images of (N, C, ...) in another resolution, size or scale_factor times the input's.

    mode: nearest, nearest-exact, area; linear, bilinear, bicubic, trilinear by the number of dimensions.
    align_corners: the middles of the corner pixels stay in place, else the corners of the image.
    antialias: bilinear and bicubic average over what a smaller pixel covers.
    """
    takes_corners = mode not in ("nearest", "area", "nearest-exact")
    if align_corners is not None and not takes_corners:
        raise ValueError("interpolate(): 'align_corners' goes with the modes linear, bilinear, bicubic and "
                         f"trilinear only, got mode {mode!r}")
    spatial = input.dim() - 2
    size, scales = _size_and_scales(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError("interpolate(): 'antialias' needs a 4-dim input and mode 'bilinear' or 'bicubic'; "
                         f"got {input.dim()} dimensions and mode {mode!r}")
    name = _BY_MODE.get((mode, input.dim()))
    if name is None:
        if mode in _RANK and 3 <= input.dim() <= 5:
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_RANK[mode]}D input")
        raise NotImplementedError("interpolate(): 'input' must have 3 to 5 dimensions and 'mode' be nearest, "
                                  "nearest-exact, area, linear, bilinear, bicubic or trilinear; got "
                                  f"{input.dim()} dimensions and mode {mode!r}")
    if mode == "area":
        return getattr(fl, name)(input, size)
    if antialias:
        return getattr(fl._C, f"_{name}_aa")(input, size, bool(align_corners), *scales)
    corners = [bool(align_corners)] if takes_corners else []
    return getattr(fl._C, name)(input, size, *corners, *(scales if scales else [None] * spatial))


def _size_and_scales(input, size, scale_factor, recompute):
    """The output's size, and the factors by which to go (None: by the sizes)."""
    spatial = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate(): 'size' and 'scale_factor' are both given; give one")
    if size is None and scale_factor is None:
        raise ValueError("interpolate(): give 'size' or 'scale_factor'")
    given, what = (size, "size") if size is not None else (scale_factor, "scale_factor")
    given = list(given) if isinstance(given, (list, tuple)) else [given] * spatial
    if len(given) != spatial:
        raise ValueError(f"interpolate(): '{what}' must have one number for each of the input's dimensions "
                         f"after the first two, {list(input.shape[2:])}; got {given}")
    if size is not None:
        if recompute:
            raise ValueError("interpolate(): 'recompute_scale_factor' does not go with 'size'")
        if not all(isinstance(n, int) or hasattr(n, "__index__") for n in given):
            raise TypeError("interpolate(): 'size' must be a whole number or 1 to 3 of them, "
                            f"got {[type(n) for n in given]}")
        return given, [None] * spatial
    sizes = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], given)]
    return sizes, [None] * spatial if recompute else [float(s) for s in given]


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of interpolate."""
    warnings.warn("upsample() is an old name and deprecated; call interpolate().", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate(mode="nearest") under its old name."""
    warnings.warn("upsample_nearest() is an old name and deprecated; call interpolate().", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate(mode="bilinear", align_corners=True) under its old name."""
    warnings.warn("upsample_bilinear() is an old name and deprecated; call interpolate().", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# --- sampling ---
_SAMPLE_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The input at the positions of a grid (N, ..., x y [z]): -1 is at one border, 1 at the other."""
    if mode not in _SAMPLE_MODES:
        raise ValueError(f"grid_sample(): 'mode' must be one of {', '.join(_SAMPLE_MODES)}; got '{mode}'")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(f"grid_sample(): 'padding_mode' must be one of {', '.join(_PADDING_MODES)}; "
                         f"got '{padding_mode}'")
    if align_corners is None:
        warnings.warn("grid_sample(): 'align_corners' is not given and taken as False; pass True if -1 and 1 "
                      "are the middles of the corner pixels.", stacklevel=2)
    return fl.grid_sampler(input, grid, _SAMPLE_MODES[mode], _PADDING_MODES[padding_mode],
                           bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    """The grid for grid_sample that applies affine maps to images of a size.

    theta: (N, 2, 3) or (N, 3, 4).
    """
    if align_corners is None:
        warnings.warn("affine_grid(): 'align_corners' is not given and taken as False; pass True if -1 and 1 "
                      "are the middles of the corner pixels.", stacklevel=2)
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid(): 'theta' must hold floating numbers, got {theta.dtype}")
    spatial = len(size) - 2
    if spatial not in (2, 3):
        raise NotImplementedError("affine_grid(): 'size' must have 4 numbers (maps of the plane) or 5 (of "
                                  f"space), got {size}.")
    if theta.dim() != 3 or theta.shape[1:] != (spatial, spatial + 1):
        raise ValueError(f"affine_grid(): 'theta' must be of shape (N, {spatial}, {spatial + 1}) for size "
                         f"{size}, got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"affine_grid(): all numbers of 'size' must be at least 1, got {size}")
    axes = []
    for n in reversed(size[2:]):  # x first
        steps = fl.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        axes.append(steps if align_corners or n <= 1 else steps * ((n - 1) / n))
    places = fl.meshgrid(*reversed(axes), indexing="ij")[::-1]
    points = fl.stack([*places, fl.ones_like(places[0])], dim=-1).reshape(1, -1, spatial + 1)
    return (points.expand(size[0], -1, -1) @ theta.transpose(1, 2)).reshape(size[0], *size[2:], spatial)
