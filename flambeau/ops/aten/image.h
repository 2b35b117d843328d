// Images: rearranged channels. Other resolutions are in resize.h.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"> pixel_shuffle;
inline constexpr Op<"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"> pixel_unshuffle;
inline constexpr Op<"channel_shuffle(Tensor self, SymInt groups) -> Tensor"> channel_shuffle;

}  // namespace fl
