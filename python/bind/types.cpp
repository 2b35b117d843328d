// dtypes, devices, memory formats and generators.
#include <nanobind/stl/optional.h>

#include <array>

#include "module.h"
#ifdef FLAMBEAU_CUDA
#include "flambeau/runtime/cuda/device.h"
#endif

namespace fl::python {
namespace {

/// A dtype; those that the library has no elements of are names with their facts.
struct DTypeObject {
  std::optional<DType> dtype;
  std::string name;
  int64_t itemsize;
  bool is_floating, is_signed;
};
struct MemoryFormatObject {
  MemoryFormat format;
};

constexpr int kFormatCount = 4;
std::array<PyObject*, kDTypeCount> dtype_objects;
std::array<PyObject*, kFormatCount> format_objects;
PyTypeObject *dtype_type, *format_type;

void add_dtype(nb::module_& m, DTypeObject d) {
  const std::string name = d.name;
  const std::optional<DType> known = d.dtype;
  nb::object o = nb::cast(std::move(d));
  m.attr(name.c_str()) = o;
  if (known) dtype_objects[static_cast<size_t>(*known)] = nb::object(o).release().ptr();
}

void bind_dtypes(nb::module_& m) {
  const auto related = [](const DTypeObject& d, DType (*of)(DType)) {
    FL_CHECK(d.dtype, NotImplementedError, "torch.{} has no arithmetic here", d.name);
    return wrap(of(*d.dtype));
  };
  nb::class_<DTypeObject>(m, "dtype")
      .def_prop_ro("is_floating_point", [](const DTypeObject& d) { return d.is_floating; })
      .def_prop_ro("is_complex", [](const DTypeObject& d) { return d.dtype && is_complex(*d.dtype); })
      .def_prop_ro("is_signed", [](const DTypeObject& d) { return d.is_signed; })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return d.itemsize; })
      .def("to_real", [related](const DTypeObject& d) { return related(d, real_dtype); })
      .def("to_complex", [related](const DTypeObject& d) { return related(d, complex_dtype); })
      .def("__copy__", [](nb::object d) { return d; })
      .def("__deepcopy__", [](nb::object d, nb::handle) { return d; })
      .def("__reduce__", [](const DTypeObject& d) { return nb::str(d.name.c_str()); })
      .def("__repr__", [](const DTypeObject& d) { return nb::str(("torch." + d.name).c_str()); });
  dtype_type = reinterpret_cast<PyTypeObject*>(m.attr("dtype").ptr());
  for (int k = 0; k < kDTypeCount; ++k) {
    const auto d = static_cast<DType>(k);
    add_dtype(m, {d, std::string(name(d)), size_of(d), is_floating(d), info(d).is_signed});
  }
  const DTypeObject others[] = {
      {{}, "uint16", 2, false, false},        {{}, "uint32", 4, false, false},
      {{}, "uint64", 8, false, false},        {{}, "complex32", 4, false, true},
      {{}, "float8_e4m3fn", 1, true, true},   {{}, "float8_e5m2", 1, true, true},
      {{}, "float8_e4m3fnuz", 1, true, true}, {{}, "float8_e5m2fnuz", 1, true, true},
      {{}, "float8_e8m0fnu", 1, true, true},  {{}, "float4_e2m1fn_x2", 1, true, true},
      {{}, "quint8", 1, false, false},        {{}, "qint8", 1, false, true},
      {{}, "qint32", 4, false, true},         {{}, "quint4x2", 1, false, false},
      {{}, "quint2x4", 1, false, false}};
  for (const DTypeObject& d : others) add_dtype(m, d);
  const std::pair<const char*, DType> aliases[] = {
      {"half", DType::Float16},     {"float", DType::Float32},     {"double", DType::Float64},
      {"short", DType::Int16},      {"int", DType::Int32},         {"long", DType::Int64},
      {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};
  for (const auto& [alias, d] : aliases) m.attr(alias) = wrap(d);
  m.attr("chalf") = m.attr("complex32");
  m.def("get_default_dtype", [] { return wrap(default_dtype()); });
  m.def(
      "set_default_dtype",
      [](nb::handle d) {
        const std::optional<DType> dtype = as_dtype(d);
        FL_CHECK(dtype && nb::isinstance<DTypeObject>(d), TypeError, "invalid dtype object: {}", text_of(d));
        set_default_dtype(*dtype);
      },
      nb::arg("d"));
}

// Device objects of Python know "cuda", the current device at each use: its index is below 0. Everything else
// gets it with its number, from as_device().
constexpr int8_t kCurrent = -1;

std::string kind_of(const Device& d) {
  const std::string text = d.str();
  return text.substr(0, text.find(':'));
}
bool has_index(const Device& d) { return d.type == DeviceType::CUDA && d.index != kCurrent; }
std::string text_of(const Device& d) { return has_index(d) ? d.str() : kind_of(d); }

std::optional<Device> device_object(nb::handle h) {
  if (nb::isinstance<Device>(h)) return nb::cast<Device>(h);
  if (PyUnicode_Check(h.ptr()) && python::text_of(h) == "cuda") return Device{DeviceType::CUDA, kCurrent};
  return as_device(h);
}

Device make_device(nb::handle type, std::optional<int64_t> index) {
  std::optional<Device> d = device_object(type);
  FL_CHECK(d, TypeError, "device(): argument 'type' must be str or torch.device, not {}", python_type(type));
  if (!index) return *d;
  FL_CHECK(PyUnicode_Check(type.ptr()), TypeError, "device(): an index goes with the name of a type, got {}",
           python_type(type));
  FL_CHECK(python::text_of(type).find(':') == std::string::npos, RuntimeError,
           "type (string) must not include an index because index was passed explicitly: {}",
           python::text_of(type));
  FL_CHECK(*index >= 0 && *index < 128, RuntimeError, "expected a device index from 0 to 127, got {}",
           *index);
  if (d->type == DeviceType::CUDA) d->index = static_cast<int8_t>(*index);
  return *d;
}

void bind_devices(nb::module_& m) {
  nb::class_<Device>(m, "device")
      .def(
          "__init__",
          [](Device* self, nb::object type, std::optional<int64_t> index) {
            *self = make_device(type, index);
          },
          nb::arg("type"), nb::arg("index") = nb::none())
      .def_prop_ro("type", [](const Device& d) { return nb::str(kind_of(d).c_str()); })
      .def_prop_ro("index",
                   [](const Device& d) -> nb::object {
                     if (has_index(d)) return nb::int_(d.index);
                     return nb::none();
                   })
      .def(
          "__eq__",
          [](const Device& a, nb::handle b) { return nb::isinstance<Device>(b) && a == nb::cast<Device>(b); },
          nb::arg().none())
      .def("__reduce__",
           [](const Device& d) {
             return nb::make_tuple(nb::type<Device>(), nb::make_tuple(nb::str(text_of(d).c_str())));
           })
      .def("__deepcopy__", [](nb::object d, nb::handle) { return d; })
      .def("__hash__", [](const Device& d) { return static_cast<int64_t>(d.type) * 256 + d.index; })
      .def("__str__", [](const Device& d) { return nb::str(text_of(d).c_str()); })
      .def("__repr__", [](const Device& d) {
        const std::string index = has_index(d) ? fmt::format(", index={}", d.index) : "";
        return nb::str(fmt::format("device(type='{}'{})", kind_of(d), index).c_str());
      });
}

void bind_memory_formats(nb::module_& m) {
  nb::class_<MemoryFormatObject>(m, "memory_format").def("__repr__", [](const MemoryFormatObject& f) {
    return nb::str(fmt::format("torch.{}", name(f.format)).c_str());
  });
  format_type = reinterpret_cast<PyTypeObject*>(m.attr("memory_format").ptr());
  const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  for (int k = 0; k < kFormatCount; ++k) {
    nb::object o = nb::cast(MemoryFormatObject{static_cast<MemoryFormat>(k)});
    m.attr(names[k]) = o;
    format_objects[k] = o.release().ptr();
  }
}

/// From -2^63 to 2^64 - 1; a negative one stands for its remainder by 2^64.
uint64_t seed_of(nb::handle h) {
  const nb::object number = nb::steal(PyNumber_Index(h.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const uint64_t seed = PyLong_AsUnsignedLongLongMask(number.ptr());
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  const bool fits = overflow == 0 || (overflow > 0 && nb::object(nb::int_(seed)).equal(number));
  FL_CHECK(
      fits, RuntimeError,
      "manual_seed expected a number in range [-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], but got {}",
      python::text_of(number));
  return seed;
}

void bind_generators(nb::module_& m) {
  nb::class_<GeneratorObject>(m, "Generator")
      .def(
          "__init__",
          [](GeneratorObject* self, nb::object device) {
            const std::optional<Device> d = as_device(device);
            FL_CHECK(d, TypeError, "Generator(): expected a device, got {}", python_type(device));
            new (self) GeneratorObject{make_ref<Generator>(*d)};
          },
          nb::arg("device") = "cpu")
      .def(
          "manual_seed",
          [](nb::object self, nb::handle seed) {
            nb::cast<GeneratorObject&>(self).generator->manual_seed(seed_of(seed));
            return self;
          },
          nb::arg("seed"))
      .def("seed", [](GeneratorObject& g) { return g.generator->seed(); })
      .def("initial_seed", [](GeneratorObject& g) { return g.generator->initial_seed(); })
      .def("get_offset", [](GeneratorObject& g) { return g.generator->offset(); })
      .def("set_offset", [](GeneratorObject& g, int64_t offset) { g.generator->set_offset(offset); })
      .def("clone_state",
           [](GeneratorObject& g) {
             GeneratorObject copy{make_ref<Generator>(g.generator->device())};
             copy.generator->set_state(g.generator->get_state());
             return copy;
           })
      .def("get_state", [](GeneratorObject& g) { return wrap(g.generator->get_state()); })
      .def("set_state", [](GeneratorObject& g,
                           nb::handle state) { g.generator->set_state(expect_tensor(state, "set_state()")); })
      .def_prop_ro("device", [](GeneratorObject& g) { return wrap(g.generator->device()); });
  m.def("_default_generator", [](Device d) { return GeneratorObject{default_generator(d)}; });
  m.attr("default_generator") = nb::cast(GeneratorObject{default_generator(Device{})});
  m.def(
      "manual_seed",
      [](nb::handle seed) {
        manual_seed(seed_of(seed));
        return GeneratorObject{default_generator(Device{})};
      },
      nb::arg("seed"));
  m.def("initial_seed", [] { return default_generator(Device{})->initial_seed(); });
  m.def("seed", [] { return default_generator(Device{})->seed(); });
}

}  // namespace

nb::object wrap(DType d) { return nb::borrow(dtype_objects[static_cast<int>(d)]); }
nb::object wrap(MemoryFormat f) { return nb::borrow(format_objects[static_cast<int>(f)]); }
nb::object wrap(Device d) { return nb::cast(d); }

std::optional<DType> as_dtype(nb::handle h) {
  if (Py_TYPE(h.ptr()) == dtype_type) {
    const DTypeObject& d = *nb::inst_ptr<DTypeObject>(h);
    FL_CHECK(
        d.dtype, NotImplementedError,
        "tensors of torch.{} are not supported; there are bool, uint8, int8 to int64, float16, bfloat16, "
        "float32, float64, complex64 and complex128",
        d.name);
    return d.dtype;
  }
  const auto* type = reinterpret_cast<PyTypeObject*>(h.ptr());
  if (type == &PyFloat_Type) return DType::Float64;
  if (type == &PyLong_Type) return DType::Int64;
  if (type == &PyBool_Type) return DType::Bool;
  if (type == &PyComplex_Type) return DType::Complex128;
  return std::nullopt;
}

int current_cuda_device() {
#ifdef FLAMBEAU_CUDA
  return runtime::cuda::current_device();
#else
  return 0;
#endif
}

namespace {
Device present_cuda_device() { return {DeviceType::CUDA, static_cast<int8_t>(current_cuda_device())}; }
}  // namespace

std::optional<Device> as_device(nb::handle h) {
  if (PyUnicode_Check(h.ptr())) {
    try {
      const std::string text = text_of(h);
      return text == "cuda" ? present_cuda_device() : parse_device(text);
    } catch (const ValueError& e) {
      FL_RAISE(RuntimeError, "{}", e.what());
    }
  }
  if (PyLong_CheckExact(h.ptr())) {
    const int64_t index = nb::cast<int64_t>(h);
    FL_CHECK(index >= 0 && index < 128, RuntimeError, "expected a device index from 0 to 127, got {}", index);
    return Device{DeviceType::CUDA, static_cast<int8_t>(index)};
  }
  if (!nb::isinstance<Device>(h)) return std::nullopt;
  const Device d = nb::cast<Device>(h);
  return d.type == DeviceType::CUDA && d.index == kCurrent ? present_cuda_device() : d;
}

std::optional<MemoryFormat> as_memory_format(nb::handle h) {
  if (Py_TYPE(h.ptr()) == format_type) return nb::inst_ptr<MemoryFormatObject>(h)->format;
  return std::nullopt;
}

void bind_types(nb::module_& m) {
  bind_dtypes(m);
  bind_devices(m);
  bind_memory_formats(m);
  bind_generators(m);
}

}  // namespace fl::python
