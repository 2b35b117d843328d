// autograd.Function: forward and backward in Python.
#include "flambeau/autograd/function.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "hooks.h"
#include "module.h"

namespace fl::python {
namespace {

/// The link from a ctx of Python to its node, which holds the ctx.
struct FunctionState {
  std::shared_ptr<FunctionCtx*> ctx;
};

const FunctionCtx& running(const FunctionState& s) {
  FL_CHECK(
      s.ctx && *s.ctx, RuntimeError,
      "the tensors that a Function saved belong to a call that was not recorded, or whose graph is gone");
  return **s.ctx;
}

Tensors attribute_tensors(nb::handle ctx, const char* name) { return tensors_of(ctx.attr(name), name); }

/// Runs ctx's forward: a list of output tensors. What ctx was told goes to the C++ side.
Tensors run_forward(nb::handle forward, nb::handle ctx, FunctionCtx& c) {
  Tensors outputs = tensors_of(forward(), "a Function's forward");
  c.save_for_backward(attribute_tensors(ctx, "_to_save"));
  c.mark_dirty(attribute_tensors(ctx, "_dirty"));
  c.mark_non_differentiable(attribute_tensors(ctx, "_non_differentiable"));
  c.set_materialize_grads(nb::cast<bool>(ctx.attr("_materialize_grads")));
  return outputs;
}

nb::object apply(const std::string& name, nb::object ctx, nb::object forward, nb::handle inputs,
                 bool once_differentiable) {
  const Tensors tensors = tensors_of(inputs, "a Function's arguments");
  const auto shared_ctx = shared_object(ctx);
  const auto link = std::make_shared<FunctionCtx*>(nullptr);
  ctx.attr("_state") = nb::cast(FunctionState{link});
  FunctionSpec spec;
  spec.name = name;
  spec.once_differentiable = once_differentiable;
  spec.forward = [&](FunctionCtx& c) {
    c.object = shared_ctx;
    c.self = link;
    return run_forward(forward, ctx, c);
  };
  spec.backward = [](FunctionCtx& c, Tensors grads) {
    nb::gil_scoped_acquire locked;
    const auto& held = std::any_cast<const std::shared_ptr<nb::object>&>(c.object);
    return tensors_of(held->attr("_run_backward")(*held, wrap(grads)), "a Function's backward");
  };
  return wrap(apply_function(std::move(spec), tensors));
}

}  // namespace

int visit_node(Node& node, visitproc visit, void* arg) {
  const FunctionCtx* ctx = function_ctx(node);
  const auto* held = ctx ? std::any_cast<std::shared_ptr<nb::object>>(&ctx->object) : nullptr;
  if (held && held->use_count() == 1) Py_VISIT((*held)->ptr());
  return 0;
}

void bind_functions(nb::module_& m) {
  nb::class_<FunctionState>(m, "_FunctionState")
      .def("saved", [](const FunctionState& s) { return wrap(running(s).saved()); })
      .def("is_recorded", [](const FunctionState& s) { return s.ctx && *s.ctx; })
      .def("needs_input_grad", [](const FunctionState& s, int i) { return running(s).needs_input_grad(i); });
  m.def("_apply_function", apply);
}

}  // namespace fl::python
