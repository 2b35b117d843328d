// The memory behind tensors, as bytes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "module.h"

namespace fl::python {
namespace {

struct StorageObject {
  Ref<Storage> storage;
};

void check_has_data(const StorageObject& s) {
  FL_CHECK(s.storage->has_data(), RuntimeError, "a storage on {} has no memory to read or write",
           s.storage->device().str());
}

bool on_host(const StorageObject& s) { return s.storage->device().type == DeviceType::CPU; }

/// Of memory that the host can reach.
uint8_t* bytes_of(const StorageObject& s) {
  check_has_data(s);
  FL_ASSERT(on_host(s), "bytes of {}", s.storage->device().str());
  return static_cast<uint8_t*>(s.storage->data());
}

/// Copies n bytes between any two memories; has happened when it returns.
void copy_memory(Device to_device, void* to, Device from_device, const void* from, int64_t n) {
  if (n == 0) return;
  const bool to_host = to_device.type == DeviceType::CPU;
  if (to_host && from_device.type == DeviceType::CPU)
    std::memmove(to, from, static_cast<size_t>(n));
  else
    allocator(to_host ? from_device : to_device).copy(to, from, static_cast<size_t>(n));
}

StorageObject copied_to(const StorageObject& s, Device device) {
  if (device.type == DeviceType::Meta || !s.storage->has_data()) {
    StorageObject out{Storage::without_data(device)};
    out.storage->resize(s.storage->bytes());
    return out;
  }
  StorageObject out{make_ref<Storage>(s.storage->bytes(), device)};
  copy_memory(device, out.storage->data(), s.storage->device(), s.storage->data(), s.storage->bytes());
  return out;
}

/// The storage, or a copy of it that the host can read.
StorageObject readable(const StorageObject& s) {
  check_has_data(s);
  return on_host(s) ? s : copied_to(s, Device{});
}

/// Writes a byte at `start`, `start + step`, ..., count of them, wherever the memory is.
void write_bytes(const StorageObject& s, int64_t start, int64_t step, int64_t count, uint8_t byte) {
  const StorageObject there = readable(s);
  uint8_t* bytes = bytes_of(there);
  for (int64_t k = 0; k < count; ++k) bytes[start + k * step] = byte;
  if (!on_host(s)) copy_memory(s.storage->device(), s.storage->data(), Device{}, bytes, s.storage->bytes());
}

int64_t position(const StorageObject& s, int64_t index) {
  const int64_t n = s.storage->bytes();
  FL_CHECK(index >= -n && index < n, IndexError, "index {} out of range for storage of size {}", index, n);
  return index < 0 ? index + n : index;
}

StorageObject make(nb::handle size, nb::handle device) {
  const Device d = device.is_none() ? Device{} : as_device(device).value_or(Device{});
  const std::optional<int64_t> n = as_int(size);
  if (n) {
    FL_CHECK(*n >= 0, RuntimeError, "UntypedStorage(): expected a size of 0 or more, got {}", *n);
    if (d.type == DeviceType::Meta) return {Storage::without_data(d)};
    return {make_ref<Storage>(*n, d)};
  }
  FL_CHECK(PySequence_Check(size.ptr()), TypeError,
           "UntypedStorage(): expected a size or a sequence of bytes, got {}", python_type(size));
  StorageObject out{make_ref<Storage>(static_cast<int64_t>(PySequence_Size(size.ptr())), Device{})};
  for (int64_t k = 0; k < out.storage->bytes(); ++k) bytes_of(out)[k] = nb::cast<uint8_t>(size[k]);
  return d == Device{} ? out : copied_to(out, d);
}

/// A copy of what a buffer holds.
StorageObject from_bytes(nb::handle buffer) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  StorageObject out{make_ref<Storage>(static_cast<int64_t>(view.len), Device{})};
  if (view.len > 0) std::memcpy(out.storage->data(), view.buf, static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return out;
}

/// The memory of a buffer itself, which lives as long as the storage.
StorageObject on_buffer(nb::handle buffer) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(buffer.ptr(), view, PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(buffer.ptr(), view, PyBUF_SIMPLE) != 0) {
      delete view;
      throw nb::python_error();
    }
  }
  const auto release = [](void* context) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire locked;
    auto* held = static_cast<Py_buffer*>(context);
    PyBuffer_Release(held);
    delete held;
  };
  return {make_ref<Storage>(view->buf, static_cast<int64_t>(view->len), Device{}, +release, view)};
}

