#include "flambeau/library/cuda/device_workspace.h"

#include "flambeau/base/error.h"

namespace fl::library::cuda {

void* FixedWorkspace::bytes(int64_t count) {
  FL_ASSERT(count <= size_, "{} bytes of scratch, {} are there", count, size_);
  return memory_;
}

}  // namespace fl::library::cuda
