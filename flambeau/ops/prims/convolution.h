// Convolution and its gradients. Images are (batch, channel, spatial...), weights (out, in / groups,
// spatial...), or (in, out / groups, spatial...) where transposed.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor">
    convolution;
inline constexpr Op<
    "_convolution_input_grad(Tensor grad_output, Tensor weight, SymInt[] input_size, SymInt[] stride, "
    "SymInt[] "
    "padding, SymInt[] dilation, bool transposed, SymInt groups) -> Tensor">
    _convolution_input_grad;
inline constexpr Op<
    "_convolution_weight_grad(Tensor grad_output, Tensor input, SymInt[] weight_size, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt groups) -> Tensor">
    _convolution_weight_grad;

}  // namespace fl
