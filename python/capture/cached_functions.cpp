// Functions under functools.cache and lru_cache.
#include "builtins.h"
#include "hook.h"
#include "region.h"
#include "world.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {
namespace {

/// A value that can't be told from another equal one, but for its identity.
bool is_atom(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); ++k)
      if (!is_atom(PyTuple_GET_ITEM(o, k))) return false;
    return true;
  }
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyType_Check(o) ||
         (builtins().is_constant(o) && !as_tensor(o)) || builtins().is_enumeration(o);
}

/// The contents of a shadow, as a number.
size_t contents(PyObject* o) {
  if (PyDict_Check(o)) return version_of_dict(o);
  size_t h = 0;
  const auto add = [&](PyObject* item) {
    h = (h ^ reinterpret_cast<size_t>(item)) * 0x9E3779B97F4A7C15U + 1;
  };
  if (PyCell_Check(o)) {
    add(PyCell_GET(o));
  } else if (PyList_Check(o)) {
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(o); ++k) add(PyList_GET_ITEM(o, k));
  } else if (PySet_Check(o) || PyObject_TypeCheck(o, builtins().deque)) {
    const nb::object all = nb::steal((PySet_Check(o) ? &PySet_Type : builtins().deque)->tp_iter(o));
    while (PyObject* item = PyIter_Next(all.ptr())) {
      add(item);
      Py_DECREF(item);
    }
  }
  return h;
}

}  // namespace

std::vector<size_t> World::state(size_t shadows) const {
  std::vector<size_t> out;
  for (size_t k = 0; k < shadows; ++k)
    out.push_back(shadows_[k].real == shadows_[k].shadow ? 0 : contents(shadows_[k].shadow));
  for (const Overlay& o : overlays_) out.push_back(version_of_dict(o.changes));
  return out;
}

// The function below the cache runs in the capture, so that what it reads is guarded. If it changes nothing,
// then whether it runs or not makes no difference but for its result, and that has to be the cached one.
PyObject* World::call_cached(PyObject* f, PyObject* const* args, size_t positional, PyObject* keywords) {
  const size_t total = positional + (keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0);
  const auto give_up = [&](const char* why) {
    return stop(fmt::format("a call of a function under functools.lru_cache {} is not captured", why));
  };
  std::vector<nb::object> owned;
  std::vector<PyObject*> given{nullptr};
  nb::list key;
  key.append(nb::handle(f));
  if (keywords) key.append(nb::handle(keywords));
  for (size_t k = 0; k < total; ++k) {
    owned.push_back(is_sym_int(args[k]) ? nb::steal(checked(PyNumber_Long(args[k]))) : nb::borrow(args[k]));
    PyObject* a = owned.back().ptr();
    if (!a) return nullptr;
    const bool is_object = place_of(a) >= 0 && original(a) == a && compares_in_c(a) && !as_tensor(a);
    if (!is_atom(a) && !is_object) return give_up("with arguments that are more than numbers and text");
    given.push_back(a);
    key.append(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(a))));
    key.append(nb::handle(a));
  }
  const nb::tuple index(key);
  if (PyObject* known = PyDict_GetItemWithError(cached_results_.ptr(), index.ptr())) return Py_NewRef(known);
  if (PyErr_Occurred()) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("__wrapped__");
  const nb::object inner = nb::steal(PyObject_GetAttr(f, name));
  if (!inner.is_valid() || !PyFunction_Check(inner.ptr())) {
    PyErr_Clear();
    return give_up("of something else");
  }
  const size_t shadows = shadows_.size(), overlays = overlays_.size();
  const std::vector<size_t> before = state(shadows);
  const Modes modes = Modes::now();
  const nb::object here = nb::steal(call(inner.ptr(), given.data() + 1, positional, keywords));
  if (!here.is_valid()) return nullptr;
  bool pure = is_atom(here.ptr()) && overlays == overlays_.size() && before == state(shadows) &&
              modes == Modes::now();
  for (size_t k = shadows; pure && k < shadows_.size(); ++k) pure = !is_changed(shadows_[k]);
  if (!pure) return give_up("that gives an object or changes something");
  const nb::object cached = nb::steal(call_outside(f, given.data() + 1, positional, keywords));
  if (!cached.is_valid()) PyErr_Clear();
  if (!cached.is_valid() || !same_value(here.ptr(), cached.ptr()))
    return give_up("that gave something else before");
  PyDict_SetItem(cached_results_.ptr(), index.ptr(), cached.ptr());
  cached_.insert(cached.ptr());
  return Py_NewRef(cached.ptr());
}

}  // namespace fl::python::capture
#endif
