// The call that dispatch makes for every operator that autograd may have to record.
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/in_place.h"
#include "flambeau/autograd/op_node.h"
#include "flambeau/autograd/view.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

template <class F>
void each_output(const OpInfo& op, Value* outs, F&& f) {
  int index = 0;
  for (int i = 0; i < op.return_count(); ++i) {
    if (outs[i].is_tensor()) {
      f(outs[i].tensor(), index++);
    } else if (outs[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : outs[i].tensors()) f(t, index++);
    }
  }
}

/// An operator that returned its argument gives another tensor, so that each has its own history.
void separate_outputs(const OpInfo& op, const Value* args, Value* outs) {
  for (int i = 0; i < op.return_count(); ++i) {
    if (!outs[i].is_tensor()) continue;
    for (int k = 0; k < op.arg_count(); ++k)
      if (args[k].is_tensor() && args[k].tensor().is_same(outs[i].tensor()))
        outs[i] = Value(shallow_copy(outs[i].tensor()));
  }
}

void attach_node(const OpInfo& op, const Value* args, Value* outs) {
  bool any = false;
  each_output(op, outs, [&](const Tensor& t, int) { any = any || is_differentiable(t.dtype()); });
  if (!any) return;
  const Ref<Node> node = OpNode::record(op, args, outs);
  each_output(op, outs, [&](const Tensor& t, int index) {
    if (is_differentiable(t.dtype())) set_history(t, node, index);
  });
}

void call_view(const OpInfo& op, Value* args, Value* outs, bool recorded) {
  const DispatchState& state = dispatch_state();
  run_below(op, args, outs);
  separate_outputs(op, args, outs);
  if (op.is(Tag::NonDifferentiable) || args[0].tensor().impl()->inference) return;
  ViewOrigin origin = ViewOrigin::Recorded;
  if (!state.grad_enabled) origin = state.inference ? ViewOrigin::Inference : ViewOrigin::NoGrad;
  each_output(op, outs, [&](const Tensor& t, int) { note_view(op, args, t, origin); });
  if (recorded) attach_node(op, args, outs);
}

/// A composite that returns several views (split, unbind): none of them may be changed in place.
void call_view_list(const OpInfo& op, Value* args, Value* outs) {
  op.decompose(args, outs);
  each_output(op, outs, [&](const Tensor& t, int index) {
    AutogradMeta* m = meta(t);
    if (!m || !m->view || m->view->origin != ViewOrigin::Recorded) return;
    m->view->origin = ViewOrigin::MultipleOutputs;
    m->view->list_op = &op;
    m->view->list_index = index;
  });
}

void call_recorded(const OpInfo& op, Value* args, Value* outs) {
  if (op.mutates()) return call_mutating(op, args, outs);
  if (op.is(Tag::Composite)) return call_view_list(op, args, outs);
  const DispatchState& state = dispatch_state();
  const bool recorded =
      state.grad_enabled && !state.inference && !op.is(Tag::NonDifferentiable) && any_requires_grad(op, args);
  if (op.is_view()) return call_view(op, args, outs, recorded);
  if (!recorded) return run_below(op, args, outs);
  if (!op.grad && op.decompose) return op.decompose(args, outs);
  run_below(op, args, outs);
  separate_outputs(op, args, outs);
  attach_node(op, args, outs);
}

}  // namespace

void enable_autograd() { install_autograd(call_recorded); }

}  // namespace fl
