// What the capture sees of dicts from outside.
#include "world.h"

#if FLAMBEAU_CAPTURE
#include "builtins.h"

namespace fl::python::capture {
namespace {

PyObject* type_object(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)); }

bool has_tensor_key(PyObject* dict) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    if (as_tensor(nb::handle(key))) return true;
  return false;
}

}  // namespace

PyObject* World::wrap_dict(PyObject* real, int at) {
  const nb::object shadow = nb::steal(empty_like(real, builtin_base(Py_TYPE(real))));
  if (!shadow.is_valid()) return nullptr;
  Py_DECREF(remember(real, shadow.ptr(), at));
  const size_t index = shadows_.size() - 1;
  const bool ordered = PyODict_Check(real);
  if (!ordered && has_tensor_key(real)) return wrap_dict_of_tensors(real, shadow.ptr(), at);
  const nb::list keys;
  const nb::object iterator = nb::steal(ordered ? PyODict_Type.tp_iter(real) : PyDict_Type.tp_iter(real));
  while (PyObject* key = PyIter_Next(iterator.ptr())) {
    PyList_Append(keys.ptr(), key);
    Py_DECREF(key);
  }
  const nb::object expected = nb::steal(PyTuple_New(PyList_GET_SIZE(keys.ptr()) + 1));
  PyTuple_SET_ITEM(expected.ptr(), 0, Py_NewRef(type_object(real)));
  const nb::dict before;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(keys.ptr()); ++k) {
    PyObject* key = PyList_GET_ITEM(keys.ptr(), k);
    PyTuple_SET_ITEM(expected.ptr(), k + 1, Py_NewRef(key));
    if (!wrap_key(key, at, k)) return nullptr;
    PyObject* value = PyDict_GetItemWithError(real, key);
    if (!value) return PyErr_Occurred() ? nullptr : stop("a dict changed while it was read");
    const bool by_key = compares_in_c(key);
    if (!by_key && ordered)
      return stop(fmt::format("an OrderedDict with a {} as a key is not captured", Py_TYPE(key)->tp_name));
    const nb::object item = nb::steal(
        wrap(value, by_key ? place(Step::DictItem, at, key) : place(Step::DictValue, at, nullptr, k)));
    if (!item.is_valid()) return nullptr;
    if ((ordered ? PyODict_SetItem(shadow.ptr(), key, item.ptr())
                 : PyDict_SetItem(shadow.ptr(), key, item.ptr())) < 0 ||
        PyDict_SetItem(before.ptr(), key, item.ptr()) < 0)
      return nullptr;
  }
  expect(at, Check::Keys, expected.ptr());
  shadows_[index].before = before;
  return wrap_factory(real, shadow.ptr(), at) ? Py_NewRef(shadow.ptr()) : nullptr;
}

bool World::wrap_factory(PyObject* real, PyObject* shadow, int at) {
  if (builtin_base(Py_TYPE(real)) != builtins().default_dict) return true;
  const nb::object factory = nb::handle(real).attr("default_factory");
  // The factory is a member of the C struct: its place is the object itself.
  if (!factory.is_none() && !PyType_Check(factory.ptr()) && !PyFunction_Check(factory.ptr()))
    return stop("a defaultdict whose factory is neither a class nor a function is not captured") != nullptr;
  expect(place(Step::Slot, at, builtins().default_factory.ptr()), Check::Identity, factory.ptr());
  nb::handle(shadow).attr("default_factory") = factory;
  return true;
}

// Keys are tensors from outside like others, so that the guards hold none of them.
PyObject* World::wrap_dict_of_tensors(PyObject* real, PyObject* shadow, int at) {
  const size_t index = shadow_index_.at(real);
  expect(at, Check::Length, type_object(real), PyDict_GET_SIZE(real));
  const nb::dict before;
  PyObject *key, *value;
  for (Py_ssize_t next = 0, entry = 0; PyDict_Next(real, &next, &key, &value); entry = next) {
    if (!as_tensor(nb::handle(key)) && !compares_in_c(key))
      return stop(fmt::format("a dict with tensors and a {} as keys is not captured", Py_TYPE(key)->tp_name));
    const nb::object seen = nb::steal(wrap(key, place(Step::DictKeyAt, at, nullptr, entry)));
    if (!seen.is_valid()) return nullptr;
    const nb::object item = nb::steal(wrap(value, place(Step::DictValueAt, at, nullptr, entry)));
    if (!item.is_valid() || PyDict_SetItem(shadow, seen.ptr(), item.ptr()) < 0 ||
        PyDict_SetItem(before.ptr(), seen.ptr(), item.ptr()) < 0)
      return nullptr;
  }
  shadows_[index].before = before;
  return wrap_factory(real, shadow, at) ? Py_NewRef(shadow) : nullptr;
}

}  // namespace fl::python::capture
#endif
