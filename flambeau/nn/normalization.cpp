#include "flambeau/nn/normalization.h"

#include "flambeau/autograd/autograd.h"
#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

static Tensor parameter_if(bool wanted, IntList sizes) {
  return wanted ? empty_tensor(sizes, DType::Float32) : Tensor();
}

static void reset_scale_and_shift(const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

BatchNormImpl::BatchNormImpl(int64_t features, BatchNormOptions options) : options_(options) {
  weight = register_parameter("weight", parameter_if(options.affine, {features}));
  bias = register_parameter("bias", parameter_if(options.affine, {features}));
  const bool track = options.track_running_stats;
  running_mean = register_buffer("running_mean", parameter_if(track, {features}));
  running_var = register_buffer("running_var", parameter_if(track, {features}));
  num_batches_tracked =
      register_buffer("num_batches_tracked", track ? empty_tensor({}, DType::Int64) : Tensor());
  reset_running_stats();
  reset_parameters();
}

void BatchNormImpl::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  NoGradGuard no_grad;
  zero.in_place(num_batches_tracked);
}

void BatchNormImpl::reset_parameters() { reset_scale_and_shift(weight, bias); }

Tensor BatchNormImpl::forward(const Tensor& x) {
  check_input(x);
  const bool tracks = running_mean.defined();
  const bool by_batch = is_training() || !tracks;
  if (is_training() && tracks) {
    NoGradGuard no_grad;
    add.in_place(num_batches_tracked, 1);
  }
  if (is_training() && tracks && !options_.momentum) {
    average_running_stats(x);
    return batch_norm(x, weight, bias, {}, {}, true, 0.0, options_.eps, true);
  }
  // In evaluation without running values the batch's are used, and none are kept.
  const bool pass = tracks;
  return batch_norm(x, weight, bias, pass ? running_mean : Tensor(), pass ? running_var : Tensor(), by_batch,
                    options_.momentum.value_or(0.0), options_.eps, true);
}

/// The running values as means over all batches so far. The number of batches stays a tensor, so that a
/// captured step counts on.
void BatchNormImpl::average_running_stats(const Tensor& x) {
  NoGradGuard no_grad;
  Sizes dims;
  for (int d = 0; d < x.dim(); ++d)
    if (d != 1) dims.push_back(d);
  const Tensor share = reciprocal(to(num_batches_tracked, running_mean.dtype()));
  const auto [variance, average] = var_mean(x, IntList(dims), Scalar(1));
  lerp.in_place(running_mean, average, share);
  lerp.in_place(running_var, variance, share);
}

void BatchNorm1dImpl::check_input(const Tensor& x) const {
  FL_CHECK(x.dim() == 2 || x.dim() == 3, ValueError, "expected 2D or 3D input (got {}D input)", x.dim());
}

void BatchNorm2dImpl::check_input(const Tensor& x) const {
  FL_CHECK(x.dim() == 4, ValueError, "expected 4D input (got {}D input)", x.dim());
}

LayerNormImpl::LayerNormImpl(IntList normalized_shape, LayerNormOptions options)
    : shape_(normalized_shape.begin(), normalized_shape.end()), eps_(options.eps) {
  weight = register_parameter("weight", parameter_if(options.elementwise_affine, normalized_shape));
  bias =
      register_parameter("bias", parameter_if(options.elementwise_affine && options.bias, normalized_shape));
  reset_parameters();
}

void LayerNormImpl::reset_parameters() { reset_scale_and_shift(weight, bias); }

Tensor LayerNormImpl::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }

RMSNormImpl::RMSNormImpl(IntList normalized_shape, RMSNormOptions options)
    : shape_(normalized_shape.begin(), normalized_shape.end()), eps_(options.eps) {
  weight = register_parameter("weight", parameter_if(options.elementwise_affine, normalized_shape));
  reset_parameters();
}

void RMSNormImpl::reset_parameters() { reset_scale_and_shift(weight, {}); }

Tensor RMSNormImpl::forward(const Tensor& x) { return rms_norm(x, shape_, weight, eps_); }

GroupNormImpl::GroupNormImpl(int64_t groups, int64_t channels, GroupNormOptions options)
    : groups_(groups), eps_(options.eps) {
  FL_CHECK(groups > 0 && channels % groups == 0, ValueError,
           "the number of channels must be divisible by the number of groups, got {} and {}", channels,
           groups);
  weight = register_parameter("weight", parameter_if(options.affine, {channels}));
  bias = register_parameter("bias", parameter_if(options.affine, {channels}));
  reset_parameters();
}

void GroupNormImpl::reset_parameters() { reset_scale_and_shift(weight, bias); }

Tensor GroupNormImpl::forward(const Tensor& x) { return group_norm(x, groups_, weight, bias, eps_); }

}  // namespace fl::nn