nb::object to_bytes(const StorageObject& given) {
  const StorageObject s = readable(given);
  return nb::bytes(s.storage->bytes() ? bytes_of(s) : nullptr, static_cast<size_t>(s.storage->bytes()));
}

/// A memoryview that keeps the storage alive and shares its bytes.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const StorageObject& s = *nb::inst_ptr<StorageObject>(nb::handle(self));
  if (!s.storage->has_data()) {
    PyErr_SetString(PyExc_BufferError, "a storage without memory has no buffer");
    return -1;
  }
  if (!on_host(s)) {
    PyErr_Format(PyExc_BufferError, "the memory of a storage on %s can't be read by the host: use cpu()",
                 s.storage->device().str().c_str());
    return -1;
  }
  static char nothing;
  void* data = s.storage->bytes() ? s.storage->data() : &nothing;
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(s.storage->bytes()), 0, flags);
}

Sizes expect_sizes(nb::handle h, const char* where) {
  const std::optional<Sizes> sizes = as_int_list(h);
  FL_CHECK(sizes, TypeError, "{}: expected a list of integers, got {}", where, python_type(h));
  for (SymInt s : *sizes)
    FL_CHECK(s >= SymInt(0), RuntimeError, "{}: expected sizes and strides of at least 0, got {}", where,
             to_string(*sizes));
  return *sizes;
}

void check_strides(const Sizes& sizes, const Sizes& strides) {
  FL_CHECK(sizes.size() == strides.size(), RuntimeError,
           "setStorage: expected a stride for each size, got sizes {} and strides {}", to_string(sizes),
           to_string(strides));
}

/// Raises RuntimeError where a storage is too small for such a tensor.
void check_fits(const TensorSpec& spec, const Storage& storage) {
  FL_CHECK(spec.offset.expect_int() >= 0, RuntimeError, "setStorage: storage offset {} is negative",
           spec.offset);
  FL_CHECK(spec.storage_bytes().expect_int() <= storage.bytes(), RuntimeError,
           "setStorage: sizes {}, strides {}, storage offset {} require {} bytes, which are out of bounds "
           "for storage of size {}",
           to_string(spec.sizes), to_string(spec.strides), spec.offset, spec.storage_bytes(),
           storage.bytes());
}

Tensor tensor_on(const StorageObject& s, nb::handle dtype, int64_t offset, nb::handle sizes,
                 nb::handle strides) {
  const std::optional<DType> d = as_dtype(dtype);
  FL_CHECK(d, TypeError, "expected a dtype, got {}", python_type(dtype));
  TensorSpec spec;
  spec.sizes = expect_sizes(sizes, "a tensor on a storage");
  spec.strides =
      strides.is_none() ? contiguous_strides(spec.sizes) : expect_sizes(strides, "a tensor on a storage");
  check_strides(spec.sizes, spec.strides);
  spec.dtype = *d;
  spec.device = s.storage->device();
  spec.offset = offset;
  if (s.storage->has_data()) check_fits(spec, *s.storage);
  return Tensor(spec, s.storage);
}

