#include "flambeau/runtime/cuda/strided_copy.h"

#include "flambeau/op/op.h"

namespace fl::runtime::cuda {
namespace {

/// A tensor on memory that is not its own.
Tensor tensor_on(Device device, const OperandLayout& layout, void* data) {
  TensorSpec spec;
  for (const int64_t size : layout.sizes) spec.sizes.push_back(size);
  for (const int64_t stride : layout.strides) spec.strides.push_back(stride);
  spec.dtype = layout.dtype;
  spec.device = device;
  const int64_t bytes = spec.storage_bytes().expect_int();
  return Tensor(spec, make_ref<Storage>(
                          data, bytes, device, [](void*) {}, nullptr));
}

}  // namespace

void copy_strided(Device device, const OperandLayout& to, void* to_data, const OperandLayout& from,
                  const void* from_data) {
  static const OpInfo& copy = require_operator("copy(");
  const Tensor target = tensor_on(device, to, to_data);
  Value args[] = {Value(target), Value(tensor_on(device, from, const_cast<void*>(from_data))), Value(false)};
  backend().run_into(copy, args, &target);
}

}  // namespace fl::runtime::cuda
