// Kernels on a GPU: machine code loaded by the driver, launched into the current stream.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/runtime/cuda/device.h"

namespace fl::runtime::cuda {

/// Compiles kernels for a device, or finds them compiled. Those that have no code for GPUs run on the CPU
/// (host_kernel.h).
std::vector<std::shared_ptr<const codegen::Launchable>> compile(std::span<const loop::Kernel> kernels,
                                                                int device);

}  // namespace fl::runtime::cuda
