// Tensors from and to Python's numbers and lists, NumPy's arrays, and other libraries through DLPack.
#include <nanobind/stl/optional.h>

#include "flambeau/ops/functions.h"
#include "flambeau/tensor/dlpack.h"
#include "flambeau/tensor/element.h"
#include "flambeau/tensor/number_fits.h"
#include "module.h"

namespace fl::python {
namespace {

template <class Managed>
constexpr const char* capsule_name() {
  return std::is_same_v<Managed, dlpack::DLManagedTensor> ? "dltensor" : "dltensor_versioned";
}

/// A capsule that frees the tensor unless someone takes it over (and renames it).
template <class Managed>
nb::object make_capsule(Managed* managed) {
  PyObject* capsule = PyCapsule_New(managed, capsule_name<Managed>(), [](PyObject* c) {
    if (!PyCapsule_IsValid(c, capsule_name<Managed>())) return;
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(c, capsule_name<Managed>()));
    m->deleter(m);
  });
  if (!capsule) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

template <class Managed>
Tensor take_capsule(nb::handle capsule, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), capsule_name<Managed>()));
  Tensor t = dlpack::from_dlpack(managed);
  PyCapsule_SetName(capsule.ptr(), used_name);
  return t;
}

Tensor from_capsule(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned"))
    return take_capsule<dlpack::DLManagedTensorVersioned>(capsule, "used_dltensor_versioned");
  FL_CHECK(PyCapsule_IsValid(capsule.ptr(), "dltensor"), RuntimeError,
           "expected a DLPack capsule that nobody has used yet, got {}", python_type(capsule));
  return take_capsule<dlpack::DLManagedTensor>(capsule, "used_dltensor");
}

/// What __dlpack__ is told of the stream that reads: on CUDA devices that of this thread.
nb::dict reader_options(nb::handle source) {
  nb::dict options;
  if (!nb::hasattr(source, "__dlpack_device__")) return options;
  const nb::object where = source.attr("__dlpack_device__")();
  if (nb::cast<int>(where[0]) != static_cast<int>(dlpack::DeviceKind::Cuda)) return options;
  options["stream"] = dlpack_stream(nb::cast<int>(where[1]));
  return options;
}

Tensor from_dlpack(nb::handle source) {
  if (PyCapsule_CheckExact(source.ptr())) return from_capsule(source);
  FL_CHECK(nb::hasattr(source, "__dlpack__"), RuntimeError,
           "from_dlpack(): expected an object with __dlpack__, got {}", python_type(source));
  const nb::dict options = reader_options(source);
  try {
    return from_capsule(source.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0), **options));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return from_capsule(source.attr("__dlpack__")(**options));
}

void check_exportable(const Tensor& t, const char* what) {
  FL_CHECK(!t.requires_grad(), RuntimeError,
           "Can't call {} on Tensor that requires grad. Use tensor.detach().{} instead.", what, what);
}

/// The tensor itself, or a copy where the receiver asks for one or for another device.
Tensor exported(const Tensor& t, nb::handle dl_device, nb::handle copy) {
  if (!dl_device.is_none()) {
    const Device device = dlpack::device_of(
        {static_cast<dlpack::DeviceKind>(nb::cast<int>(dl_device[0])), nb::cast<int>(dl_device[1])});
    if (device != t.device()) {
      FL_CHECK(copy.ptr() != Py_False, ValueError,
               "__dlpack__(): a tensor on {} can't be exported to {} without a copy", t.device().str(),
               device.str());
      return _to_copy(t, std::nullopt, device);
    }
  }
  return copy.ptr() == Py_True ? clone(t) : t;
}

nb::object to_dlpack(const Tensor& t, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy) {
  check_exportable(t, "__dlpack__()");
  FL_CHECK(stream.is_none() || PyLong_Check(stream.ptr()), TypeError,
           "__dlpack__(): stream must be int or None, got {}", python_type(stream));
  const Tensor source = exported(t, dl_device, copy);
  if (source.device().type == DeviceType::CUDA)
    let_stream_wait(source.device().index, stream.is_none() ? 1 : nb::cast<int64_t>(stream));
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  if (versioned) return make_capsule(dlpack::to_dlpack_versioned(source));
  return make_capsule(dlpack::to_dlpack(source));
}

