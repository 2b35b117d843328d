// Images in other resolutions: the nearest pixel, or interpolation, along each dimension in turn.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor">
    upsample_nearest1d;
inline constexpr Op<
    "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
    "Tensor">
    upsample_nearest2d;
inline constexpr Op<
    "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, "
    "float? scales_w=None) -> Tensor">
    upsample_nearest3d;
inline constexpr Op<
    "_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor">
    upsample_nearest_exact1d;
inline constexpr Op<
    "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
    "scales_w=None) -> Tensor">
    upsample_nearest_exact2d;
inline constexpr Op<
    "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
    "scales_h=None, float? scales_w=None) -> Tensor">
    upsample_nearest_exact3d;
inline constexpr Op<
    "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor">
    upsample_linear1d;
inline constexpr Op<
    "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
    "float? scales_w=None) -> Tensor">
    upsample_bilinear2d;
inline constexpr Op<
    "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, "
    "float? scales_h=None, float? scales_w=None) -> Tensor">
    upsample_trilinear3d;
inline constexpr Op<
    "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
    "scales_w=None) -> Tensor">
    upsample_bicubic2d;
inline constexpr Op<
    "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
    "float? scales_w=None) -> Tensor">
    upsample_bilinear2d_aa;
inline constexpr Op<
    "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
    "float? scales_w=None) -> Tensor">
    upsample_bicubic2d_aa;

}  // namespace fl
