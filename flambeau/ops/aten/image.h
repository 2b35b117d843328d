// Images: rearranged channels, other resolutions.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"> pixel_shuffle;
inline constexpr Op<"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"> pixel_unshuffle;
inline constexpr Op<"channel_shuffle(Tensor self, SymInt groups) -> Tensor"> channel_shuffle;
inline constexpr Op<"upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor">
    upsample_nearest1d;
inline constexpr Op<
    "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
    "Tensor">
    upsample_nearest2d;
inline constexpr Op<
    "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
    "float? "
    "scales_w=None) -> Tensor">
    upsample_bilinear2d;

}  // namespace fl