nb::object to_numpy(const Tensor& given, bool force) {
  if (!force) {
    check_exportable(given, "numpy()");
    FL_CHECK(
        given.device().type == DeviceType::CPU, TypeError,
        "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
        "first.",
        given.device().str());
  }
  const bool on_host = given.device().type == DeviceType::CPU;
  const Tensor t = on_host ? given : _to_copy(detach(given), std::nullopt, Device{});
  FL_CHECK(t.dtype() != DType::BFloat16, TypeError,
           "NumPy has no dtype for bfloat16; convert to float32 first");
  return nb::module_::import_("numpy").attr("from_dlpack")(wrap(t.requires_grad() ? detach(t) : t));
}

Tensor from_numpy(nb::handle array) {
  const nb::object type = nb::module_::import_("numpy").attr("ndarray");
  FL_CHECK(nb::isinstance(array, type), TypeError, "from_numpy(): expected np.ndarray, got {}",
           python_type(array));
  for (nb::handle s : array.attr("strides"))
    FL_CHECK(nb::cast<int64_t>(s) >= 0, ValueError,
             "from_numpy(): strides must not be negative; copy the array first (array.copy())");
  const std::string dtype = text_of(array.attr("dtype"));
  FL_CHECK(nb::cast<bool>(array.attr("dtype").attr("isnative")), ValueError,
           "from_numpy(): expected this machine's byte order, got {}; convert with "
           "array.astype(array.dtype.newbyteorder('='))",
           dtype);
  try {
    return from_dlpack(array);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_BufferError)) throw;
  } catch (const NotImplementedError&) {
  }
  FL_RAISE(TypeError, "from_numpy(): no dtype for an array of {}", dtype);
}

/// Sizes of nested sequences.
void read_sizes(nb::handle data, Sizes& sizes) {
  constexpr size_t kMostDimensions = 128;
  while (PyList_Check(data.ptr()) || PyTuple_Check(data.ptr())) {
    FL_CHECK(sizes.size() < kMostDimensions, ValueError, "too many dimensions '{}': more than {}",
             python_type(data), kMostDimensions);
    // What is there, whatever a class says of its length.
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(data.ptr());
    sizes.push_back(static_cast<int64_t>(n));
    if (n == 0) return;
    data = nb::handle(PySequence_Fast_GET_ITEM(data.ptr(), 0));
  }
}

class Filler {
 public:
  explicit Filler(const Sizes& sizes) : sizes_(sizes) {}
  /// Visits the leaves in row-major order.
  template <class F>
  void each(nb::handle data, size_t dim, const F& f) {
    if (dim == sizes_.size()) {
      const Tensor* t = as_tensor(data);
      const std::optional<SymInt> integer = t ? std::nullopt : as_sym_int(data);
      const std::optional<Scalar> s = t         ? std::optional(t->item())
                                      : integer ? std::optional(Scalar(*integer))
                                                : as_number(data);
      const bool is_sequence =
          PyUnicode_Check(data.ptr()) || PyList_Check(data.ptr()) || PyTuple_Check(data.ptr());
      FL_CHECK(s || !is_sequence, TypeError,
               "tensor(): expected numbers in nested lists of equal lengths, got {}", python_type(data));
      FL_CHECK(s, RuntimeError,
               "Could not infer dtype of {}: expected numbers in nested lists of equal lengths",
               python_type(data));
      f(*s);
      return;
    }
    const bool is_sequence = PyList_Check(data.ptr()) || PyTuple_Check(data.ptr());
    FL_CHECK(is_sequence, TypeError, "tensor(): expected a sequence of length {} at dim {}, got {}",
             sizes_[dim], dim, python_type(data));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(data.ptr());
    FL_CHECK(SymInt(static_cast<int64_t>(n)) == sizes_[dim], ValueError,
             "tensor(): expected a sequence of length {} at dim {}, got {}", sizes_[dim], dim, n);
    for (Py_ssize_t k = 0; k < n; ++k) each(nb::handle(PySequence_Fast_GET_ITEM(data.ptr(), k)), dim + 1, f);
  }

 private:
  const Sizes& sizes_;
};

