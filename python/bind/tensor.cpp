// class Tensor: what the operator table does not give.
#include <nanobind/stl/optional.h>

#include "flambeau/autograd/meta.h"
#include "flambeau/ops/functions.h"
#include "flambeau/tensor/element.h"
#include "flambeau/tensor/print.h"
#include "module.h"

#include <nanobind/stl/string.h>

namespace fl::python {
namespace {

nb::object list_of(const char*& at, const Tensor& t, int dim) {
  if (dim == t.dim()) {
    nb::object out = wrap(load_scalar(at, t.dtype()));
    at += size_of(t.dtype());
    return out;
  }
  nb::list out;
  for (int64_t k = t.sizes()[static_cast<size_t>(dim)].expect_int(); k > 0; --k)
    out.append(list_of(at, t, dim + 1));
  return out;
}

/// Raises what PyTorch raises on a tensor without elements.
void check_has_data(const Tensor& t, const char* what) {
  FL_CHECK(t.device().type != DeviceType::Meta, UnsupportedError,
           "Tensor.{}() cannot be called on meta tensors: they have no elements", what);
  FL_CHECK(t.has_data(), UnsupportedError, "the value of a tensor without data ({}) was asked for",
           t.device().str());
}

nb::object to_list(const Tensor& self) {
  check_has_data(self, "tolist");
  const std::vector<char> bytes = row_major_bytes(self);
  const char* at = bytes.data();
  return list_of(at, self, 0);
}

Scalar only_element(const Tensor& t) {
  check_has_data(t, "item");
  return t.item();
}

Scalar as_python_number(const Tensor& t) {
  FL_CHECK(!t.has_data() || t.numel() == SymInt(1), ValueError,
           "only one element tensors can be converted to Python scalars, got one of {} elements", t.numel());
  return only_element(t);
}

double as_python_float(const Tensor& t) {
  const Scalar s = as_python_number(t);
  FL_CHECK(!s.is_complex() || s.to_complex().imag() == 0, RuntimeError,
           "value cannot be converted to type double without overflow: {}", s.str());
  return s.is_complex() ? s.to_complex().real() : s.to_double();
}

void bind_shape(TensorMethods& c) {
  c.def(
       "size",
       [](const Tensor& t, std::optional<int64_t> dim) -> nb::object {
         if (dim) return integer(t.size(*dim));
         return size_object(t.sizes());
       },
       nb::arg("dim") = nb::none())
      .def(
          "stride",
          [](const Tensor& t, std::optional<int64_t> dim) -> nb::object {
            if (dim) return integer(t.stride(*dim));
            return int_tuple(t.strides());
          },
          nb::arg("dim") = nb::none())
      .def("dim", [](const Tensor& t) { return t.dim(); })
      .def("ndimension", [](const Tensor& t) { return t.dim(); })
      .def("numel", [](const Tensor& t) { return integer(t.numel()); })
      .def("nelement", [](const Tensor& t) { return integer(t.numel()); })
      .def("element_size", [](const Tensor& t) { return size_of(t.dtype()); })
      .def("storage_offset", [](const Tensor& t) { return integer(t.offset()); })
      .def("data_ptr",
           [](const Tensor& t) { return t.has_data() ? reinterpret_cast<uintptr_t>(t.data()) : 0; })
      .def(
          "is_contiguous",
          [](const Tensor& t, nb::object format) {
            return t.is_contiguous(as_memory_format(format).value_or(MemoryFormat::Contiguous));
          },
          nb::arg("memory_format") = nb::none())
      .def("is_floating_point", [](const Tensor& t) { return is_floating(t.dtype()); })
      .def("is_complex", [](const Tensor& t) { return is_complex(t.dtype()); })
      .def("is_signed", [](const Tensor& t) { return info(t.dtype()).is_signed; })
      .def("is_inference", [](const Tensor& t) { return t.impl()->inference; })
      .def("is_set_to", [](const Tensor& t, const Tensor& o) {
        const TensorSpec &a = t.spec(), &b = o.spec();
        return t.storage() == o.storage() && a.offset.same_as(b.offset) &&
               std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(), b.sizes.end()) &&
               std::equal(a.strides.begin(), a.strides.end(), b.strides.begin(), b.strides.end());
      });
  c.def("__len__", [](const Tensor& t) {
    FL_CHECK(t.dim() > 0, TypeError, "len() of a 0-d tensor");
    return integer(t.size(0));
  });
}

void bind_values(TensorMethods& c) {
  c.def("item", [](const Tensor& t) { return wrap(only_element(t)); })
      .def("tolist", to_list)
      .def("__bool__",
           [](const Tensor& t) {
             FL_CHECK(t.numel() == SymInt(1), RuntimeError, "Boolean value of Tensor with {} is ambiguous",
                      t.numel() == SymInt(0) ? "no values" : "more than one value");
             return only_element(t).to_bool();
           })
      .def("__float__", as_python_float)
      .def("__int__",
           [](const Tensor& t) { return nb::steal(PyNumber_Long(wrap(as_python_number(t)).ptr())); })
      .def("__index__",
           [](const Tensor& t) {
             FL_CHECK(is_integral(t.dtype(), true) && t.numel() == SymInt(1), TypeError,
                      "only integer tensors of a single element can be converted to an index");
             return only_element(t).to_int();
           })
      .def("__complex__", [](const Tensor& t) {
        const std::complex<double> v = as_python_number(t).to_complex();
        return nb::steal(PyComplex_FromDoubles(v.real(), v.imag()));
      });
  c.def("__getitem__", index_tensor, nb::arg().none());
  c.def("__setitem__", assign_index, nb::arg().none(), nb::arg());
  c.def("__iter__", [](const Tensor& t) {
    FL_CHECK(t.dim() > 0, TypeError, "iteration over a 0-d tensor");
    return nb::steal(PyObject_GetIter(wrap(unbind(t, 0)).ptr()));
  });
}

PyTypeObject* expect_subclass(nb::handle type) {
  FL_CHECK(
      PyType_Check(type.ptr()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type),
      TypeError, "expected a subclass of Tensor, got {}", text_of(nb::repr(type)));
  return reinterpret_cast<PyTypeObject*>(type.ptr());
}

/// A leaf of a class on the same elements.
nb::object make_subclass(nb::handle type, const Tensor& data, bool require_grad, nb::args, nb::kwargs) {
  Tensor t = shallow_copy(data);
  if (require_grad) t.set_requires_grad(true);
  return wrap_as(expect_subclass(type), t);
}

/// The same tensor with its history, seen through another class.
nb::object as_subclass(const Tensor& t, nb::handle type) {
  PyTypeObject* wanted = expect_subclass(type);
  return wrap_as(wanted, alias(t));
}

/// A tensor of a class without memory of its own: sizes and the like are given.
nb::object make_wrapper(nb::handle type, nb::handle size, nb::handle dtype, nb::handle device,
                        bool requires_grad) {
  const std::optional<Sizes> sizes = as_int_list(size);
  FL_CHECK(sizes, TypeError, "_make_wrapper_subclass(): expected sizes, got {}", python_type(size));
  TensorSpec spec;
  spec.sizes = *sizes;
  spec.strides = contiguous_strides(*sizes);
  spec.dtype = dtype.is_none() ? default_dtype() : as_dtype(dtype).value_or(default_dtype());
  if (!device.is_none()) spec.device = as_device(device).value_or(Device{});
  Tensor t(spec, Storage::without_data(spec.device));
  if (requires_grad) t.set_requires_grad(true);
  return wrap_as(expect_subclass(type), t);
}

std::string text(const Tensor& t, int precision, int64_t threshold, int64_t edge_items, int64_t line_width,
                 std::optional<bool> sci_mode, std::string prefix) {
  PrintOptions options{precision, threshold,       edge_items,       line_width,
                       sci_mode,  default_dtype(), std::move(prefix)};
  return to_string(t, options);
}

}  // namespace

void bind_tensor(nb::module_& m) {
  m.attr("Size") = nb::handle(reinterpret_cast<PyObject*>(make_size_type()));
  m.attr("Tensor") = nb::handle(reinterpret_cast<PyObject*>(make_tensor_type()));
  TensorMethods c;
  bind_shape(c);
  bind_values(c);
  c.def("as_subclass", as_subclass, nb::arg("cls"));
  c.def("_text", text);
  m.def("_make_subclass", make_subclass, nb::arg("cls"), nb::arg("data"), nb::arg("require_grad") = false,
        nb::arg("args"), nb::arg("kwargs"));
  m.def("_make_wrapper_subclass", make_wrapper, nb::arg("cls"), nb::arg("size"), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("requires_grad") = false);
}

}  // namespace fl::python
