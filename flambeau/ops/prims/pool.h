// Pooling over windows of the last dimensions, one for each entry of kernel_size.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "_max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) "
    "-> "
    "(Tensor, Tensor)">
    _max_pool;
inline constexpr Op<
    "_max_pool_backward(Tensor grad_output, Tensor indices, SymInt[] input_size, int[] kernel_size, int[] "
    "stride, int[] padding, int[] dilation) -> Tensor">
    _max_pool_backward;
inline constexpr Op<
    "_avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool "
    "count_include_pad, int? divisor_override) -> Tensor">
    _avg_pool;
inline constexpr Op<
    "_avg_pool_backward(Tensor grad_output, SymInt[] input_size, int[] kernel_size, int[] stride, int[] "
    "padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor">
    _avg_pool_backward;
inline constexpr Op<"_adaptive_avg_pool(Tensor self, SymInt[] output_size) -> Tensor"> _adaptive_avg_pool;
inline constexpr Op<"_adaptive_avg_pool_backward(Tensor grad_output, SymInt[] input_size) -> Tensor">
    _adaptive_avg_pool_backward;

}  // namespace fl
