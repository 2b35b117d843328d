#include "flambeau/aot/backward_node.h"

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/base/error.h"

namespace fl::aot {

CompiledFunction::BackwardNode::BackwardNode(std::shared_ptr<CompiledFunction> function, const Tensors& args,
                                             const std::vector<Value>& inputs,
                                             const std::vector<Value>& outputs)
    : function_(std::move(function)) {
  const Partition& p = function_->partition_;
  const graph::Graph& forward = p.forward;
  std::vector<Edge> edges;
  for (const Gradient& g : function_->joint_.gradients)
    edges.push_back(gradient_edge(function_->joint_.program.outer(args, g.target)));
  set_edges(std::move(edges));
  for (const Tangent& t : function_->joint_.tangents)
    specs_.push_back(outputs[function_->position(t.output)].tensor().spec());
  for (const SavedValue& s : p.saved) {
    // Other handles: outputs will point to this node, and so may inputs that change in place.
    if (s.output >= 0) {
      saved_.emplace_back(shallow_copy(outputs[s.output].tensor()), SavedTensor::Role::Input);
      continue;
    }
    size_t i = 0;
    while (forward.inputs()[i] != s.input) ++i;
    saved_.emplace_back(shallow_copy(inputs[i].tensor()), SavedTensor::Role::Input);
  }
  for (size_t i = outputs.size() - static_cast<size_t>(p.saved_numbers); i < outputs.size(); ++i)
    numbers_.push_back(outputs[i]);
  if (function_->options_.double_backward)
    for (const Tensor& t : args) args_.emplace_back(t, SavedTensor::Role::Kept);
}

void CompiledFunction::BackwardNode::release_saved() {
  for (SavedTensor& s : saved_) s.release(*this);
  for (SavedTensor& s : args_) s.release(*this);
}

Tensors CompiledFunction::BackwardNode::apply(Tensors&& grads) {
  if (dispatch_state().grad_enabled) return apply_again(std::move(grads));
  std::vector<Value> inputs;
  for (const SavedTensor& s : saved_) inputs.push_back(Value(s.unpack(*this)));
  for (size_t i = 0; i < specs_.size(); ++i) {
    Tensor g = grads[i].defined() ? grads[i] : gradient_ops::filled(specs_[i], 0);
    // The graph was made for contiguous tangents.
    if (!g.is_contiguous()) g = gradient_ops::clone(g, MemoryFormat::Contiguous);
    inputs.push_back(Value(g));
  }
  for (const Value& n : numbers_) inputs.push_back(n);
  Tensors result;
  for (const Value& v : function_->backward()(inputs)) result.push_back(v.tensor());
  return result;
}

// With create_graph: the original function's own backward, recorded.
Tensors CompiledFunction::BackwardNode::apply_again(Tensors grads) {
  const JointProgram& j = function_->joint_;
  FL_CHECK(
      function_->options_.double_backward, RuntimeError,
      "a compiled function does not support gradients of gradients (create_graph=True) unless compiled with "
      "double_backward");
  bool repeatable =
      j.info.mutations.empty() && j.program.grad_effects.empty() && j.program.generators.empty();
  for (const Tangent& t : j.tangents) repeatable = repeatable && t.output < j.user_outputs;
  FL_CHECK(repeatable, RuntimeError,
           "gradients of gradients through a compiled function that changes its arguments, draws random "
           "numbers or "
           "returns several views of one tensor are not supported; run it without compiling");
  Tensors args, heads, targets, tangents;
  for (const SavedTensor& s : args_) args.push_back(s.unpack(*this));
  const Tensors outputs = function_->repeat(args);
  for (size_t i = 0; i < j.tangents.size(); ++i) {
    if (!grads[i].defined()) continue;
    heads.push_back(outputs[j.tangents[i].output]);
    tangents.push_back(grads[i]);
  }
  std::vector<size_t> places;
  for (size_t i = 0; i < j.gradients.size(); ++i) {
    const Tensor t = j.program.outer(args, j.gradients[i].target);
    if (!t.requires_grad()) continue;
    targets.push_back(t);
    places.push_back(i);
  }
  Tensors result(j.gradients.size());
  if (heads.empty() || targets.empty()) return result;
  const Tensors found = grad(heads, targets, tangents, {.retain_graph = true, .create_graph = true}, true);
  for (size_t i = 0; i < places.size(); ++i) result[places[i]] = found[i];
  return result;
}

}  // namespace fl::aot
