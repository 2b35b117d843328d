// Pooling of one to three dimensions over the primitives.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)">
    max_pool1d_with_indices;
inline constexpr Op<
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)">
    max_pool2d_with_indices;
inline constexpr Op<
    "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)">
    max_pool3d_with_indices;
inline constexpr Op<
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool "
    "ceil_mode=False) -> Tensor">
    max_pool1d;
inline constexpr Op<
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor">
    max_pool2d;
inline constexpr Op<
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
    "ceil_mode=False) -> Tensor">
    max_pool3d;
inline constexpr Op<
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor">
    avg_pool1d;
inline constexpr Op<
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor">
    avg_pool2d;
inline constexpr Op<
    "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor">
    avg_pool3d;
inline constexpr Op<"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor"> adaptive_avg_pool1d;
inline constexpr Op<"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"> adaptive_avg_pool2d;
inline constexpr Op<"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"> adaptive_avg_pool3d;

}  // namespace fl