/// Makes `t` a tensor on another storage.
void set_storage(const Tensor& t, const Tensor& from, int64_t offset, const Sizes& sizes,
                 const Sizes& strides) {
  check_strides(sizes, strides);
  TensorSpec spec = t.spec();
  spec.sizes = sizes;
  spec.strides = strides;
  spec.offset = offset;
  spec.dtype = from.dtype();
  spec.device = from.device();
  if (from.has_data()) check_fits(spec, *from.storage());
  t.impl()->spec = spec;
  t.impl()->storage = from.storage();
}

/// New sizes in place; memory is added where it does not suffice, and its elements are left as they come.
void resize(const Tensor& t, const Sizes& sizes, nb::handle format) {
  FL_CHECK(!t.requires_grad(), RuntimeError, "cannot resize variables that require grad");
  TensorSpec spec = t.spec();
  spec.sizes = sizes;
  spec.strides = strides_for(sizes, as_memory_format(format).value_or(MemoryFormat::Contiguous));
  if (t.has_data() && spec.storage_bytes().expect_int() > t.storage()->bytes())
    t.storage()->resize(spec.storage_bytes().expect_int());
  t.impl()->spec = spec;
}

}  // namespace

Tensor pinned(const Tensor& t) {
  FL_CHECK(t.device().type == DeviceType::CPU, RuntimeError,
           "cannot pin a tensor on {}: only dense CPU tensors can be pinned", t.device().str());
  if (!t.storage() || !t.has_data() || is_pinned(*t.storage())) return t;
  TensorSpec spec = t.spec();
  spec.offset = 0;
  return Tensor(spec, pinned_copy(t.data(), spec.storage_bytes().expect_int()));
}

