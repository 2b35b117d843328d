#include "flambeau/runtime/cuda/strided_copy.h"

#include "flambeau/op/op.h"
#include "flambeau/runtime/by_definition.h"

namespace fl::runtime::cuda {

void copy_strided(Device device, const OperandLayout& to, void* to_data, const OperandLayout& from,
                  const void* from_data) {
  static const OpInfo& copy = require_operator("copy(");
  const Tensor target = tensor_on(device, to, to_data);
  Value args[] = {Value(target), Value(tensor_on(device, from, const_cast<void*>(from_data))), Value(false)};
  backend().run_into(copy, args, &target);
}

}  // namespace fl::runtime::cuda
