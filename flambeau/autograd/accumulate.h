// The end of a graph: adds to a leaf's .grad.
#pragma once
#include "flambeau/autograd/meta.h"

namespace fl {

class AccumulateGrad : public SimpleNode {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  std::string name() const override { return "AccumulateGrad"; }
  Tensors apply(Tensors&& grads) override;
  const TensorSpec& input_spec(int) const override { return leaf_.spec(); }
  int input_count() const override { return 1; }
  const HookList<GradHook>* leaf_hooks() const override { return &meta(leaf_)->leaf_hooks; }
  const Tensor& leaf() const { return leaf_; }

 private:
  Tensor leaf_;
};

/// The leaf's node: one for as long as any graph refers to it.
Ref<Node> accumulator(const Tensor& leaf);

}  // namespace fl
