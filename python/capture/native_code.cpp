// What the world lets C code do with the objects of the program.
#include <algorithm>

#include "builtins.h"

#if FLAMBEAU_CAPTURE
#include "flambeau/ops/functions.h"
#include "hook.h"
#include "module.h"
#include "world.h"

namespace fl::python::capture {
namespace {

/// Whether a class leaves it to object how it is copied.
bool copies_as_object(PyTypeObject* type, const char* method) {
  const nb::object own = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), method));
  const nb::object base =
      nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), method));
  if (!own.is_valid()) PyErr_Clear();
  return own.is_valid() && own.is(base);
}

// object.__reduce_ex__ of an object from outside: its class and what it holds.
PyObject* reduce_outside(World& w, PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!copies_as_object(type, "__reduce__") || !copies_as_object(type, "__getstate__") ||
      !type->tp_dictoffset)
    return w.stop(fmt::format("copying a {} is not captured", type->tp_name));
  // The first copy of an object of a class leaves a note in the class.
  if (!PyDict_GetItemString(dict_of_type(type), "__slotnames__"))
    return w.stop(fmt::format("the first copy of a {} is not captured", type->tp_name));
  const nb::object state = nb::steal(w.instance_dict(o));
  if (!state.is_valid()) return nullptr;
  static PyObject* make = nb::object(nb::module_::import_("copyreg").attr("__newobj__")).release().ptr();
  const nb::object copy = nb::steal(PyDict_Copy(state.ptr()));
  return Py_BuildValue("(O(O)O)", make, reinterpret_cast<PyObject*>(type), copy.ptr());
}

}  // namespace

bool World::may_use(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (is_opaque(o) || !builtins().is_plain(type)) {
    stop(fmt::format("an operation on a {} is not captured", type->tp_name));
    return false;
  }
  if (is_python_class(type)) guard_type(type);
  // Elements that C code would look into.
  if (!opaque_.empty() && (PyTuple_CheckExact(o) || PyList_CheckExact(o)))
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (is_opaque(PySequence_Fast_GET_ITEM(o, k)) && !may_use(PySequence_Fast_GET_ITEM(o, k))) return false;
  return true;
}

int World::truth(PyObject* o) {
  if (is_opaque(o)) {
    stop(fmt::format("the truth of a {} is not captured", Py_TYPE(o)->tp_name));
    return -1;
  }
  if (is_python_class(Py_TYPE(o))) guard_type(Py_TYPE(o));
  const int r = PyObject_IsTrue(o);
  if (r < 0 || stopped_) checked(nullptr);
  return stopped_ ? -1 : r;
}

PyObject* World::compare_identity(PyObject* a, PyObject* b, bool invert) {
  const bool same = a == b;
  if (!same && place_of(a) >= 0 && place_of(b) >= 0) differ(place_of(a), place_of(b));
  return PyBool_FromLong(same != invert);
}

PyObject* World::subscript(PyObject* o, PyObject* key) {
  if (!may_use(o, key)) return nullptr;
  return operation("getitem", {o, key}, [&] { return checked(PyObject_GetItem(o, key)); });
}

PyObject* World::iterate(PyObject* o) {
  if (!may_use(o)) return nullptr;
  if (!recorder || !as_tensor(o) || as_tensor(o)->dim() == 0) return checked(PyObject_GetIter(o));
  // Graphs have the items one by one.
  nb::list items;
  for (Py_ssize_t k = 0, n = PyObject_Length(o); k < n; ++k) {
    const nb::int_ index(k);
    const nb::object item = nb::steal(subscript(o, index.ptr()));
    if (!item.is_valid()) return nullptr;
    items.append(item);
  }
  return PyErr_Occurred() ? checked(nullptr) : PyObject_GetIter(items.ptr());
}

