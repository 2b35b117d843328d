// What kernels on a GPU report: the first failed check of each device, in memory that the host sees.
#pragma once
#include <cstdint>
#include <memory>

#include "flambeau/codegen/gpu/compile.h"

namespace fl::runtime::cuda {

/// The slot that the device's kernels write to; in page-locked memory.
codegen::GpuErrorSlot* report_slot(int device);
/// A number for a kernel's checks. The code lives as long as the process from then on.
int64_t number_kernel(std::shared_ptr<const codegen::GpuCode> code);
/// Raises IndexError where a kernel of the device has reported a failed check since the last call.
void raise_reports(int device);

}  // namespace fl::runtime::cuda
