// Pooling that chooses an element of each window, where windows differ in size or place; and the way back.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)">
    adaptive_max_pool1d;
inline constexpr Op<"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)">
    adaptive_max_pool2d;
inline constexpr Op<"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)">
    adaptive_max_pool3d;
inline constexpr Op<
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)">
    fractional_max_pool2d;
inline constexpr Op<
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)">
    fractional_max_pool3d;
inline constexpr Op<"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor">
    max_unpool2d;
inline constexpr Op<
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> "
    "Tensor">
    max_unpool3d;

}  // namespace fl
