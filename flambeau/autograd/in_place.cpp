#include "flambeau/autograd/in_place.h"

#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/op_node.h"
#include "flambeau/autograd/view.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

template <class F>
void each_mutated(const OpInfo& op, const Value* args, F&& f) {
  for (int i = 0; i < op.arg_count(); ++i) {
    if (!op.schema.args[i].mutated) continue;
    if (args[i].is_tensor()) {
      f(args[i].tensor());
    } else if (args[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : args[i].tensors())
        if (t.defined()) f(t);
    }
  }
}

/// op_ of a composite: the composite recorded step by step, then copied over self. It works on a copy, since
/// its steps may save what they read.
void call_composite_in_place(const OpInfo& functional, Value* args, Value* outs) {
  const Tensor self = args[0].tensor();
  SmallVector<Value, 4> inputs(args, args + functional.arg_count());
  inputs[0] = Value(gradient_ops::clone(self));
  Value result;
  dispatch(functional, inputs.data(), &result);
  const Tensor& r = result.tensor();
  FL_CHECK(category(r.dtype()) <= category(self.dtype()), RuntimeError,
           "result type {} can't be cast to the desired output type {}", name(r.dtype()), name(self.dtype()));
  FL_CHECK(gradient_ops::same_sizes(r.sizes(), self.sizes()), RuntimeError,
           "output with shape {} doesn't match the broadcast shape {}", to_string(self.sizes()),
           to_string(r.sizes()));
  outs[0] = Value(gradient_ops::copy.in_place(self, r));
}

/// g with the sizes and strides of a base, from offset 0, so that the base's view operators apply to it.
Tensor laid_out(const Tensor& g, const TensorSpec& base) {
  bool same = g.offset() == SymInt(0);
  for (int d = 0; same && d < base.dim(); ++d) same = g.strides()[d] == base.strides[d];
  if (same) return g;
  if (!is_non_overlapping_and_dense(base)) return gradient_ops::clone(g, MemoryFormat::Contiguous);
  Tensor r = gradient_ops::empty_strided(base.sizes, base.strides, g.dtype(), g.device());
  gradient_ops::copy.in_place(r, g);
  return r;
}

}  // namespace

void run_below(const OpInfo& op, Value* args, Value* outs) {
  StateGuard<bool> below(&DispatchState::below_autograd, true);
  if (!op.mutates()) return dispatch_below_autograd(op, args, outs);
  SmallVector<std::pair<Tensor, int64_t>, 2> changed;
  each_mutated(op, args, [&](const Tensor& t) { changed.emplace_back(t, version(t)); });
  dispatch_below_autograd(op, args, outs);
  for (auto& [t, before] : changed)
    if (t.storage() && t.storage()->version() == before) t.storage()->bump_version();
}

bool any_requires_grad(const OpInfo& op, const Value* args) {
  for (int i = 0; i < op.arg_count(); ++i) {
    if (args[i].is_tensor()) {
      if (args[i].tensor().requires_grad()) return true;
    } else if (args[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : args[i].tensors())
        if (t.defined() && t.requires_grad()) return true;
    }
  }
  return false;
}

void check_in_place(const Tensor& t) {
  const AutogradMeta* m = meta(t);
  if (!m) return;
  if (m->view) {
    check_view_change(t, false);
    const Tensor& base = m->view->base;
    FL_CHECK(!(base.requires_grad() && base.is_leaf()), RuntimeError,
             "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  FL_CHECK(!(m->requires_grad && t.is_leaf()), RuntimeError,
           "a leaf Variable that requires grad is being used in an in-place operation.");
}

void call_mutating(const OpInfo& op, Value* args, Value* outs) {
  each_mutated(op, args, [&](const Tensor& t) {
    FL_CHECK(
        !t.impl()->inference, RuntimeError,
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to "
        "get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details.");
  });
  const bool recorded = dispatch_state().grad_enabled && any_requires_grad(op, args);
  if (!recorded) return run_below(op, args, outs);
  const OpInfo* functional = op.functional;
  FL_CHECK(!functional || functional->out != &op, RuntimeError,
           "{}(): functions with out=... arguments don't support automatic differentiation, but one of the "
           "arguments requires grad.",
           op.schema.name);
  each_mutated(op, args, [&](const Tensor& t) { check_in_place(t); });
  FL_CHECK(functional, NotImplementedError,
           "{} changes its arguments and has no derivative, but one of the arguments requires grad",
           op.name());
  const Tensor self = args[0].tensor();
  if (!is_differentiable(self.dtype())) return run_below(op, args, outs);
  if (!functional->grad && functional->decompose && !functional->is(Tag::NonDifferentiable))
    return call_composite_in_place(*functional, args, outs);
  Ref<OpNode> node = OpNode::record_in_place(*functional, args);
  run_below(op, args, outs);
  node->save_in_place_output(self);
  rebase_history(self, node);
}

void rebase_history(const Tensor& t, Ref<Node> node, int output_nr, int input) {
  AutogradMeta& m = make_meta(t);
  if (!m.view) return set_history(t, std::move(node), output_nr);
  FL_ASSERT(m.view->steps, "a view without steps was changed in place");
  const Tensor& base = m.view->base;
  set_history(base, make_ref<CopySlices>(base, m.view->steps, std::move(node), output_nr, input), 0);
  m.view->version = version(t) - 1;
  refresh_view(t);
}

CopySlices::CopySlices(const Tensor& base, Ref<ViewStep> steps, Ref<Node> inner, int output_nr, int input)
    : base_(base.spec()),
      steps_(std::move(steps)),
      inner_(std::move(inner)),
      output_nr_(output_nr),
      input_(input) {
  std::vector<Edge> edges(inner_->edges().begin(), inner_->edges().end());
  edges[input] = gradient_edge(base);
  inner_->redirect(input, edges[input].node.get());
  set_edges(std::move(edges));
}

Tensors CopySlices::apply(Tensors&& grads) {
  const size_t count = edges().size();
  if (!grads[0].defined()) return Tensors(count);
  const Tensor g = laid_out(grads[0], base_);
  grads.clear();
  Tensors inner_grads(inner_->input_count());
  inner_grads[output_nr_] = replay_view(g, *steps_);
  Tensors result = inner_->apply(std::move(inner_grads));
  FL_CHECK(result.size() == count, RuntimeError,
           "function {} returned an incorrect number of gradients (expected {}, got {})", inner_->name(),
           count, result.size());
  if (!edges()[input_]) return result;
  Tensor& by_view = result[input_];
  const TensorSpec& spec = inner_->input_spec(output_nr_);
  by_view =
      by_view.defined() ? gradient_ops::fit(by_view, spec, *inner_, input_) : gradient_ops::filled(spec, 0);
  by_view = write_view_back(g, by_view, *steps_);
  return result;
}

}  // namespace fl
