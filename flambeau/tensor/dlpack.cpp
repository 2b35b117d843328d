#include "flambeau/tensor/dlpack.h"

#include <memory>

namespace fl::dlpack {

namespace {

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80);

/// What a tensor that was given away keeps alive.
template <class Managed>
struct Export {
  Managed managed;
  Tensor tensor;
  SmallVector<int64_t, 8> shape, strides;
};

template <class Managed>
std::unique_ptr<Export<Managed>> make_export(const Tensor& t) {
  FL_CHECK(t.defined(), RuntimeError, "expected a tensor, got an undefined one (None)");
  auto e = std::make_unique<Export<Managed>>();
  e->tensor = t;
  for (int d = 0; d < t.dim(); ++d) {
    const int64_t size = t.sizes()[d].expect_int();
    e->shape.push_back(size);
    // Strides of sizes below 2 mean nothing; receivers that test for contiguity expect them to be small.
    e->strides.push_back(size < 2 ? 1 : t.strides()[d].expect_int());
  }
  e->managed.context = e.get();
  e->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  e->managed.tensor = {.data = t.data(),
                       .device = device_of(t.device()),
                       .ndim = t.dim(),
                       .dtype = data_type(t.dtype()),
                       .shape = e->shape.data(),
                       .strides = e->strides.data(),
                       .byte_offset = 0};
  return e;
}

TensorSpec read_spec(const DLTensor& t) {
  FL_CHECK(t.ndim >= 0, ValueError, "expected a DLPack tensor of 0 dimensions or more, got {}", t.ndim);
  FL_CHECK(t.ndim == 0 || t.shape, ValueError,
           "expected a DLPack tensor with a shape, got none for {} dimensions", t.ndim);
  TensorSpec spec;
  spec.dtype = dtype_of(t.dtype);
  spec.device = device_of(t.device);
  for (int d = 0; d < t.ndim; ++d) {
    FL_CHECK(t.shape[d] >= 0, ValueError, "expected DLPack sizes of 0 or more, got {} in dimension {}",
             t.shape[d], d);
    spec.sizes.push_back(t.shape[d]);
  }
  if (t.strides) {
    for (int d = 0; d < t.ndim; ++d) {
      FL_CHECK(t.strides[d] >= 0 || t.shape[d] < 2, ValueError,
               "expected DLPack strides of 0 or more, got {} in dimension {}", t.strides[d], d);
      spec.strides.push_back(std::max<int64_t>(t.strides[d], 0));
    }
  } else {
    spec.strides = contiguous_strides(spec.sizes);
  }
  return spec;
}

template <class Managed>
Tensor import(Managed* managed) {
  FL_CHECK(managed, ValueError, "expected a DLPack tensor, got null");
  const DLTensor& t = managed->tensor;
  const TensorSpec spec = read_spec(t);
  const int64_t bytes = spec.storage_bytes().expect_int();
  FL_CHECK(t.data || bytes == 0, ValueError, "expected a DLPack tensor with data, got null for {} bytes",
           bytes);
  char* data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
  const auto release = [](void* context) {
    auto* m = static_cast<Managed*>(context);
    if (m->deleter) m->deleter(m);
  };
  return Tensor(spec, make_ref<Storage>(data, bytes, spec.device, release, managed));
}

}  // namespace

DLDataType data_type(DType d) {
  const auto bits = static_cast<uint8_t>(size_of(d) * 8);
  switch (d) {
    case DType::Bool:
      return {TypeCode::Bool, bits, 1};
    case DType::UInt8:
      return {TypeCode::UInt, bits, 1};
    case DType::BFloat16:
      return {TypeCode::BFloat, bits, 1};
    default:
      return {is_complex(d) ? TypeCode::Complex : is_floating(d) ? TypeCode::Float : TypeCode::Int, bits, 1};
  }
}

DType dtype_of(DLDataType type) {
  FL_CHECK(type.lanes == 1, NotImplementedError, "expected a DLPack type of 1 lane, got {} lanes",
           type.lanes);
  for (int d = 0; d < kDTypeCount; ++d) {
    const DLDataType known = data_type(static_cast<DType>(d));
    if (known.code == type.code && known.bits == type.bits) return static_cast<DType>(d);
  }
  FL_RAISE(NotImplementedError, "no dtype for the DLPack type of code {} and {} bits",
           static_cast<int>(type.code), type.bits);
}

DLDevice device_of(Device d) {
  switch (d.type) {
    case DeviceType::CPU:
      return {DeviceKind::Cpu, 0};
    case DeviceType::CUDA:
      return {DeviceKind::Cuda, d.index};
    case DeviceType::Meta:
      break;
  }
  FL_RAISE(NotImplementedError, "DLPack has no device for {}", d.str());
}

Device device_of(DLDevice d) {
  switch (d.kind) {
    case DeviceKind::Cpu:
    case DeviceKind::CudaHost:  // Pinned, and as good as any other host memory.
      return {DeviceType::CPU, 0};
    case DeviceKind::Cuda:
    case DeviceKind::CudaManaged:
      FL_CHECK(d.index >= 0 && d.index < 128, ValueError, "expected a device index from 0 to 127, got {}",
               d.index);
      return {DeviceType::CUDA, static_cast<int8_t>(d.index)};
  }
  FL_RAISE(NotImplementedError, "no device for the DLPack device type {}", static_cast<int32_t>(d.kind));
}

DLManagedTensor* to_dlpack(const Tensor& t) { return &make_export<DLManagedTensor>(t).release()->managed; }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t, uint64_t flags) {
  auto* managed = &make_export<DLManagedTensorVersioned>(t).release()->managed;
  managed->version = kVersion;
  managed->flags = flags;
  return managed;
}

Tensor from_dlpack(DLManagedTensor* managed) { return import(managed); }

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  FL_CHECK(managed && managed->version.major == kVersion.major, NotImplementedError,
           "expected DLPack version {}.x, got {}", kVersion.major, managed ? managed->version.major : 0);
  return import(managed);
}

}  // namespace fl::dlpack
