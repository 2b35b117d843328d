// Runs of programs as CUDA graphs.
#pragma once
#include <functional>
#include <memory>

#include "flambeau/runtime/device_runtime.h"

namespace fl::runtime::cuda {

/// As DeviceRuntime says. Scratch memory of library calls is shared by the recordings of a stream, which run
/// one after the other.
bool can_record_program(int device);
std::unique_ptr<Recording> record_program(int device, const std::function<void(const Recording&)>& work);

}  // namespace fl::runtime::cuda
