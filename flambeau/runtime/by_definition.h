// Library calls by what their operators mean, where no library has them.
#pragma once
#include "flambeau/runtime/library_calls.h"

namespace fl::runtime {

/// A tensor on memory that is not its own.
Tensor tensor_on(Device device, const OperandLayout& layout, void* data);

/// The operator's decomposition, as eager calls on the device. Raises InternalError where it has none.
PreparedCall prepare_by_definition(const CallArguments& call, Device device);

}  // namespace fl::runtime
