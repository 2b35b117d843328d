// The node of a compiled function in autograd's graph.
#pragma once
#include "flambeau/aot/compiled_function.h"
#include "flambeau/autograd/saved_tensor.h"

namespace fl::aot {

class CompiledFunction::BackwardNode : public SimpleNode {
 public:
  /// inputs, outputs: of the forward graph's run.
  BackwardNode(std::shared_ptr<CompiledFunction> function, const Tensors& args,
               const std::vector<Value>& inputs, const std::vector<Value>& outputs);

  std::string name() const override { return "CompiledFunctionBackward"; }
  Tensors apply(Tensors&& grads) override;
  const TensorSpec& input_spec(int input) const override { return specs_[input]; }
  int input_count() const override { return static_cast<int>(specs_.size()); }
  void release_saved() override;

 private:
  Tensors apply_again(Tensors grads);

  std::shared_ptr<CompiledFunction> function_;
  std::vector<TensorSpec> specs_;  ///< of the tangents
  std::vector<SavedTensor> saved_;
  std::vector<Value> numbers_;
  std::vector<SavedTensor> args_;  ///< for gradients of gradients
};

}  // namespace fl::aot
