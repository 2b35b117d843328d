// Kernels that run on the CPU for a GPU.
#pragma once
#include <memory>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/loop/ir.h"

namespace fl::runtime::cuda {

/// For functions without code for GPUs (transcendental ones in float64): the memory of its buffers is copied
/// to the host, what it wrote is copied back, and the host waits.
std::shared_ptr<const codegen::Launchable> host_kernel(const loop::Kernel& k, int device);

}  // namespace fl::runtime::cuda
