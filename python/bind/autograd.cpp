// Gradients from Python: backward, grad, modes, hooks on tensors.
#include "flambeau/autograd/autograd.h"

#include <nanobind/stl/optional.h>

#include "flambeau/autograd/foreign_gradient.h"
#include "flambeau/autograd/meta.h"
#include "flambeau/autograd/saved_tensor_hooks.h"
#include "flambeau/tensor/print.h"
#include "hooks.h"
#include "module.h"

namespace fl::python {
namespace {

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

std::string print_suffix(const Tensor& t) {
  if (const Ref<Node> node = grad_fn(t)) return fmt::format("grad_fn=<{}>", node->name());
  return t.requires_grad() ? "requires_grad=True" : "";
}

}  // namespace

bool saved_tensors_are_hooked() { return fl::saved_tensors_are_hooked(); }

namespace {

void push_saved_tensor_hooks(nb::object pack, nb::object unpack) {
  auto pack_shared = shared_object(std::move(pack)), unpack_shared = shared_object(std::move(unpack));
  fl::push_saved_tensor_hooks(
      [pack_shared](const Tensor& t) -> std::any {
        nb::gil_scoped_acquire locked;
        return shared_object((*pack_shared)(wrap(t)));
      },
      [unpack_shared](const std::any& packed) {
        nb::gil_scoped_acquire locked;
        const nb::object t = (*unpack_shared)(*std::any_cast<const std::shared_ptr<nb::object>&>(packed));
        return expect_tensor(t, "the result of a saved tensor's unpack hook");
      });
}

// Classes of tensors that have no elements of their own say how their gradients are added up.
constexpr const char* kSumOfGradients = "_sum_of_gradients";

bool is_object_gradient(const Tensor& gradient) {
  nb::gil_scoped_acquire locked;
  auto* object = static_cast<PyObject*>(gradient.impl()->python);
  return object && !is_exact_tensor(object) && PyObject_HasAttrString(object, kSumOfGradients);
}

Tensor sum_of_gradients(const Tensor& a, const Tensor& b) {
  nb::gil_scoped_acquire locked;
  const nb::object first = wrap(a), second = wrap(b);
  const nb::object of = is_foreign_gradient(b) ? second : first;
  return expect_tensor(of.attr(kSumOfGradients)(first, second), "a sum of gradients");
}

void bind_tensor_methods() {
  TensorMethods()
      .def(
          "requires_grad_",
          [](nb::object self, bool value) {
            Tensor(*as_tensor(self)).set_requires_grad(value);
            return self;
          },
          nb::arg("requires_grad") = true)
      .def("_is_view", [](const Tensor& t) { return is_view(t); })
      .def("_detach_in_place", [](const Tensor& t) { detach_in_place(t); })
      .def("_bump_version", [](const Tensor& t) { t.storage()->bump_version(); })
      .def("retain_grad", [](const Tensor& t) { retain_grad(t); })
      .def("register_hook",
           [](const Tensor& t, nb::object hook) {
             return HookHandleObject{register_hook(t, PythonGradHook{shared_object(std::move(hook))})};
           })
      .def("register_post_accumulate_grad_hook",
           [](const Tensor& t, nb::object hook) {
             return HookHandleObject{register_post_accumulate_grad_hook(
                 t, [shared = shared_object(std::move(hook))](const Tensor& leaf) {
                   nb::gil_scoped_acquire locked;
                   (*shared)(wrap(leaf));
                 })};
           })
      .def(
          "backward",
          [](const Tensor& t, nb::object gradient, std::optional<bool> retain_graph, bool create_graph,
             nb::object inputs) { run_backward({t}, gradient, retain_graph, create_graph, inputs); },
          nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = nb::none(),
          nb::arg("create_graph") = false, nb::arg("inputs") = nb::none());
}

}  // namespace

Tensors tensors_of(nb::handle h, const char* where) {
  if (const Tensor* t = as_tensor(h)) return {*t};
  Tensors out;
  const nb::object items = nb::steal(PySequence_Fast(h.ptr(), ""));
  if (!items.is_valid()) PyErr_Clear();
  FL_CHECK(items.is_valid() && !PyUnicode_Check(h.ptr()), TypeError,
           "{}: expected a Tensor or a sequence of them, got {}", where, python_type(h));
  for (nb::handle item : items) out.push_back(item.is_none() ? Tensor() : expect_tensor(item, where));
  return out;
}

Tensor PythonGradHook::operator()(const Tensor& gradient) const {
  nb::gil_scoped_acquire locked;
  const nb::object result = (*function)(wrap(gradient));
  return result.is_none() ? Tensor() : expect_tensor(result, "a gradient hook's result");
}

void bind_autograd(nb::module_& m) {
  set_print_suffix(print_suffix);
  install_foreign_gradients({is_object_gradient, sum_of_gradients});
  nb::class_<HookHandleObject>(m, "HookHandle")
      .def("remove", [](HookHandleObject& h) { h.handle.remove(); })
      .def("__enter__", [](nb::object h) { return h; })
      .def("__exit__", [](HookHandleObject& h, nb::args) { h.handle.remove(); });
  bind_tensor_methods();
  bind_nodes(m);
  bind_functions(m);
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
  m.def("_push_saved_tensor_hooks", push_saved_tensor_hooks);
  m.def("_pop_saved_tensor_hooks", pop_saved_tensor_hooks);
}

}  // namespace fl::python
