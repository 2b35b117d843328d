// dtypes, devices, memory formats and generators.
#include <nanobind/stl/optional.h>

#include <array>

#include "module.h"

namespace fl::python {
namespace {

struct DTypeObject {
  DType dtype;
};
struct MemoryFormatObject {
  MemoryFormat format;
};

constexpr int kFormatCount = 4;
std::array<PyObject*, kDTypeCount> dtype_objects;
std::array<PyObject*, kFormatCount> format_objects;

void bind_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "dtype")
      .def_prop_ro("is_floating_point", [](const DTypeObject& d) { return is_floating(d.dtype); })
      .def_prop_ro("is_complex", [](const DTypeObject& d) { return is_complex(d.dtype); })
      .def_prop_ro("is_signed", [](const DTypeObject& d) { return info(d.dtype).is_signed; })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return size_of(d.dtype); })
      .def("__reduce__", [](const DTypeObject& d) { return nb::str(name(d.dtype).data()); })
      .def("__repr__", [](const DTypeObject& d) {
        const std::string text = fmt::format("flambeau.{}", name(d.dtype));
        return nb::str(text.c_str());
      });
  for (int k = 0; k < kDTypeCount; ++k) {
    const auto d = static_cast<DType>(k);
    nb::object o = nb::cast(DTypeObject{d});
    m.attr(std::string(name(d)).c_str()) = o;
    dtype_objects[k] = o.release().ptr();
  }
  const std::pair<const char*, DType> aliases[] = {
      {"half", DType::Float16},     {"float", DType::Float32},     {"double", DType::Float64},
      {"short", DType::Int16},      {"int", DType::Int32},         {"long", DType::Int64},
      {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};
  for (const auto& [alias, d] : aliases) m.attr(alias) = wrap(d);
}

void bind_devices(nb::module_& m) {
  nb::class_<Device>(m, "device")
      .def(
          "__init__",
          [](Device* self, nb::object device, std::optional<int> index) {
            const std::optional<Device> d = as_device(device);
            FL_CHECK(d, TypeError, "device(): expected a str or a device, got {}", python_type(device));
            *self = *d;
            if (index) self->index = static_cast<int8_t>(*index);
          },
          nb::arg("device"), nb::arg("index") = nb::none())
      .def_prop_ro("type",
                   [](const Device& d) {
                     const std::string text = d.str();
                     return nb::str(text.substr(0, text.find(':')).c_str());
                   })
      .def_prop_ro("index",
                   [](const Device& d) -> nb::object {
                     if (d.type == DeviceType::CUDA) return nb::int_(d.index);
                     return nb::none();
                   })
      .def("__eq__", [](const Device& a,
                        nb::handle b) { return nb::isinstance<Device>(b) && a == nb::cast<Device>(b); })
      .def("__hash__", [](const Device& d) { return static_cast<int64_t>(d.type) * 256 + d.index; })
      .def("__str__", [](const Device& d) { return nb::str(d.str().c_str()); })
      .def("__repr__", [](const Device& d) {
        const std::string text = d.str(), type = text.substr(0, text.find(':'));
        const std::string index = d.type == DeviceType::CUDA ? fmt::format(", index={}", d.index) : "";
        return nb::str(fmt::format("device(type='{}'{})", type, index).c_str());
      });
}

void bind_memory_formats(nb::module_& m) {
  nb::class_<MemoryFormatObject>(m, "memory_format").def("__repr__", [](const MemoryFormatObject& f) {
    const std::string text = fmt::format("flambeau.{}", name(f.format));
    return nb::str(text.c_str());
  });
  const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  for (int k = 0; k < kFormatCount; ++k) {
    nb::object o = nb::cast(MemoryFormatObject{static_cast<MemoryFormat>(k)});
    m.attr(names[k]) = o;
    format_objects[k] = o.release().ptr();
  }
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
          [](nb::object self, int64_t seed) {
            nb::cast<GeneratorObject&>(self).generator->manual_seed(static_cast<uint64_t>(seed));
            return self;
          },
          nb::arg("seed"))
      .def("seed", [](GeneratorObject& g) { return g.generator->seed(); })
      .def("initial_seed", [](GeneratorObject& g) { return g.generator->initial_seed(); })
      .def("get_state", [](GeneratorObject& g) { return wrap(g.generator->get_state()); })
      .def("set_state", [](GeneratorObject& g,
                           nb::handle state) { g.generator->set_state(expect_tensor(state, "set_state()")); })
      .def_prop_ro("device", [](GeneratorObject& g) { return wrap(g.generator->device()); });
  m.attr("default_generator") = nb::cast(GeneratorObject{default_generator(Device{})});
  m.def(
      "manual_seed",
      [](int64_t seed) {
        manual_seed(static_cast<uint64_t>(seed));
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
  if (nb::isinstance<DTypeObject>(h)) return nb::inst_ptr<DTypeObject>(h)->dtype;
  const auto* type = reinterpret_cast<PyTypeObject*>(h.ptr());
  if (type == &PyFloat_Type) return DType::Float64;
  if (type == &PyLong_Type) return DType::Int64;
  if (type == &PyBool_Type) return DType::Bool;
  if (type == &PyComplex_Type) return DType::Complex128;
  return std::nullopt;
}

std::optional<Device> as_device(nb::handle h) {
  if (nb::isinstance<Device>(h)) return nb::cast<Device>(h);
  if (PyUnicode_Check(h.ptr())) return parse_device(text_of(h));
  return std::nullopt;
}

std::optional<MemoryFormat> as_memory_format(nb::handle h) {
  if (nb::isinstance<MemoryFormatObject>(h)) return nb::inst_ptr<MemoryFormatObject>(h)->format;
  return std::nullopt;
}

void bind_types(nb::module_& m) {
  bind_dtypes(m);
  bind_devices(m);
  bind_memory_formats(m);
  bind_generators(m);
}

}  // namespace fl::python
