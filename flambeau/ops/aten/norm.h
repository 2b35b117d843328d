// Normalisation by the statistics of a layer, group, batch or instance.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

/// (self - mean) / sqrt(variance + eps) over dimensions; also the mean and the biased variance, with size 1
/// there. All in the compute dtype.
inline constexpr Op<"_standardize(Tensor self, int[] dim, float eps) -> (Tensor, Tensor, Tensor)">
    _standardize;
inline constexpr Op<
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)">
    native_layer_norm;
inline constexpr Op<
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1e-05, bool cudnn_enable=True) -> Tensor">
    layer_norm;
inline constexpr Op<
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)">
    _fused_rms_norm;
inline constexpr Op<
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor">
    rms_norm;
inline constexpr Op<
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int "
    "group, float eps) -> (Tensor, Tensor, Tensor)">
    native_group_norm;
inline constexpr Op<
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
    "cudnn_enabled=True) -> Tensor">
    group_norm;
inline constexpr Op<
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
    "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)">
    native_batch_norm;
inline constexpr Op<
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "training, float momentum, float eps, bool cudnn_enabled) -> Tensor">
    batch_norm;
inline constexpr Op<
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor">
    instance_norm;

}  // namespace fl
