// Images read at positions that a grid gives.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

// interpolation_mode: 0 linear, 1 nearest, 2 cubic. padding_mode: 0 zeros, 1 border, 2 reflection.
inline constexpr Op<
    "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
    "align_corners) -> Tensor">
    grid_sampler_2d;
inline constexpr Op<
    "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
    "align_corners) -> Tensor">
    grid_sampler_3d;
inline constexpr Op<
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
    "-> Tensor">
    grid_sampler;

}  // namespace fl