void bind_storage(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {}};
  nb::class_<StorageObject>(m, "UntypedStorage", nb::is_weak_referenceable(), nb::dynamic_attr(),
                            nb::type_slots(slots))
      .def(
          "__init__",
          [](StorageObject* self, nb::handle size, nb::handle device) {
            new (self) StorageObject(make(size, device));
          },
          nb::arg("size") = 0, nb::kw_only(), nb::arg("device") = nb::none())
      .def("nbytes", [](const StorageObject& s) { return s.storage->bytes(); })
      .def("size", [](const StorageObject& s) { return s.storage->bytes(); })
      .def("__len__", [](const StorageObject& s) { return s.storage->bytes(); })
      .def("element_size", [](const StorageObject&) { return 1; })
      .def("data_ptr",
           [](const StorageObject& s) {
             return s.storage->has_data() ? reinterpret_cast<uintptr_t>(s.storage->data()) : 0;
           })
      .def_prop_ro("_cdata",
                   [](const StorageObject& s) { return reinterpret_cast<uintptr_t>(s.storage.get()); })
      .def_prop_ro("device", [](const StorageObject& s) { return wrap(s.storage->device()); })
      .def("__getitem__",
           [](nb::object self, nb::handle index) -> nb::object {
             const StorageObject& s = *nb::inst_ptr<StorageObject>(self);
             if (const auto i = as_int(index)) {
               const int64_t at = position(s, *i);
               uint8_t value = 0;
               check_has_data(s);
               copy_memory({}, &value, s.storage->device(), static_cast<char*>(s.storage->data()) + at, 1);
               return nb::int_(value);
             }
             const nb::object there = on_host(s) ? self : nb::cast(copied_to(s, Device{}));
             return nb::steal(PyMemoryView_FromObject(there.ptr()))[index];
           })
      .def("__setitem__",
           [](nb::object self, nb::handle index, nb::handle value) {
             const StorageObject& s = *nb::inst_ptr<StorageObject>(self);
             const auto byte = nb::cast<uint8_t>(value);
             if (const auto i = as_int(index)) return write_bytes(s, position(s, *i), 1, 1, byte);
             Py_ssize_t start, stop, step;
             if (!PySlice_Check(index.ptr()) || PySlice_Unpack(index.ptr(), &start, &stop, &step) != 0)
               throw nb::type_error("a storage is indexed by integers and slices");
             const Py_ssize_t n = PySlice_AdjustIndices(s.storage->bytes(), &start, &stop, step);
             write_bytes(s, start, step, n, byte);
           })
      .def("fill_",
           [](nb::object self, uint8_t value) {
             const StorageObject& s = *nb::inst_ptr<StorageObject>(self);
             write_bytes(s, 0, 1, s.storage->bytes(), value);
             return self;
           })
      .def(
          "copy_",
          [](nb::object self, const StorageObject& from, nb::handle) {
            const StorageObject& s = *nb::inst_ptr<StorageObject>(self);
            FL_CHECK(s.storage->bytes() == from.storage->bytes(), RuntimeError,
                     "copy_(): expected a storage of {} bytes, got {}", s.storage->bytes(),
                     from.storage->bytes());
            check_has_data(s);
            check_has_data(from);
            copy_memory(s.storage->device(), s.storage->data(), from.storage->device(), from.storage->data(),
                        s.storage->bytes());
            return self;
          },
          nb::arg("source"), nb::arg("non_blocking") = nb::none())
      .def("resize_",
           [](nb::object self, int64_t bytes) {
             FL_CHECK(bytes >= 0, RuntimeError, "resize_(): expected a size of 0 or more, got {}", bytes);
             const Ref<Storage>& storage = nb::inst_ptr<StorageObject>(self)->storage;
             FL_CHECK(storage->has_data(), RuntimeError, "Trying to resize storage that is not resizable");
             storage->resize(bytes);
             return self;
           })
      .def("resizable", [](const StorageObject& s) { return s.storage->has_data(); })
      .def("_copied_to", [](const StorageObject& s, Device device) { return copied_to(s, device); })
      .def(
          "is_pinned", [](const StorageObject& s, nb::handle) { return is_pinned(*s.storage); },
          nb::arg("device") = nb::none())
      .def(
          "pin_memory",
          [](nb::object self, nb::handle) -> nb::object {
            const StorageObject& s = *nb::inst_ptr<StorageObject>(self);
            FL_CHECK(on_host(s), TypeError,
                     "cannot pin a storage on {}: only memory of the CPU can be pinned",
                     s.storage->device().str());
            if (is_pinned(*s.storage)) return self;
            return nb::cast(StorageObject{pinned_copy(s.storage->data(), s.storage->bytes())});
          },
          nb::arg("device") = nb::none())
      .def("_bytes", to_bytes)
      .def_static("_from_bytes", from_bytes)
      .def_static("_on_buffer", on_buffer);
  TensorMethods c;
  c.def(
      "pin_memory",
      [](nb::object t, nb::handle) {
        const Tensor& self = expect_tensor(t, "pin_memory()");
        const Tensor out = pinned(self);
        return out.is_same(self) ? t : wrap(out);
      },
      nb::arg("device") = nb::none());
  c.def(
      "is_pinned", [](const Tensor& t, nb::handle) { return t.has_data() && is_pinned(*t.storage()); },
      nb::arg("device") = nb::none());
  c.def("untyped_storage", [](const Tensor& t) {
    FL_CHECK(t.storage(), RuntimeError, "a tensor that is being captured has no storage");
    return StorageObject{t.storage()};
  });
  c.def("_set_storage",
        [](const Tensor& t, const Tensor& from, int64_t offset, nb::handle sizes, nb::handle strides) {
          set_storage(t, from, offset, expect_sizes(sizes, "set_()"), expect_sizes(strides, "set_()"));
        });
  c.def(
      "_resize",
      [](const Tensor& t, nb::handle sizes, nb::handle format) {
        resize(t, expect_sizes(sizes, "resize_()"), format);
      },
      nb::arg(), nb::arg().none());
  m.def("_tensor_on_storage", tensor_on, nb::arg("storage"), nb::arg("dtype"), nb::arg("offset") = 0,
        nb::arg("sizes") = nb::tuple(), nb::arg("strides") = nb::none());
}

}  // namespace fl::python
