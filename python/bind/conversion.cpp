// Tensor.to and its kind: another dtype, device or memory format.
#include "flambeau/ops/functions.h"
#include "module.h"

namespace fl::python {
namespace {

/// What a call of to() asks for.
struct Target {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::optional<MemoryFormat> format;
  bool copy = false, non_blocking = false;
};

bool same_format(const Tensor& t, MemoryFormat f) {
  return f == MemoryFormat::Preserve || t.is_contiguous(f);
}

/// t itself where it is what the target asks for.
Tensor convert(const Tensor& t, const Target& to) {
  const Device device = to.device.value_or(t.device());
  const DType dtype = to.dtype.value_or(t.dtype());
  const MemoryFormat format = to.format.value_or(MemoryFormat::Preserve);
  if (!to.copy && dtype == t.dtype() && device == t.device() && same_format(t, format)) return t;
  if (device == t.device()) return _to_copy(t, dtype, std::nullopt, std::nullopt, false, to.format);
  FL_CHECK(t.device().type != DeviceType::Meta, NotImplementedError,
           "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
           "torch.nn.Module.to() when moving module from meta to a different device.");
  if (device.type == DeviceType::Meta) return empty_like(t, dtype, device, std::nullopt, to.format);
  return _to_copy(t, dtype, device, std::nullopt, to.non_blocking, to.format);
}

class Reader {
 public:
  Reader(nb::args args, nb::kwargs kwargs) {
    size_t at = 0;
    if (at < args.size() && as_tensor(args[0])) {
      like(args[at++]);
    } else {
      if (at < args.size() && (args[at].is_none() || take_device(args[at]))) ++at;
      if (at < args.size() && (args[at].is_none() || take_dtype(args[at]))) ++at;
    }
    if (at < args.size() && PyBool_Check(args[at].ptr())) out_.non_blocking = args[at++].ptr() == Py_True;
    if (at < args.size() && PyBool_Check(args[at].ptr())) out_.copy = args[at++].ptr() == Py_True;
    if (at < args.size() && take_format(args[at])) ++at;
    if (at < args.size()) refuse(args[at]);
    for (const auto& [key, value] : kwargs) keyword(text_of(key), value);
  }
  const Target& target() const { return out_; }

 private:
  void keyword(const std::string& name, nb::handle value) {
    if (name == "copy" || name == "non_blocking") {
      if (!PyBool_Check(value.ptr())) refuse(value);
      (name == "copy" ? out_.copy : out_.non_blocking) = value.ptr() == Py_True;
      return;
    }
    if (value.is_none()) return;
    const bool taken = name == "dtype"           ? take_dtype(value)
                       : name == "device"        ? take_device(value)
                       : name == "memory_format" ? take_format(value)
                       : name == "other"         ? like(value)
                                                 : false;
    FL_CHECK(taken, TypeError, "to(): keyword '{}' cannot be {}", name, python_type(value));
  }
  bool like(nb::handle h) {
    const Tensor* t = as_tensor(h);
    if (!t) return false;
    out_.dtype = t->dtype();
    out_.device = t->device();
    return true;
  }
  bool take_dtype(nb::handle h) { return (out_.dtype = as_dtype(h)).has_value(); }
  bool take_device(nb::handle h) { return (out_.device = as_device(h)).has_value(); }
  bool take_format(nb::handle h) { return (out_.format = as_memory_format(h)).has_value(); }
  [[noreturn]] static void refuse(nb::handle h) {
    FL_RAISE(TypeError,
             "to() received an invalid combination of arguments - got ({}), but expected a dtype, a device, "
             "both, or a Tensor, then non_blocking and copy (bool), memory_format",
             python_type(h));
  }

  Target out_;
};

/// self, where nothing had to be done.
nb::object convert_object(nb::handle self, const Target& to) {
  const Tensor& t = *as_tensor(self);
  Tensor out;
  {
    nb::gil_scoped_release unlocked;
    out = convert(t, to);
  }
  return out.is_same(t) ? nb::borrow(self) : wrap(out);
}

template <DType D>
nb::object cast(nb::handle self, nb::handle format) {
  return convert_object(self, {D, std::nullopt, as_memory_format(format), false});
}

}  // namespace

void bind_conversion(nb::module_&) {
  TensorMethods c;
  c.def("to", [](nb::handle self, nb::args args, nb::kwargs kwargs) {
    const Reader reader(args, kwargs);
    return convert_object(self, reader.target());
  });
  c.def(
      "cpu",
      [](nb::handle self, nb::handle format) {
        return convert_object(self, {std::nullopt, Device{}, as_memory_format(format), false});
      },
      nb::arg("memory_format") = nb::none());
#define FL_CAST(python, dtype) c.def(python, cast<DType::dtype>, nb::arg("memory_format") = nb::none());
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
  FL_CAST("cfloat", Complex64)
  FL_CAST("cdouble", Complex128)
#undef FL_CAST
}

}  // namespace fl::python
