#include "object.h"

#include "sym_float.h"

namespace fl::python {
namespace {

bool is_numpy_scalar(nb::handle h) {
  const std::string_view name = Py_TYPE(h.ptr())->tp_name;
  return name.starts_with("numpy.") && PyObject_HasAttrString(h.ptr(), "dtype") &&
         !name.starts_with("numpy.ndarray");
}

}  // namespace

const Tensor& expect_tensor(nb::handle h, const char* where) {
  const Tensor* t = as_tensor(h);
  FL_CHECK(t, TypeError, "{}: expected a Tensor, got {}", where, python_type(h));
  return *t;
}

namespace {
int64_t as_int64(nb::handle integer) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  FL_CHECK(!overflow, ValueError, "Overflow when unpacking long long: expected an integer of 64 bits, got {}",
           text_of(integer));
  return value;
}
}  // namespace

std::optional<SymInt> as_sym_int(nb::handle h) {
  if (PyLong_CheckExact(h.ptr())) return SymInt(as_int64(h));
  if (Py_TYPE(h.ptr()) == sym_int_type) return as_symbolic_integer(h);
  if (PyBool_Check(h.ptr()) || !PyIndex_Check(h.ptr()) || as_tensor(h)) return std::nullopt;
  if (!PyLong_Check(h.ptr()) && !is_numpy_scalar(h)) return std::nullopt;
  const nb::object i = nb::steal(PyNumber_Index(h.ptr()));
  if (!i.is_valid()) throw nb::python_error();
  return SymInt(as_int64(i));
}

std::optional<int64_t> as_int(nb::handle h) {
  const std::optional<SymInt> i = as_sym_int(h);
  return i ? std::optional(i->guard_int()) : std::nullopt;
}

std::optional<SymInt> as_size(nb::handle h) {
  if (const Tensor* t = as_tensor(h)) {
    if (!is_integral(t->dtype(), true) || t->numel() != SymInt(1)) return std::nullopt;
    return SymInt(t->item().to_int());
  }
  return as_sym_int(h);
}

std::optional<Sizes> as_int_list(nb::handle h) {
  if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) return std::nullopt;
  Sizes out;
  for (nb::handle item : h) {
    const std::optional<SymInt> i = as_size(item);
    if (!i) return std::nullopt;
    out.push_back(*i);
  }
  return out;
}

std::optional<Scalar> as_number(nb::handle h) {
  PyObject* o = h.ptr();
  if (is_exact_tensor(o)) return std::nullopt;
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (is_sym_float(o)) return Scalar(known_float(o));
  if (PyComplex_Check(o))
    return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (PyLong_CheckExact(o)) {
    const int64_t value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();  // OverflowError
    return Scalar(value);
  }
  if (const auto i = as_sym_int(h)) return Scalar(*i);
  if (is_numpy_scalar(h)) {
    const nb::object item = h.attr("item")();
    if (!is_numpy_scalar(item)) return as_number(item);
  }
  return std::nullopt;
}

nb::object wrap(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return nb::bool_(s.to_bool());
    case Scalar::Kind::Int:
      return integer(s.sym_int());
    case Scalar::Kind::Float:
      return nb::float_(s.to_double());
    case Scalar::Kind::Complex: {
      const std::complex<double> c = s.to_complex();
      return nb::steal(PyComplex_FromDoubles(c.real(), c.imag()));
    }
  }
  return nb::none();
}

nb::object wrap(const Value& v) {
  const auto list = [](const auto& items) {
    nb::list out;
    for (const auto& i : items) out.append(i);
    return out;
  };
  switch (v.tag()) {
    case Value::Tag::Tensor:
      return wrap(v.tensor());
    case Value::Tag::TensorList:
      return wrap(v.tensors());
    case Value::Tag::IntList:
      return int_tuple(v.ints());
    case Value::Tag::FloatList:
      return list(v.doubles());
    case Value::Tag::BoolList:
      return list(v.bools());
    case Value::Tag::Str:
      return nb::str(v.str().data(), v.str().size());
    case Value::Tag::DType:
      return wrap(v.dtype());
    case Value::Tag::Device:
      return wrap(v.device());
    case Value::Tag::MemoryFormat:
      return wrap(v.memory_format());
    case Value::Tag::Generator:
      return nb::cast(GeneratorObject{Ref<Generator>(v.generator())});
    default:
      return v.is_number() ? wrap(v.scalar()) : nb::none();
  }
}

nb::tuple int_tuple(IntList list) {
  nb::tuple out = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t k = 0; k < list.size(); ++k)
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(k), integer(list[k]).release().ptr());
  return out;
}

std::string text_of(nb::handle h) {
  const nb::object text = nb::steal(PyObject_Str(h.ptr()));
  const char* chars = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (!chars) throw nb::python_error();
  return chars;
}

std::string python_type(nb::handle h) {
  if (h.is_none()) return "NoneType";
  // Of sequences the first item's, too; a list may hold itself.
  constexpr int kMostLevels = 4;
  std::string name;
  for (int level = 1;; ++level) {
    name += as_tensor(h)
                ? "Tensor"
                : text_of(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(h.ptr()))).attr("__name__"));
    const bool is_sequence = PyList_Check(h.ptr()) || PyTuple_Check(h.ptr());
    if (!is_sequence || level == kMostLevels || PySequence_Fast_GET_SIZE(h.ptr()) == 0) return name;
    h = PySequence_Fast_GET_ITEM(h.ptr(), 0);
    name += " of ";
  }
}

std::shared_ptr<nb::object> shared_object(nb::object o) {
  return {new nb::object(std::move(o)), [](nb::object* p) {
            if (!Py_IsInitialized()) return;
            nb::gil_scoped_acquire lock;
            delete p;
          }};
}

}  // namespace fl::python
