// Linear maps, lookup tables and changes of shape.
#pragma once
#include <optional>

#include "flambeau/nn/module.h"

namespace fl::nn {

struct LinearOptions {
  bool bias = true;
};
/// x (..., in) -> x W^T + b (..., out); weight (out, in), bias (out).
class LinearImpl : public Layer {
 public:
  LinearImpl(int64_t in, int64_t out, LinearOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;
};
struct Linear : Holder<LinearImpl> {
  using Holder::Holder;
  Linear(int64_t in, int64_t out, LinearOptions options = {})
      : Holder(std::make_shared<LinearImpl>(in, out, options)) {}
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx{};  ///< its row starts at zero and gets no gradient
};
/// Integers (...) -> their rows of the weight (...) + (dim); weight (count, dim).
class EmbeddingImpl : public Layer {
 public:
  EmbeddingImpl(int64_t count, int64_t dim, EmbeddingOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& indices) override;
  Tensor weight;

 private:
  int64_t padding_idx_ = -1;
};
struct Embedding : Holder<EmbeddingImpl> {
  using Holder::Holder;
  Embedding(int64_t count, int64_t dim, EmbeddingOptions options = {})
      : Holder(std::make_shared<EmbeddingImpl>(count, dim, options)) {}
};

class IdentityImpl : public Layer {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};
struct Identity : Holder<IdentityImpl> {
  using Holder::Holder;
  Identity() : Holder(std::make_shared<IdentityImpl>()) {}
};

/// Joins dimensions start_dim to end_dim; the first one is the batch.
class FlattenImpl : public Layer {
 public:
  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t start_, end_;
};
struct Flatten : Holder<FlattenImpl> {
  using Holder::Holder;
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : Holder(std::make_shared<FlattenImpl>(start_dim, end_dim)) {}
};

/// With probability p in training: zeroes an element, scales the others by 1 / (1 - p).
class DropoutImpl : public Layer {
 public:
  explicit DropoutImpl(double p = 0.5);
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};
struct Dropout : Holder<DropoutImpl> {
  using Holder::Holder;
  explicit Dropout(double p = 0.5) : Holder(std::make_shared<DropoutImpl>(p)) {}
};

}  // namespace fl::nn
