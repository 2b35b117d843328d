// Normalisation over the batch, the last dimensions or groups of channels.
#pragma once
#include <optional>

#include "flambeau/nn/module.h"

namespace fl::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< nothing: the running values are plain means over all batches
  bool affine = true, track_running_stats = true;
};
/// In training (or without running values) by the batch's mean and variance, else by the running ones:
/// running = (1 - momentum) running + momentum batch, with the unbiased variance. Parameters weight and bias
/// (features), buffers running_mean, running_var and num_batches_tracked.
class BatchNormImpl : public Layer {
 public:
  void reset_running_stats();
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  BatchNormImpl(int64_t features, BatchNormOptions options);
  virtual void check_input(const Tensor& x) const = 0;

 private:
  void average_running_stats(const Tensor& x);
  BatchNormOptions options_;
};
/// x (batch, features) or (batch, features, length).
class BatchNorm1dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm1dImpl(int64_t features, BatchNormOptions options = {})
      : BatchNormImpl(features, options) {}

 protected:
  void check_input(const Tensor& x) const override;
};
struct BatchNorm1d : Holder<BatchNorm1dImpl> {
  using Holder::Holder;
  explicit BatchNorm1d(int64_t features, BatchNormOptions options = {})
      : Holder(std::make_shared<BatchNorm1dImpl>(features, options)) {}
};
/// x (batch, features, height, width).
class BatchNorm2dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm2dImpl(int64_t features, BatchNormOptions options = {})
      : BatchNormImpl(features, options) {}

 protected:
  void check_input(const Tensor& x) const override;
};
struct BatchNorm2d : Holder<BatchNorm2dImpl> {
  using Holder::Holder;
  explicit BatchNorm2d(int64_t features, BatchNormOptions options = {})
      : Holder(std::make_shared<BatchNorm2dImpl>(features, options)) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
/// Over the last dimensions, which have these sizes.
class LayerNormImpl : public Layer {
 public:
  explicit LayerNormImpl(IntList normalized_shape, LayerNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  Sizes shape_;
  double eps_;
};
struct LayerNorm : Holder<LayerNormImpl> {
  using Holder::Holder;
  explicit LayerNorm(int64_t features, LayerNormOptions options = {})
      : Holder(std::make_shared<LayerNormImpl>(IntList{features}, options)) {}
  explicit LayerNorm(IntList normalized_shape, LayerNormOptions options = {})
      : Holder(std::make_shared<LayerNormImpl>(normalized_shape, options)) {}
};

struct RMSNormOptions {
  std::optional<double> eps{};  ///< the dtype's epsilon
  bool elementwise_affine = true;
};
class RMSNormImpl : public Layer {
 public:
  explicit RMSNormImpl(IntList normalized_shape, RMSNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight;

 private:
  Sizes shape_;
  std::optional<double> eps_;
};
struct RMSNorm : Holder<RMSNormImpl> {
  using Holder::Holder;
  explicit RMSNorm(int64_t features, RMSNormOptions options = {})
      : Holder(std::make_shared<RMSNormImpl>(IntList{features}, options)) {}
  explicit RMSNorm(IntList normalized_shape, RMSNormOptions options = {})
      : Holder(std::make_shared<RMSNormImpl>(normalized_shape, options)) {}
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
/// x (batch, channels, ...), over each of `groups` groups of channels.
class GroupNormImpl : public Layer {
 public:
  GroupNormImpl(int64_t groups, int64_t channels, GroupNormOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  int64_t groups_;
  double eps_;
};
struct GroupNorm : Holder<GroupNormImpl> {
  using Holder::Holder;
  GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options = {})
      : Holder(std::make_shared<GroupNormImpl>(groups, channels, options)) {}
};

}  // namespace fl::nn
