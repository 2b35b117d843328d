#include "torch_function.h"

#include <algorithm>

#include "object.h"

#include "module.h"

namespace fl::python {
namespace {

/// Of this thread: the modes, innermost last, and what is switched off.
struct State {
  std::vector<PyObject*> modes;
  bool subclasses_off = false;
  bool all_off = false;
};
State& state() {
  thread_local State s;
  return s;
}
PyObject* disabled_function = nullptr;  ///< as class attribute: the class takes no part
PyObject* device_mode = nullptr;        ///< the class of the modes that give a default device
PyObject* attribute_name = nullptr;

/// The __torch_function__ that a class defines; null if it takes no part. Borrowed.
PyObject* own_function(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (type == tensor_type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
      type == &PyUnicode_Type || type == &PyTuple_Type || type == &PyList_Type || value == Py_None)
    return nullptr;
  PyObject* found = _PyType_Lookup(type, attribute_name);
  return found == disabled_function ? nullptr : found;
}

template <class F>
void each_value(const CallArguments& call, F&& f) {
  const size_t count = call.positional + call.keyword_count();
  for (size_t k = 0; k < count; ++k) {
    PyObject* v = call.values[k];
    if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) f(PySequence_Fast_GET_ITEM(v, i));
    } else {
      f(v);
    }
  }
}

/// One value of each class that takes part: subclasses before their bases, else from left to right.
std::vector<PyObject*> overloaded(const CallArguments& call) {
  std::vector<PyObject*> out;
  if (state().subclasses_off) return out;
  each_value(call, [&](PyObject* v) {
    if (!own_function(v)) return;
    for (PyObject* known : out)
      if (Py_TYPE(known) == Py_TYPE(v)) return;
    auto at = out.begin();
    while (at != out.end() && !PyType_IsSubtype(Py_TYPE(v), Py_TYPE(*at))) ++at;
    out.insert(at, v);
  });
  return out;
}

/// Takes the innermost mode away while it answers.
class ModeScope {
 public:
  ModeScope() : mode_(state().modes.back()) { state().modes.pop_back(); }
  ~ModeScope() { state().modes.push_back(mode_); }
  nb::handle mode() const { return mode_; }

 private:
  PyObject* mode_;
};

[[noreturn]] void raise_declined(nb::handle function, const std::vector<PyObject*>& values) {
  std::string types;
  for (PyObject* v : values) types += (types.empty() ? "" : ", ") + python_type(v);
  FL_RAISE(TypeError, "no implementation found for '{}' on types that implement __torch_function__: [{}]",
           text_of(nb::repr(function)), types);
}

/// Asks the innermost mode, then the values.
nb::object ask(nb::handle function, const std::vector<PyObject*>& values, nb::handle args,
               nb::handle kwargs) {
  nb::list type_list;
  for (PyObject* v : values) type_list.append(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(v))));
  const nb::tuple types(type_list);
  const auto answer = [&](nb::handle who) {
    return nb::object(who.attr("__torch_function__")(function, types, args, kwargs));
  };
  if (!state().modes.empty()) {
    const ModeScope scope;
    nb::object result = answer(scope.mode());
    if (result.ptr() != Py_NotImplemented) return result;
  }
  for (PyObject* v : values) {
    nb::object result = answer(v);
    if (result.ptr() != Py_NotImplemented) return result;
  }
  raise_declined(function, values);
}

CallArguments as_arguments(const nb::tuple& values) {
  return {&PyTuple_GET_ITEM(values.ptr(), 0), static_cast<size_t>(PyTuple_GET_SIZE(values.ptr())), nullptr};
}