Tensor from_sequence(nb::handle data, std::optional<DType> dtype) {
  Sizes sizes;
  read_sizes(data, sizes);
  Filler filler(sizes);
  if (!dtype) {
    auto highest = DTypeCategory::Bool;
    bool any = false;
    filler.each(data, 0, [&](const Scalar& s) {
      highest = std::max(highest, s.category());
      any = true;
    });
    const DType kinds[] = {DType::Bool, DType::Int64, default_dtype(), complex_dtype(default_dtype())};
    dtype = any ? kinds[static_cast<int>(highest)] : default_dtype();
  }
  Tensor t = empty_tensor(sizes, *dtype);
  char* at = t.numel() == SymInt(0) ? nullptr : t.data_as<char>();
  filler.each(data, 0, [&](const Scalar& s) {
    FL_CHECK(!s.is_complex() || is_complex(*dtype), TypeError, "must be real number, not complex: {} for {}",
             s.str(), name(*dtype));
    if (is_integral(*dtype)) check_fits(s, *dtype);
    store_scalar(at, *dtype, s);
    at += size_of(*dtype);
  });
  return t;
}

}  // namespace

Tensor tensor_of(nb::handle data, std::optional<DType> dtype, std::optional<Device> device) {
  Tensor t;
  bool own = false;
  if (const Tensor* given = as_tensor(data)) {
    t = detach(*given);
  } else if (PyObject_HasAttrString(data.ptr(), "__array_interface__") && !PyFloat_Check(data.ptr())) {
    const nb::object numpy = nb::module_::import_("numpy");
    // NumPy's copy has strides that are never negative.
    t = from_numpy(numpy.attr("array")(data, nb::arg("order") = "C"));
  } else {
    t = from_sequence(data, dtype);
    own = true;
  }
  const Device to = device.value_or(as_tensor(data) ? t.device() : Device{});
  if (to.type == DeviceType::Meta) return empty_tensor(t.sizes(), dtype.value_or(t.dtype()), to);
  const DType kind = dtype.value_or(t.dtype());
  if (to != t.device()) return _to_copy(t, kind, to);
  return own ? t : kind != t.dtype() ? _to_copy(t, kind) : clone(t);
}

void bind_exchange(nb::module_& m) {
  const auto make = [](nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad,
                       bool pin_memory) {
    const std::optional<DType> d = dtype.is_none() ? std::nullopt : as_dtype(dtype);
    FL_CHECK(dtype.is_none() || d, TypeError, "tensor(): dtype must be a dtype, got {}", python_type(dtype));
    const std::optional<Device> where = device.is_none() ? std::nullopt : as_device(device);
    FL_CHECK(where || device.is_none(), TypeError, "tensor(): device must be a device or its name, got {}",
             python_type(device));
    Tensor t = tensor_of(data, d, where);
    if (pin_memory) t = pinned(t);
    if (requires_grad) t.set_requires_grad(true);
    return wrap(t);
  };
  m.def("tensor", make, nb::arg("data").none(), nb::kw_only(), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::arg("requires_grad") = false, nb::arg("pin_memory") = false);
  m.def("from_numpy", [](nb::handle array) { return wrap(from_numpy(array)); });
  m.def("from_dlpack", [](nb::handle source) { return wrap(from_dlpack(source)); });

  TensorMethods c;
  c.def("numpy", to_numpy, nb::kw_only(), nb::arg("force") = false);
  c.def(
      "__array__",
      [](const Tensor& t, nb::object dtype, nb::object copy) {
        nb::object array = to_numpy(t, false);
        const bool must_copy = copy.ptr() == Py_True;
        if (dtype.is_none()) return must_copy ? array.attr("copy")() : array;
        return nb::object(array.attr("astype")(dtype, nb::arg("copy") = must_copy));
      },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
  c.def(
      "__dlpack__",
      [](const Tensor& t, nb::object stream, nb::object max_version, nb::object dl_device, nb::object copy) {
        return to_dlpack(t, stream, max_version, dl_device, copy);
      },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
  c.def("__dlpack_device__", [](const Tensor& t) {
    const dlpack::DLDevice d = dlpack::device_of(t.device());
    return nb::make_tuple(static_cast<int>(d.kind), d.index);
  });
}

}  // namespace fl::python