bool World::may_show(PyObject* o, int depth) {
  if (depth > 16) {
    stop("the text of objects more than 16 deep in one another is not captured");
    return false;
  }
  const auto all = [&](PyObject* elements) {
    nb::object list = nb::steal(PySequence_List(elements));
    if (!list.is_valid()) return false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list.ptr()); ++k)
      if (!may_show(PyList_GET_ITEM(list.ptr(), k), depth + 1)) return false;
    return true;
  };
  if (PyTuple_Check(o) || PyList_Check(o) || PyAnySet_Check(o)) return all(o);
  if (PyDict_CheckExact(o) || PyODict_CheckExact(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!may_show(key, depth + 1) || !may_show(value, depth + 1)) return false;
    return true;
  }
  if (PyExceptionInstance_Check(o)) return all(reinterpret_cast<PyBaseExceptionObject*>(o)->args);
  PyTypeObject* type = Py_TYPE(o);
  if (o == Py_None || o == Py_Ellipsis || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) ||
      PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o) || PyRange_Check(o) || PyType_Check(o) ||
      (PyCFunction_Check(o) && (!PyCFunction_GET_SELF(o) || PyModule_Check(PyCFunction_GET_SELF(o)))) ||
      (Builtins::is_of_library(type) && !as_tensor(o)))
    return true;
  stop(fmt::format("the text of a {}, which may show {}, is not captured", type->tp_name,
                   as_tensor(o) ? "its elements" : "an address"));
  return false;
}

bool World::has_earlier_gradients() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& i) {
    const Tensor* t = as_tensor(i.real);
    return t && t->requires_grad() && !t->is_leaf();
  });
}

bool World::ends_with_code(PyObject* o) {
  if (PyGen_CheckExact(o)) return waits(reinterpret_cast<PyGenObject*>(o));
  static PyObject* finalizer = PyUnicode_InternFromString("__del__");
  if (is_python_class(Py_TYPE(o)) && _PyType_Lookup(Py_TYPE(o), finalizer)) return true;
  if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) || PyType_Check(o)) return false;
  auto* r = *reinterpret_cast<PyWeakReference**>(reinterpret_cast<char*>(o) + Py_TYPE(o)->tp_weaklistoffset);
  for (; r; r = r->wr_next)
    if (r->wr_callback) return true;
  return false;
}

bool World::may_drop(PyObject* o) {
  if (!o || place_of(o) < 0 || !ends_with_code(original(o))) return true;
  stop(fmt::format("dropping a {}, which may run code, is not captured", Py_TYPE(o)->tp_name));
  return false;
}