/// Calls the function itself, blind to classes that take part.
nb::object call_disabled(nb::handle function, nb::handle, nb::handle args, nb::handle kwargs) {
  struct Restore {
    bool before = std::exchange(state().subclasses_off, true);
    ~Restore() { state().subclasses_off = before; }
  } restore;
  const nb::tuple positional(args);
  nb::object result =
      nb::steal(PyObject_Call(function.ptr(), positional.ptr(), kwargs.is_none() ? nullptr : kwargs.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace

bool has_torch_function(PyObject* value) {
  const State& s = state();
  if (s.all_off) return false;
  return !s.modes.empty() || (!s.subclasses_off && own_function(value));
}

bool functions_are_overridden() {
  const State& s = state();
  return s.subclasses_off || s.all_off || std::any_of(s.modes.begin(), s.modes.end(), [](PyObject* mode) {
           return reinterpret_cast<PyObject*>(Py_TYPE(mode)) != device_mode;
         });
}

std::optional<Device> default_device() {
  const State& s = state();
  if (s.modes.empty()) return {};
  return as_device(nb::handle(s.modes.back()).attr("device"));
}

bool has_torch_function(const CallArguments& call) {
  const State& s = state();
  if (s.all_off) return false;
  if (!s.modes.empty()) return true;
  if (s.subclasses_off) return false;
  bool found = false;
  each_value(call, [&](PyObject* v) { found = found || own_function(v); });
  return found;
}

nb::object handle_torch_function(nb::handle function, const CallArguments& call) {
  nb::list args;
  nb::dict kwargs;
  for (size_t k = 0; k < call.positional; ++k) args.append(nb::handle(call.values[k]));
  for (size_t k = 0; k < call.keyword_count(); ++k)
    kwargs[nb::handle(PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(k)))] =
        nb::handle(call.values[call.positional + k]);
  return ask(function, overloaded(call), nb::tuple(args), kwargs);
}

nb::object handle_property(const char* name, const char* how, PyObject* self, PyObject* value) {
  const nb::object property = nb::handle(reinterpret_cast<PyObject*>(tensor_type)).attr(name);
  PyObject* values[] = {self, value};
  return handle_torch_function(property.attr(how), {values, value ? 2u : 1u, nullptr});
}

void bind_torch_function(nb::module_& m) {
  attribute_name = PyUnicode_InternFromString("__torch_function__");
  m.def("_disabled_torch_function_impl", call_disabled, nb::arg("func"), nb::arg("types"),
        nb::arg("args") = nb::tuple(), nb::arg("kwargs") = nb::none());
  disabled_function = nb::object(m.attr("_disabled_torch_function_impl")).release().ptr();
  // Each sets and returns what was before; the scopes are Python's.
  m.def("_set_torch_function_subclasses_off",
        [](bool off) { return std::exchange(state().subclasses_off, off); });
  m.def("_set_torch_function_all_off", [](bool off) { return std::exchange(state().all_off, off); });
  m.def("_set_device_mode", [](nb::object type) { device_mode = type.release().ptr(); });
  m.def("_is_torch_function_enabled", [] { return !state().subclasses_off && !state().all_off; });
  m.def("_is_torch_function_all_disabled", [] { return state().all_off; });
  m.def("_push_torch_function_mode", [](nb::object mode) { state().modes.push_back(mode.release().ptr()); });
  m.def("_pop_torch_function_mode", [] {
    FL_CHECK(!state().modes.empty(), RuntimeError, "no TorchFunctionMode is on");
    PyObject* mode = state().modes.back();
    state().modes.pop_back();
    return nb::steal(mode);
  });
  m.def("_torch_function_modes", [] {
    nb::list out;
    for (PyObject* mode : state().modes) out.append(nb::handle(mode));
    return out;
  });
  m.def("_has_torch_function",
        [](nb::handle values) { return has_torch_function(as_arguments(nb::tuple(values))); });
  // Only the relevant arguments are asked, but all are handed on.
  m.def("_handle_torch_function",
        [](nb::handle function, nb::handle relevant, nb::tuple args, nb::dict kwargs) {
          return ask(function, overloaded(as_arguments(nb::tuple(relevant))), args, kwargs);
        });
}

}  // namespace fl::python
