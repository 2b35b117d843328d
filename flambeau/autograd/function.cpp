#include "flambeau/autograd/function.h"

#include <algorithm>

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/in_place.h"
#include "flambeau/autograd/view.h"

namespace fl {
namespace {

int find(const Tensors& list, const Tensor& t) {
  for (size_t i = 0; i < list.size(); ++i)
    if (t.defined() && list[i].is_same(t)) return static_cast<int>(i);
  return -1;
}

/// Stands behind gradients that must not be differentiated again.
class OnceNode final : public SimpleNode {
 public:
  explicit OnceNode(const Tensors& outputs) {
    for (const Tensor& t : outputs) specs_.push_back(t.defined() ? t.spec() : TensorSpec());
  }
  std::string name() const override { return "OnceDifferentiable"; }
  Tensors apply(Tensors&&) override {
    FL_RAISE(RuntimeError,
             "trying to differentiate twice a function that was marked with @once_differentiable");
  }
  const TensorSpec& input_spec(int input) const override { return specs_[input]; }
  int input_count() const override { return static_cast<int>(specs_.size()); }

 private:
  std::vector<TensorSpec> specs_;
};

}  // namespace

class FunctionNode final : public SimpleNode {
 public:
  FunctionNode(FunctionSpec spec, const Tensors& inputs) : spec_(std::move(spec)) {
    std::vector<Edge> edges;
    for (const Tensor& t : inputs) edges.push_back(gradient_edge(t));
    set_edges(std::move(edges));
  }
  ~FunctionNode() override {
    if (ctx_.self) *ctx_.self = nullptr;
  }
  FunctionCtx& ctx() { return ctx_; }
  std::string name() const override { return spec_.name + "Backward"; }
  const TensorSpec& input_spec(int input) const override { return specs_[input]; }
  int input_count() const override { return static_cast<int>(specs_.size()); }
  Tensors apply(Tensors&& grads) override;
  void release_saved() override {
    for (SavedTensor& s : saved_) s.release(*this);
  }
  /// After forward: takes the outputs' specs and what was to be saved.
  void finish(FunctionCtx&& ctx, const Tensors& outputs);
  Tensors saved() const {
    Tensors r;
    for (const SavedTensor& s : saved_) r.push_back(s.unpack(*this));
    return r;
  }

 private:
  Tensors run_backward_function(Tensors grads);

  FunctionSpec spec_;
  FunctionCtx ctx_;
  std::vector<TensorSpec> specs_;
  std::vector<SavedTensor> saved_;
};

void FunctionNode::finish(FunctionCtx&& ctx, const Tensors& outputs) {
  ctx_ = std::move(ctx);
  ctx_.node_ = this;
  if (ctx_.self) *ctx_.self = &ctx_;
  ctx_.dirty_.clear();
  ctx_.non_differentiable_.clear();
  for (const Tensor& t : outputs) specs_.push_back(t.defined() ? t.spec() : TensorSpec());
  for (const Tensor& t : std::exchange(ctx_.to_save_, {})) {
    const int output = find(outputs, t);
    if (output < 0)
      saved_.emplace_back(t, SavedTensor::Role::Input);
    else
      saved_.emplace_back(t, SavedTensor::Role::Output, output);
  }
}

FunctionCtx* function_ctx(Node& node) {
  auto* function = dynamic_cast<FunctionNode*>(&node);
  return function ? &function->ctx() : nullptr;
}

Tensors FunctionNode::run_backward_function(Tensors grads) {
  if (!spec_.once_differentiable) return spec_.backward(ctx_, std::move(grads));
  const bool recording = dispatch_state().grad_enabled &&
                         std::any_of(grads.begin(), grads.end(),
                                     [](const Tensor& g) { return g.defined() && g.requires_grad(); });
  Tensors result;
  {
    NoGradGuard no_grad;
    result = spec_.backward(ctx_, std::move(grads));
  }
  if (!recording) return result;
  const auto error = make_ref<OnceNode>(result);
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i].defined()) continue;
    result[i] = shallow_copy(result[i]);
    set_history(result[i], error, static_cast<int>(i));
  }
  return result;
}