bool World::may_call(PyObject* f, PyObject* const* args, size_t count) {
  const Builtins& b = builtins();
  PyTypeObject* type = Py_TYPE(f);
  const auto name = [&] {
    nb::object n = nb::steal(PyObject_GetAttrString(f, "__qualname__"));
    PyErr_Clear();
    return n.is_valid() && PyUnicode_Check(n.ptr()) ? std::string(PyUnicode_AsUTF8(n.ptr()))
                                                    : std::string(type->tp_name);
  };
  bool fine = false;
  if (PyType_Check(f)) {
    fine = b.is_plain(reinterpret_cast<PyTypeObject*>(f));
    if (fine && is_python_class(reinterpret_cast<PyTypeObject*>(f))) {
      guard_type(reinterpret_cast<PyTypeObject*>(f));
      // An object of the capture would tell the world when it goes.
      static PyObject* finalizer = PyUnicode_InternFromString("__del__");
      fine = !_PyType_Lookup(reinterpret_cast<PyTypeObject*>(f), finalizer);
    }
    if (fine && is_python_class(type)) guard_type(type);
  } else if (PyCFunction_Check(f)) {
    PyObject* self = PyCFunction_GET_SELF(f);
    fine = b.is_pure(f);
    if (!fine && self && !PyModule_Check(self))
      fine = PyType_Check(self) ? b.is_plain(reinterpret_cast<PyTypeObject*>(self))
                                : !is_opaque(self) && b.is_plain(Py_TYPE(self));
    const std::string n = name();
    if (fine && (n.ends_with("__reduce_ex__") || n.ends_with("__reduce__") || n.ends_with("__dir__") ||
                 n.ends_with("__getstate__")))
      fine = self && place_of(self) < 0 && !is_python_class(Py_TYPE(self));
  } else if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type ||
             type == &PyClassMethodDescr_Type) {
    fine = b.is_plain(reinterpret_cast<PyDescrObject*>(f)->d_type);
    const std::string n = name();
    if (n.ends_with("__reduce_ex__") || n.ends_with("__dir__") || n.ends_with("__getstate__")) fine = false;
    if (n == "type.__setattr__" || n == "type.__delattr__") fine = count > 0 && was_made(args[0]);
  } else if (type == b.method_wrapper) {
    fine = !is_opaque(nb::object(nb::handle(f).attr("__self__")).ptr());
  } else if (Builtins::is_of_library(type)) {
    fine = !b.is_forbidden(f);
    if (fine && Builtins::runs_backward(f) && has_earlier_gradients()) {
      stop("a backward pass through what was computed before the captured part is not captured");
      return false;
    }
  } else if (is_python_class(type)) {
    guard_type(type);
    fine = b.is_plain(type);
  }
  if (!fine) {
    stop(fmt::format("a call of {} is not captured", name()));
    return false;
  }
  if (Builtins::is_named(f, {"__hash__"})) {
    stop("a call of a __hash__ is not captured: call hash() instead");
    return false;
  }
  // What makes text of its arguments or of the object that it is bound to: repr, str.format, object.__str__
  // ... Or of what it hands to one of these: map(str, objects), list.sort(key=str).
  nb::object bound;
  if (type == b.method_wrapper) bound = nb::borrow(nb::handle(f).attr("__self__"));
  if (PyCFunction_Check(f)) bound = nb::borrow(PyCFunction_GET_SELF(f));
  if (bound.is_valid() && PyModule_Check(bound.ptr())) bound.reset();
  // Of the methods of containers only those of lists call what they are given.
  PyTypeObject* owner = bound.is_valid() ? Py_TYPE(bound.ptr()) : nullptr;
  if (type == &PyMethodDescr_Type) owner = reinterpret_cast<PyDescrObject*>(f)->d_type;
  const bool calls_arguments =
      owner ? PyType_IsSubtype(owner, &PyList_Type) != 0 : f != reinterpret_cast<PyObject*>(&PyDict_Type);
  if (Builtins::shows(f) || (calls_arguments && std::any_of(args, args + count, Builtins::shows))) {
    if (bound.is_valid() && !may_show(bound.ptr())) return false;
    for (size_t k = 0; k < count; ++k)
      if (!may_show(args[k])) return false;
  }
  if (count > 0 && as_tensor(args[0]) && place_of(args[0]) >= 0 && Builtins::changes_tensor(f)) {
    stop(fmt::format("{} on a tensor from outside is not captured", name()));
    return false;
  }
  for (size_t k = 0; k < count; ++k) {
    PyObject* a = args[k];
    if (is_opaque(a) &&
        !(PyCFunction_Check(f) && PyCFunction_GET_SELF(f) && PyList_Check(PyCFunction_GET_SELF(f)))) {
      stop(fmt::format("a call of {} with a {} is not captured", name(), Py_TYPE(a)->tp_name));
      return false;
    }
    // A function that the C code may call.
    if ((PyCFunction_Check(a) || Builtins::is_of_library(Py_TYPE(a))) && PyCallable_Check(a) &&
        !as_tensor(a) && !may_call(a, nullptr, 0))
      return false;
    if (!opaque_.empty() && (PyTuple_CheckExact(a) || PyList_CheckExact(a)) && !may_use(a)) return false;
  }
  return true;
}

