// What Python sees of the library's types, and the way between the two.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "flambeau/op/value.h"
#include "flambeau/tensor/generator.h"

namespace fl::python {

namespace nb = nanobind;

/// A Tensor in Python, and the layout of every subclass. There is one object for a tensor at a time.
///
/// Usually the object keeps the tensor alive. When Python gives the last reference up while C++ still holds
/// the tensor, an object that a user could miss (attributes, a class of its own, weak references) stays, and
/// then the tensor keeps the object alive: `kept`.
struct TensorObject {
  PyObject_HEAD Tensor tensor;
  bool kept;
  PyObject* dict;
  PyObject* weak_references;
};
/// The class Tensor.
extern PyTypeObject* tensor_type;
PyTypeObject* make_tensor_type();
/// Turns the ownership of a kept object back: it keeps its tensor alive again.
void take_back(TensorObject* object);

/// The object of a tensor; None for the undefined one.
nb::object wrap(const Tensor& t);
nb::tuple wrap(const std::vector<Tensor>& list);
/// A new object of a class for a tensor that has none yet.
nb::object wrap_as(PyTypeObject* type, Tensor t);
inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }
/// Null if the object is no Tensor.
inline const Tensor* as_tensor(nb::handle h) {
  if (Py_TYPE(h.ptr()) != tensor_type && !PyType_IsSubtype(Py_TYPE(h.ptr()), tensor_type)) return nullptr;
  auto* object = reinterpret_cast<TensorObject*>(h.ptr());
  if (object->kept) [[unlikely]]
    take_back(object);
  return &object->tensor;
}
/// Raises TypeError naming what was expected, unless the object is a Tensor.
const Tensor& expect_tensor(nb::handle h, const char* where);

struct GeneratorObject {
  Ref<Generator> generator;
};

// dtypes and memory formats are single objects, compared by identity.
nb::object wrap(DType d);
nb::object wrap(Device d);
nb::object wrap(MemoryFormat f);
nb::object wrap(const Scalar& s);
/// A dtype, or one of Python's float, int, bool and complex. Raises NotImplementedError on a dtype that
/// exists by name only.
std::optional<DType> as_dtype(nb::handle h);
/// A device, its name, or the number of a CUDA device; raises RuntimeError on a name that is none.
std::optional<Device> as_device(nb::handle h);
std::optional<MemoryFormat> as_memory_format(nb::handle h);
/// A number of Python or NumPy.
std::optional<Scalar> as_number(nb::handle h);
/// The class SymInt.
extern PyTypeObject* sym_int_type;
nb::object symbolic_integer(SymInt i);
/// An int; a flambeau.SymInt for an expression over the sizes of a trace.
inline nb::object integer(SymInt i) {
  return i.is_symbolic() ? symbolic_integer(i) : nb::steal(PyLong_FromLongLong(i.raw()));
}
/// What a flambeau.SymInt stands for; nothing for other objects.
std::optional<SymInt> as_symbolic_integer(nb::handle h);
/// An integer of Python or NumPy, or a SymInt, without a guard; not a bool and not a Tensor.
std::optional<SymInt> as_sym_int(nb::handle h);
/// The same as a number: the trace is then for this number.
std::optional<int64_t> as_int(nb::handle h);
/// An integer without a guard, or a Tensor with one integer in it.
std::optional<SymInt> as_size(nb::handle h);
/// A list or tuple of such.
std::optional<Sizes> as_int_list(nb::handle h);

/// Numbers and tensors of a result.
nb::object wrap(const Value& v);
nb::tuple int_tuple(IntList list);
/// A flambeau.Size.
nb::object size_object(IntList sizes);
PyTypeObject* make_size_type();

/// What str() gives.
std::string text_of(nb::handle h);
/// "Tensor", "str": for messages.
std::string python_type(nb::handle h);

/// A Python object that C++ may drop on any thread.
std::shared_ptr<nb::object> shared_object(nb::object o);

}  // namespace fl::python

namespace nanobind::detail {

/// Tensors as arguments and results of bound functions.
template <>
struct type_caster<fl::Tensor> {
  NB_TYPE_CASTER(fl::Tensor, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const fl::Tensor* t = fl::python::as_tensor(source);
    if (t) value = *t;
    return t != nullptr;
  }
  static handle from_cpp(const fl::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return fl::python::wrap(t).release();
  }
};

}  // namespace nanobind::detail
