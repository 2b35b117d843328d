// class Tensor: what the operator table does not give.
#include <nanobind/stl/optional.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"
#include "flambeau/tensor/element.h"
#include "module.h"

namespace fl::python {
namespace {

using Self = TensorObject&;

nb::object list_of(const char*& at, const Tensor& t, int dim) {
  if (dim == t.dim()) {
    nb::object out = wrap(load_scalar(at, t.dtype()));
    at += size_of(t.dtype());
    return out;
  }
  nb::list out;
  for (int64_t k = t.sizes()[dim].expect_int(); k > 0; --k) out.append(list_of(at, t, dim + 1));
  return out;
}

nb::object to_list(Self self) {
  const std::vector<char> bytes = row_major_bytes(self.tensor);
  const char* at = bytes.data();
  return list_of(at, self.tensor, 0);
}

nb::object one_or_all(IntList all, SymInt (Tensor::*one)(int64_t) const, const Tensor& t,
                      std::optional<int64_t> dim) {
  if (dim) return nb::int_((t.*one)(*dim).guard_int());
  return sizes_tuple(all);
}

/// The only element; raises what PyTorch raises on more.
Scalar only_element(const Tensor& t) {
  FL_CHECK(t.has_data(), UnsupportedError, "the value of a tensor without data ({}) was asked for",
           t.device().str());
  return t.item();
}

Tensor converted(const Tensor& t, DType d) { return t.dtype() == d ? t : _to_copy(t, d); }

void bind_shape(nb::class_<TensorObject>& c) {
  c.def_prop_ro("shape", [](Self s) { return sizes_tuple(s.tensor.sizes()); })
      .def_prop_ro("dtype", [](Self s) { return wrap(s.tensor.dtype()); })
      .def_prop_ro("device", [](Self s) { return wrap(s.tensor.device()); })
      .def_prop_ro("ndim", [](Self s) { return s.tensor.dim(); })
      .def_prop_ro("itemsize", [](Self s) { return size_of(s.tensor.dtype()); })
      .def_prop_ro("nbytes", [](Self s) { return s.tensor.numel().guard_int() * size_of(s.tensor.dtype()); })
      .def(
          "size",
          [](Self s, std::optional<int64_t> dim) {
            return one_or_all(s.tensor.sizes(), &Tensor::size, s.tensor, dim);
          },
          nb::arg("dim") = nb::none())
      .def(
          "stride",
          [](Self s, std::optional<int64_t> dim) {
            return one_or_all(s.tensor.strides(), &Tensor::stride, s.tensor, dim);
          },
          nb::arg("dim") = nb::none())
      .def("dim", [](Self s) { return s.tensor.dim(); })
      .def("ndimension", [](Self s) { return s.tensor.dim(); })
      .def("numel", [](Self s) { return s.tensor.numel().guard_int(); })
      .def("nelement", [](Self s) { return s.tensor.numel().guard_int(); })
      .def("element_size", [](Self s) { return size_of(s.tensor.dtype()); })
      .def("storage_offset", [](Self s) { return s.tensor.offset().guard_int(); })
      .def("data_ptr", [](Self s) { return reinterpret_cast<uintptr_t>(s.tensor.data()); })
      .def(
          "is_contiguous",
          [](Self s, nb::object format) {
            const std::optional<MemoryFormat> f = as_memory_format(format);
            return s.tensor.is_contiguous(f.value_or(MemoryFormat::Contiguous));
          },
          nb::arg("memory_format") = nb::none())
      .def("is_floating_point", [](Self s) { return is_floating(s.tensor.dtype()); })
      .def("is_complex", [](Self s) { return is_complex(s.tensor.dtype()); })
      .def("__len__", [](Self s) {
        FL_CHECK(s.tensor.dim() > 0, TypeError, "len() of a 0-d tensor");
        return s.tensor.size(0).guard_int();
      });
}

void bind_values(nb::class_<TensorObject>& c) {
  c.def("item", [](Self s) { return wrap(only_element(s.tensor)); })
      .def("tolist", to_list)
      .def("__repr__",
           [](Self s) {
             const std::string text = s.tensor.str();
             return nb::str(text.c_str(), text.size());
           })
      .def("__bool__",
           [](Self s) {
             FL_CHECK(s.tensor.numel() == SymInt(1), RuntimeError,
                      "Boolean value of Tensor with {} values is ambiguous",
                      s.tensor.numel() == SymInt(0) ? "no" : "more than one");
             return only_element(s.tensor).to_bool();
           })
      .def("__float__", [](Self s) { return only_element(s.tensor).to_double(); })
      .def("__int__", [](Self s) { return only_element(s.tensor).to_int(); })
      .def("__index__",
           [](Self s) {
             FL_CHECK(is_integral(s.tensor.dtype(), true) && s.tensor.numel() == SymInt(1), TypeError,
                      "only integer tensors of a single element can be converted to an index");
             return only_element(s.tensor).to_int();
           })
      .def("__complex__", [](Self s) {
        const std::complex<double> v = only_element(s.tensor).to_complex();
        return nb::steal(PyComplex_FromDoubles(v.real(), v.imag()));
      });
  c.def("__hash__",
        [](Self s) { return static_cast<Py_ssize_t>(reinterpret_cast<uintptr_t>(s.tensor.impl()) >> 4); });
  c.def(
      "__getitem__", [](Self s, nb::handle index) { return index_tensor(s.tensor, index); },
      nb::arg().none());
  c.def(
      "__setitem__", [](Self s, nb::handle index, nb::handle value) { assign_index(s.tensor, index, value); },
      nb::arg().none(), nb::arg());
  c.def("__iter__", [](Self s) {
    FL_CHECK(s.tensor.dim() > 0, TypeError, "iteration over a 0-d tensor");
    return nb::steal(PyObject_GetIter(wrap(unbind(s.tensor, 0)).ptr()));
  });
}

void bind_conversions(nb::class_<TensorObject>& c) {
  c.def(
      "to",
      [](nb::object self, nb::handle target, bool copy) {
        const Tensor& t = *as_tensor(self);
        const Tensor* like = as_tensor(target);
        const std::optional<DType> d = like ? like->dtype() : as_dtype(target);
        const std::optional<Device> device = d ? std::nullopt : as_device(target);
        FL_CHECK(d || device, TypeError, "to(): expected a dtype, a device or a Tensor, got {}",
                 python_type(target));
        FL_CHECK(!device || *device == t.device(), NotImplementedError,
                 "to(): copies from {} to {} are not supported", t.device().str(),
                 device ? device->str() : "");
        if (copy) return wrap(_to_copy(t, d.value_or(t.dtype())));
        return d && *d != t.dtype() ? wrap(converted(t, *d)) : self;
      },
      nb::arg("target"), nb::arg("copy") = false);
  c.def("cpu", [](nb::object self) { return self; });
#define FL_CAST(python, dtype) \
  c.def(python, [](nb::object self) { return wrap(converted(*as_tensor(self), DType::dtype)); });
  FL_CAST("float", Float32)
  FL_CAST("double", Float64)
  FL_CAST("half", Float16)
  FL_CAST("bfloat16", BFloat16)
  FL_CAST("bool", Bool)
  FL_CAST("byte", UInt8)
  FL_CAST("char", Int8)
  FL_CAST("short", Int16)
  FL_CAST("int", Int32)
  FL_CAST("long", Int64)
#undef FL_CAST
  c.def_prop_ro("T", [](Self s) {
    Sizes dims;
    for (int d = s.tensor.dim(); d-- > 0;) dims.push_back(d);
    return wrap(permute(s.tensor, dims));
  });
  c.def_prop_ro("mT", [](Self s) { return wrap(transpose(s.tensor, -2, -1)); });
  c.def_prop_ro("real", [](Self s) { return wrap(real(s.tensor)); });
  c.def_prop_ro("imag", [](Self s) { return wrap(imag(s.tensor)); });
}

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<TensorObject> c(m, "Tensor", nb::is_weak_referenceable(), nb::dynamic_attr());
  bind_shape(c);
  bind_values(c);
  bind_conversions(c);
}

}  // namespace fl::python
