// Size: the tuple of a tensor's sizes.
#include "flambeau/op/value.h"
#include "module.h"

namespace fl::python {
namespace {

PyTypeObject* size_type = nullptr;

/// A Size with the items of a tuple; takes over nothing. Keeps the tuple's errors.
PyObject* from_tuple(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* out = size_type->tp_alloc(size_type, n);
  for (Py_ssize_t k = 0; out && k < n; ++k) PyTuple_SET_ITEM(out, k, Py_NewRef(PyTuple_GET_ITEM(tuple, k)));
  Py_DECREF(tuple);
  return out;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* out = PyTuple_Type.tp_new(type, args, keywords);
  for (Py_ssize_t k = 0; out && k < PyTuple_GET_SIZE(out); ++k) {
    PyObject* item = PyTuple_GET_ITEM(out, k);
    if (PyLong_Check(item) || Py_TYPE(item) == sym_int_type) continue;
    PyObject* number = PyIndex_Check(item) ? PyNumber_Index(item) : nullptr;
    if (!number) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", k,
                   Py_TYPE(item)->tp_name);
      Py_DECREF(out);
      return nullptr;
    }
    PyTuple_SET_ITEM(out, k, number);
    Py_DECREF(item);
  }
  return out;
}

PyObject* repr(PyObject* self) {
  std::string text;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(self); ++k) {
    const long long item = PyLong_AsLongLong(PyTuple_GET_ITEM(self, k));
    if (item == -1 && PyErr_Occurred()) return nullptr;
    text += fmt::format("{}{}", k ? ", " : "", item);
  }
  return PyUnicode_FromFormat("torch.Size([%s])", text.c_str());
}

PyObject* concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not \"%s\") to torch.Size",
                 Py_TYPE(b)->tp_name);
    return nullptr;
  }
  return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
/// A tuple and a Size too.
PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) return Py_NewRef(Py_NotImplemented);
  return concat(a, b);
}
PyObject* repeat(PyObject* self, Py_ssize_t n) {
  return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}
PyObject* subscript(PyObject* self, PyObject* index) {
  PyObject* out = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? from_tuple(out) : out;
}

PyObject* numel(PyObject* self, PyObject*) {
  PyObject* n = PyLong_FromLong(1);
  for (Py_ssize_t k = 0; n && k < PyTuple_GET_SIZE(self); ++k) {
    PyObject* product = PyNumber_Multiply(n, PyTuple_GET_ITEM(self, k));
    Py_DECREF(n);
    n = product;
  }
  return n;
}
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* items = PySequence_Tuple(self);
  PyObject* plain = items ? PyTuple_GetSlice(items, 0, PyTuple_GET_SIZE(items)) : nullptr;
  Py_XDECREF(items);
  PyObject* list = plain ? PySequence_List(plain) : nullptr;
  Py_XDECREF(plain);
  return list ? Py_BuildValue("(O(N))", size_type, list) : nullptr;
}

}  // namespace

nb::object size_object(IntList sizes) {
  const auto n = static_cast<Py_ssize_t>(sizes.size());
  nb::object out = nb::steal(size_type->tp_alloc(size_type, n));
  if (!out.is_valid()) throw nb::python_error();
  for (Py_ssize_t k = 0; k < n; ++k)
    PyTuple_SET_ITEM(out.ptr(), k, integer(sizes[static_cast<size_t>(k)]).release().ptr());
  return out;
}

PyTypeObject* make_size_type() {
  static PyMethodDef methods[] = {{"numel", numel, METH_NOARGS, "The number of elements of such a tensor."},
                                  {"__reduce__", reduce, METH_NOARGS, nullptr},
                                  {}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                                {Py_tp_repr, reinterpret_cast<void*>(repr)},
                                {Py_sq_concat, reinterpret_cast<void*>(concat)},
                                {Py_nb_add, reinterpret_cast<void*>(add)},
                                {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
                                {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                                {Py_tp_methods, methods},
                                {}};
  static PyType_Spec spec{"flambeau.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const nb::tuple bases = nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(&PyTuple_Type)));
  size_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases.ptr()));
  if (!size_type) throw nb::python_error();
  return size_type;
}

}  // namespace fl::python
