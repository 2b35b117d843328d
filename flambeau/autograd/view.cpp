#include "flambeau/autograd/view.h"

#include <algorithm>

#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/op_node.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

Ref<ViewStep> make_step(const OpInfo& op, const Value* args, Ref<ViewStep> previous) {
  auto step = make_ref<ViewStep>();
  step->op = &op;
  step->args.assign(args, args + op.arg_count());
  step->args[0] = Value();
  step->previous = std::move(previous);
  return step;
}

/// The steps from the first one on.
std::vector<const ViewStep*> in_order(const ViewStep& last) {
  std::vector<const ViewStep*> steps;
  for (const ViewStep* s = &last; s; s = s->previous.get()) steps.push_back(s);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

Tensor apply_step(const ViewStep& step, const Tensor& base) {
  SmallVector<Value, 4> args = step.args;
  args[0] = Value(base);
  Value out;
  dispatch(*step.op, args.data(), &out);
  return out.tensor();
}

}  // namespace

void note_view(const OpInfo& op, const Value* args, const Tensor& view, ViewOrigin origin) {
  const Tensor& source = args[0].tensor();
  const AutogradMeta* m = meta(source);
  auto info = std::make_unique<ViewInfo>();
  info->origin = origin;
  info->version = version(view);
  if (m && m->view) {
    const ViewInfo& outer = *m->view;
    info->base = outer.base;
    // A view of a view that must not be changed must not be changed either.
    if (origin == ViewOrigin::Recorded) info->origin = outer.origin;
    if (outer.steps) info->steps = make_step(op, args, outer.steps);
  } else {
    info->base = source;
    info->steps = make_step(op, args, nullptr);
  }
  make_meta(view).view = std::move(info);
}

void note_opaque_view(const Tensor& input, const Tensor& view) {
  const AutogradMeta* m = meta(input);
  auto info = std::make_unique<ViewInfo>();
  info->base = m && m->view ? m->view->base : input;
  info->origin = ViewOrigin::CustomFunction;
  info->version = version(view);
  make_meta(view).view = std::move(info);
}

Tensor replay_view(const Tensor& base, const ViewStep& last) {
  Tensor t = base;
  for (const ViewStep* s : in_order(last)) t = apply_step(*s, t);
  return t;
}

Tensor write_view_back(const Tensor& base, const Tensor& view, const ViewStep& last) {
  const std::vector<const ViewStep*> steps = in_order(last);
  const bool direct = std::all_of(steps.begin(), steps.end(), [](auto* s) { return s->op->write_back; });
  if (!direct) {
    Tensor result = gradient_ops::clone(base, std::nullopt);
    gradient_ops::copy.in_place(replay_view(result, last), view);
    return result;
  }
  std::vector<Tensor> bases{base};
  for (size_t i = 0; i + 1 < steps.size(); ++i) bases.push_back(apply_step(*steps[i], bases.back()));
  Tensor value = view;
  for (size_t i = steps.size(); i-- > 0;)
    value = steps[i]->op->write_back(bases[i], value, steps[i]->args.data());
  return value;
}

void refresh_view(const Tensor& view) {
  AutogradMeta& m = *meta(view);
  ViewInfo& info = *m.view;
  const int64_t now = version(view);
  if (info.version == now) return;
  if (!m.grad_fn && !info.base.requires_grad()) return;
  check_view_change(view, true);
  FL_ASSERT(info.steps, "a view without steps passed the check");
  Ref<Node> old = m.grad_fn;
  {
    EnableGradGuard grad;
    StateGuard<bool> above(&DispatchState::below_autograd, false);
    StateGuard<bool> normal(&DispatchState::inference, false);
    const Tensor fresh = replay_view(info.base, *info.steps);
    m.grad_fn = meta(fresh) ? meta(fresh)->grad_fn : nullptr;
    m.output_nr = meta(fresh) ? meta(fresh)->output_nr : 0;
  }
  info.version = now;
  m.requires_grad = false;
  move_retain(m, old.get());
  release_iteratively(std::move(old));
}

void check_view_change(const Tensor& view, bool indirect) {
  const AutogradMeta& m = *meta(view);
  const ViewOrigin origin = m.view->origin;
  if (origin == ViewOrigin::Recorded) return;
  const std::string what = indirect ? "its base or another view of its base has been modified inplace"
                                    : "is being modified inplace";
  if (origin == ViewOrigin::NoGrad || origin == ViewOrigin::Inference) {
    const bool no_grad = origin == ViewOrigin::NoGrad;
    FL_RAISE(
        RuntimeError,
        "A view was created in {} mode and {} {}. Given that this use case is ambiguous and error-prone, "
        "it is forbidden. You can clarify your code by moving both the view and the inplace either both "
        "inside the {} block (if you don't want the inplace to be tracked) or both outside (if you want "
        "the inplace to be tracked).",
        no_grad ? "no_grad" : "inference", what, no_grad ? "with grad mode enabled" : "in normal mode",
        no_grad ? "no_grad" : "inference_mode");
  }
  const std::string maker = m.view->list_op ? short_name(backward_name(*m.view->list_op))
                            : m.grad_fn     ? short_name(m.grad_fn->name())
                                            : "an operator";
  const int number = m.view->list_op ? m.view->list_index : m.output_nr;
  if (origin == ViewOrigin::MultipleOutputs)
    FL_RAISE(RuntimeError,
             "Output {} of {} is a view and {}. This view is the output of a function that returns multiple "
             "views. Such functions do not allow the output views to be modified inplace. You should replace "
             "the inplace operation by an out-of-place one.",
             number, maker, what);
  FL_RAISE(
      RuntimeError,
      "Output {} of {} is a view and {}. This view was created inside a custom Function (or because an "
      "input was returned as-is) and the autograd logic to handle view+inplace would override the custom "
      "backward associated with the custom Function, leading to incorrect gradients. This behavior is "
      "forbidden. You can fix this by cloning the output of the custom Function.",
      number, maker, what);
}

bool is_view(const Tensor& t) { return t.defined() && meta(t) && meta(t)->view; }
Tensor view_base(const Tensor& t) { return is_view(t) ? meta(t)->view->base : Tensor(); }

}  // namespace fl