Tensors FunctionNode::apply(Tensors&& grads) {
  if (ctx_.materialize_)
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined() && is_differentiable(specs_[i].dtype))
        grads[i] = gradient_ops::filled(specs_[i], 0);
  Tensors result = run_backward_function(std::move(grads));
  const size_t expected = edges().size();
  // More than expected is fine if the rest is undefined.
  while (result.size() > expected && !result.back().defined()) result.pop_back();
  FL_CHECK(result.size() == expected, RuntimeError,
           "function {} returned an incorrect number of gradients (expected {}, got {})", name(), expected,
           result.size());
  return result;
}

Tensors FunctionCtx::saved() const {
  FL_CHECK(node_, RuntimeError, "saved() is for backward; expected a call that was recorded");
  return node_->saved();
}

bool FunctionCtx::needs_input_grad(int i) const {
  if (node_) return node_->wants(i);
  return i < static_cast<int>(inputs_need_grad_.size()) && inputs_need_grad_[i];
}

/// One call of apply_function.
struct FunctionCall {
  const Tensors& inputs;
  Ref<FunctionNode> node;  ///< null: not recorded
  FunctionCtx ctx;

  /// The output as the caller gets it.
  Tensor finish_output(const Tensor& out, int index) const {
    const int input = find(inputs, out);
    const bool dirty = find(ctx.dirty_, out) >= 0;
    const bool differentiable =
        node && is_differentiable(out.dtype()) && find(ctx.non_differentiable_, out) < 0;
    if (dirty && input >= 0) {
      if (!differentiable) return out;
      FL_CHECK(!(out.is_leaf() && out.requires_grad()), RuntimeError,
               "a leaf Variable that requires grad has been used in an in-place operation.");
      check_in_place(out);
      rebase_history(out, node, index, input);
      return out;
    }
    Tensor result = input >= 0 ? shallow_copy(out) : out;
    if (!differentiable) {
      if (node && result.requires_grad()) result = shallow_copy(result);
      return result;
    }
    if (input >= 0) note_opaque_view(out, result);
    if (AutogradMeta* m = meta(result); m && m->view) {
      m->view->origin = ViewOrigin::CustomFunction;
      m->view->version = version(result);
    }
    set_history(result, node, index);
    return result;
  }

  Tensors run(const FunctionSpec& spec) {
    Tensors outputs;
    for (const Tensor& t : inputs) ctx.inputs_need_grad_.push_back(t.defined() && t.requires_grad());
    {
      NoGradGuard no_grad;
      outputs = spec.forward(ctx);
    }
    for (const Tensor& t : ctx.dirty_)
      FL_CHECK(find(outputs, t) >= 0, RuntimeError,
               "Some elements marked as dirty during the forward method were not returned as output. The "
               "inputs that are modified inplace must all be outputs of the Function.");
    Tensors results;
    for (size_t i = 0; i < outputs.size(); ++i)
      results.push_back(outputs[i].defined() ? finish_output(outputs[i], static_cast<int>(i)) : Tensor());
    if (node) {
      // A saved input that is returned is saved as the output that stands for it.
      for (Tensor& t : ctx.to_save_)
        if (const int k = find(outputs, t); k >= 0 && find(inputs, t) < 0) t = results[k];
      node->finish(std::move(ctx), results);
    }
    return results;
  }
};

Tensors apply_function(FunctionSpec spec, const Tensors& inputs) {
  const DispatchState& state = dispatch_state();
  const bool recorded = state.grad_enabled && !state.inference &&
                        std::any_of(inputs.begin(), inputs.end(),
                                    [](const Tensor& t) { return t.defined() && t.requires_grad(); });
  FunctionCall call{inputs, nullptr, {}};
  if (!recorded) return call.run(spec);
  // The node outlives this call; forward need not.
  FunctionSpec kept{spec.name, nullptr, spec.backward, spec.once_differentiable};
  call.node = make_ref<FunctionNode>(std::move(kept), inputs);
  return call.run(spec);
}

}  // namespace fl
