// Exchange of tensors with other libraries in the same process, without a copy (github.com/dmlc/dlpack).
#pragma once
#include <cstdint>

#include "flambeau/tensor/tensor.h"

namespace fl::dlpack {

// The structures of the DLPack ABI, versions 0.8 and 1.x.

enum class DeviceKind : int32_t { Cpu = 1, Cuda = 2, CudaHost = 3, CudaManaged = 13 };
struct DLDevice {
  DeviceKind kind;
  int32_t index;
};

enum class TypeCode : uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  OpaqueHandle = 3,
  BFloat = 4,
  Complex = 5,
  Bool = 6
};
struct DLDataType {
  TypeCode code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

struct Version {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
};
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
inline constexpr Version kVersion{1, 0};

DLDataType data_type(DType d);
/// Raises NotImplementedError on vectors and on types that have no dtype.
DType dtype_of(DLDataType type);
DLDevice device_of(Device d);
Device device_of(DLDevice d);

/// Shares the tensor's storage until the receiver calls the deleter. Raises UnsupportedError on a tensor
/// without data. Whether the tensor requires gradients is the caller's question.
DLManagedTensor* to_dlpack(const Tensor& t);
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t, uint64_t flags = 0);

/// Takes the tensor over: its deleter is called with the last tensor that uses the memory. If this raises,
/// the argument still belongs to the caller. Strides must not be negative.
Tensor from_dlpack(DLManagedTensor* managed);
Tensor from_dlpack(DLManagedTensorVersioned* managed);

}  // namespace fl::dlpack
