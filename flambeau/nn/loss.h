// Losses: modules of an input and a target.
#pragma once
#include <optional>

#include "flambeau/nn/module.h"

namespace fl::nn {

enum class Reduction : int { None = 0, Mean = 1, Sum = 2 };

struct CrossEntropyOptions {
  Tensor weight{};  ///< of each class
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;
};
/// Input (batch, classes, ...), unnormalised; target (batch, ...) of class numbers, or probabilities of the
/// input's sizes.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
/// Negative log likelihood of log probabilities.
Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
                      double beta = 1);
/// Of probabilities, and of logits.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        Reduction reduction = Reduction::Mean);

class CrossEntropyLossImpl : public Module {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyOptions options = {}) : options_(std::move(options)) {
    register_buffer("weight", options_.weight);
  }
  Tensor forward(const Tensor& input, const Tensor& target) { return cross_entropy(input, target, options_); }

 private:
  CrossEntropyOptions options_;
};
struct CrossEntropyLoss : Holder<CrossEntropyLossImpl> {
  using Holder::Holder;
  explicit CrossEntropyLoss(CrossEntropyOptions options = {})
      : Holder(std::make_shared<CrossEntropyLossImpl>(std::move(options))) {}
};

#define FL_LOSS(Name, function)                                         \
  class Name##Impl : public Module {                                    \
   public:                                                              \
    explicit Name##Impl(Reduction reduction) : reduction_(reduction) {} \
    Tensor forward(const Tensor& input, const Tensor& target) {         \
      return function(input, target, reduction_);                       \
    }                                                                   \
                                                                        \
   private:                                                             \
    Reduction reduction_;                                               \
  };                                                                    \
  struct Name : Holder<Name##Impl> {                                    \
    using Holder::Holder;                                               \
    explicit Name(Reduction reduction = Reduction::Mean)                \
        : Holder(std::make_shared<Name##Impl>(reduction)) {}            \
  };
FL_LOSS(MSELoss, mse_loss)
FL_LOSS(L1Loss, l1_loss)
FL_LOSS(SmoothL1Loss, smooth_l1_loss)
FL_LOSS(BCELoss, binary_cross_entropy)
FL_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits)
#undef FL_LOSS

}  // namespace fl::nn
