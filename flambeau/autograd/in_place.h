// Operators that change their arguments.
#pragma once
#include "flambeau/autograd/meta.h"

namespace fl {

/// Runs an op_, out= or other mutating form and rewrites the history of what it changed.
void call_mutating(const OpInfo& op, Value* args, Value* outs);
/// Raises RuntimeError if a recorded call must not change t in place: a leaf that requires grad, a view of
/// one, one of several views.
void check_in_place(const Tensor& t);
/// t, input `input` of the call that node records, was changed by it: makes it output `output_nr` of node. If
/// t is a view, its base gets a node that sends the view's part of the gradient through `node`.
void rebase_history(const Tensor& t, Ref<Node> node, int output_nr = 0, int input = 0);
/// op below autograd; versions of what it changes have gone up afterwards.
void run_below(const OpInfo& op, Value* args, Value* outs);
bool any_requires_grad(const OpInfo& op, const Value* args);

/// The base's node after a view of it was changed in place.
class CopySlices final : public SimpleNode {
 public:
  CopySlices(const Tensor& base, Ref<ViewStep> steps, Ref<Node> inner, int output_nr, int input);
  std::string name() const override { return "CopySlices"; }
  Tensors apply(Tensors&& grads) override;
  const TensorSpec& input_spec(int) const override { return base_; }
  int input_count() const override { return 1; }
  void release_saved() override { inner_->release_saved(); }

 private:
  TensorSpec base_;
  Ref<ViewStep> steps_;
  Ref<Node> inner_;
  int output_nr_, input_;
};

}  // namespace fl
