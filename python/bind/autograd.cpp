// Gradients from Python.
#include "flambeau/autograd/autograd.h"

#include <nanobind/stl/optional.h>

#include "flambeau/tensor/print.h"
#include "module.h"

namespace fl::python {
namespace {

struct NodeObject {
  Ref<Node> node;
};
struct HookHandleObject {
  HookHandle handle;
};

Tensors tensors_of(nb::handle h, const char* where) {
  if (const Tensor* t = as_tensor(h)) return {*t};
  FL_CHECK(PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()), TypeError,
           "{}: expected a Tensor or a sequence of them, got {}", where, python_type(h));
  Tensors out;
  for (nb::handle item : h) out.push_back(item.is_none() ? Tensor() : expect_tensor(item, where));
  return out;
}

Tensors optional_tensors(nb::handle h, const char* where) {
  return h.is_none() ? Tensors{} : tensors_of(h, where);
}

void run_backward(const Tensors& tensors, nb::handle gradients, std::optional<bool> retain_graph,
                  bool create_graph, nb::handle inputs) {
  const Tensors given = optional_tensors(gradients, "backward()");
  const auto wanted = inputs.is_none() ? std::nullopt : std::optional(tensors_of(inputs, "backward()"));
  nb::gil_scoped_release unlocked;
  backward(tensors, given, {retain_graph, create_graph}, wanted);
}

GradHook hook_of(nb::object function) {
  return [shared = shared_object(std::move(function))](const Tensor& gradient) {
    nb::gil_scoped_acquire locked;
    const nb::object result = (*shared)(wrap(gradient));
    return result.is_none() ? Tensor() : expect_tensor(result, "a gradient hook's result");
  };
}

std::string print_suffix(const Tensor& t) {
  if (const Ref<Node> node = grad_fn(t)) return fmt::format("grad_fn=<{}>", node->name());
  return t.requires_grad() ? "requires_grad=True" : "";
}

void bind_gradients(nb::class_<TensorObject>& c) {
  using Self = TensorObject&;
  c.def_prop_rw(
       "requires_grad", [](Self s) { return s.tensor.requires_grad(); },
       [](Self s, bool value) { s.tensor.set_requires_grad(value); })
      .def(
          "requires_grad_",
          [](nb::object self, bool value) {
            nb::cast<Self>(self).tensor.set_requires_grad(value);
            return self;
          },
          nb::arg("requires_grad") = true)
      .def_prop_rw(
          "grad", [](Self s) { return wrap(s.tensor.grad()); },
          [](Self s, nb::handle g) { s.tensor.set_grad(g.is_none() ? Tensor() : expect_tensor(g, "grad")); },
          nb::for_setter(nb::arg().none()))
      .def_prop_ro("is_leaf", [](Self s) { return s.tensor.is_leaf(); })
      .def_prop_ro("grad_fn",
                   [](Self s) -> nb::object {
                     const Ref<Node> node = grad_fn(s.tensor);
                     if (!node) return nb::none();
                     return nb::cast(NodeObject{node});
                   })
      .def_prop_ro("_version", [](Self s) { return version(s.tensor); })
      .def("_is_view", [](Self s) { return is_view(s.tensor); })
      .def_prop_ro("_base", [](Self s) { return wrap(view_base(s.tensor)); })
      .def("retain_grad", [](Self s) { retain_grad(s.tensor); })
      .def_prop_ro("retains_grad", [](Self s) { return retains_grad(s.tensor); })
      .def("register_hook",
           [](Self s, nb::object hook) {
             return HookHandleObject{register_hook(s.tensor, hook_of(std::move(hook)))};
           })
      .def(
          "backward",
          [](Self s, nb::object gradient, std::optional<bool> retain_graph, bool create_graph,
             nb::object inputs) { run_backward({s.tensor}, gradient, retain_graph, create_graph, inputs); },
          nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = nb::none(),
          nb::arg("create_graph") = false, nb::arg("inputs") = nb::none());
}

}  // namespace

void bind_autograd(nb::module_& m) {
  set_print_suffix(print_suffix);
  nb::class_<NodeObject>(m, "Node")
      .def("name", [](NodeObject& n) { return nb::str(n.node->name().c_str()); })
      .def("__repr__", [](NodeObject& n) { return nb::str(fmt::format("<{}>", n.node->name()).c_str()); });
  nb::class_<HookHandleObject>(m, "HookHandle").def("remove", [](HookHandleObject& h) { h.handle.remove(); });
  auto c = nb::borrow<nb::class_<TensorObject>>(m.attr("Tensor"));
  bind_gradients(c);
  m.def(
      "_backward",
      [](nb::handle tensors, nb::object gradients, std::optional<bool> retain_graph, bool create_graph,
         nb::object inputs) {
        run_backward(tensors_of(tensors, "backward()"), gradients, retain_graph, create_graph, inputs);
      },
      nb::arg("tensors"), nb::arg("grad_tensors") = nb::none(), nb::arg("retain_graph") = nb::none(),
      nb::arg("create_graph") = false, nb::arg("inputs") = nb::none());
  m.def(
      "_grad",
      [](nb::handle outputs, nb::handle inputs, nb::object grad_outputs, std::optional<bool> retain_graph,
         bool create_graph, bool allow_unused) {
        const Tensors of = tensors_of(outputs, "grad()"), by = tensors_of(inputs, "grad()");
        const Tensors given = optional_tensors(grad_outputs, "grad()");
        Tensors out;
        {
          nb::gil_scoped_release unlocked;
          out = grad(of, by, given, {retain_graph, create_graph}, allow_unused);
        }
        return wrap(out);
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(),
      nb::arg("retain_graph") = nb::none(), nb::arg("create_graph") = false, nb::arg("allow_unused") = false);
  m.def("is_grad_enabled", [] { return dispatch_state().grad_enabled; });
  m.def("is_inference_mode_enabled", [] { return dispatch_state().inference; });
  // The modes' scopes are Python's; these set and return the mode before.
  m.def("_set_grad_enabled", [](bool on) { return std::exchange(dispatch_state().grad_enabled, on); });
  m.def("_set_inference", [](bool on) { return std::exchange(dispatch_state().inference, on); });
}

}  // namespace fl::python