namespace {

/// x.item(), x.tolist() or float(x) of a tensor with one floating-point element: a number of the graph. Null
/// without an error: no such call.
PyObject* symbolic_element(PyObject* f, PyObject* tensor) {
  const Tensor* t = as_tensor(tensor);
  if (!t || !is_floating(t->dtype()) || !(t->dim() == 0 || f != builtins().to_list)) return nullptr;
  try {
    if (t->numel() != SymInt(1)) return nullptr;
    StateGuard<bool> no_grad(&DispatchState::grad_enabled, false);
    const Tensor value = _to_copy(reshape(fl::detach(*t), IntList()), DType::Float64);
    return symbolic_float(value, {}, std::nullopt).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

}  // namespace

PyObject* World::call(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords) {
  if (positional == 1 && !keywords && !recorder &&
      (f == builtins().item || f == builtins().to_list || f == reinterpret_cast<PyObject*>(&PyFloat_Type))) {
    if (is_sym_float(args[0]) && PyType_Check(f)) return Py_NewRef(args[0]);
    PyObject* number = symbolic_element(f, args[0]);
    if (number || PyErr_Occurred()) return checked(number);
  }
  const size_t total = positional + (keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0);
  PyTypeObject* type = Py_TYPE(f);
  if (type == &PyMethod_Type || type == builtins().method_wrapper) {
    // The function with its self in front.
    const nb::object self = type == &PyMethod_Type ? nb::borrow(PyMethod_GET_SELF(f))
                                                   : nb::borrow(nb::handle(f).attr("__self__"));
    nb::object function = type == &PyMethod_Type ? nb::borrow(PyMethod_GET_FUNCTION(f)) : nb::object();
    if (type == builtins().method_wrapper) {
      const nb::object name = nb::handle(f).attr("__name__");
      static const nb::handle object = reinterpret_cast<PyObject*>(&PyBaseObject_Type);
      const std::string n = text_of(name);
      const bool changes = n == "__setattr__" || n == "__delattr__";
      if (changes && PyType_Check(self.ptr())) return stop(n + " of a class is not captured");
      if (changes || n == "__getattribute__") {
        function = object.attr(name);
      } else {
        return may_call(f, args, total) ? checked(PyObject_Vectorcall(f, args, positional, keywords))
                                        : nullptr;
      }
    }
    const auto run = [&] {
      std::vector<PyObject*> all{self.ptr()};
      all.insert(all.end(), args, args + total);
      return call(function.ptr(), all.data(), positional + 1, keywords);
    };
    const bool has_own_gradient = function.ptr() == builtins().apply;
    return recorder && has_own_gradient ? recorder->record({f, args, positional, keywords}, run, true)
                                        : run();
  }
  if (Intrinsic i = builtins().intrinsic(f)) return i(*this, args, positional, keywords);
  if (PyFunction_Check(f)) {
    const auto run = [&] { return checked(PyObject_Vectorcall(f, args, positional, keywords)); };
    return recorder && builtins().is_functional(f) ? recorder->record({f, args, positional, keywords}, run)
                                                   : run();
  }
  if (type == builtins().partial) {
    const nb::object inner = nb::handle(f).attr("func"), first = nb::handle(f).attr("args");
    const nb::object values = nb::handle(f).attr("keywords").attr("values")();
    std::vector<PyObject*> all;
    for (nb::handle a : first) all.push_back(a.ptr());
    for (nb::handle a : values) all.push_back(a.ptr());
    all.insert(all.end(), args, args + total);
    if (!PyFunction_Check(inner.ptr()) && !PyMethod_Check(inner.ptr()) &&
        !may_call(inner.ptr(), all.data(), all.size()))
      return nullptr;
    return checked(PyObject_Vectorcall(f, args, positional, keywords));
  }
  if (PyCFunction_Check(f) && total == 1 && PyCFunction_GET_SELF(f) &&
      is_python_class(Py_TYPE(PyCFunction_GET_SELF(f))) && place_of(PyCFunction_GET_SELF(f)) >= 0 &&
      !strcmp(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name, "__reduce_ex__"))
    return reduce_outside(*this, PyCFunction_GET_SELF(f));
  if (type == &PyStaticMethod_Type) {
    const nb::object inner = nb::handle(f).attr("__func__");
    return call(inner.ptr(), args, positional, keywords);
  }
  if (type == builtins().lru_cache) return call_cached(f, args, positional, keywords);
  if (!may_call(f, args, total)) return nullptr;
  const auto run = [&] { return call_native(f, args, positional, keywords); };
  const bool in_python =
      is_python_class(type) || (PyType_Check(f) && is_python_class(reinterpret_cast<PyTypeObject*>(f)));
  const bool whole = Builtins::is_of_library(type) && !Builtins::is_question(f);
  return recorder && !in_python ? recorder->record({f, args, positional, keywords}, run, whole) : run();
}

PyObject* World::call_native(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords) {
  PyTypeObject* type = Py_TYPE(f);
  PyObject* result = checked(PyObject_Vectorcall(f, args, positional, keywords));
  // A tensor with elements that the call made would be shared by all runs.
  if (result && Builtins::is_of_library(type)) {
    const Tensor* t = as_tensor(result);
    if (t && t->defined() && t->has_data() && place_of(result) < 0) {
      const Tensor copy = fl::clone(*t);
      Py_DECREF(result);
      result = fl::python::wrap(copy).release().ptr();
    }
  }
  // A new class or function is another one in each run.
  if (result && (f == builtins().build_class ||
                 (PyType_Check(f) && (PyType_Check(result) || PyFunction_Check(result)))))
    note_made(result);
  return result;
}

}  // namespace fl::python::capture
#endif
