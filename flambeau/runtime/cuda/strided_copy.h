// Copies between layouts on a device.
#pragma once
#include "flambeau/runtime/library_calls.h"
#include "flambeau/tensor/device.h"

namespace fl::runtime::cuda {

/// to[i...] = from[i...] by a kernel in the device's current stream, for all i below to.sizes, which are
/// from's, too; strides of 0 in `from` repeat. The two do not overlap.
void copy_strided(Device device, const OperandLayout& to, void* to_data, const OperandLayout& from,
                  const void* from_data);

}  // namespace fl::runtime::cuda
