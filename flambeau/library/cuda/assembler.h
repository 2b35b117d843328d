// PTX to machine code beside the driver, which does one kernel at a time.
#pragma once
#include <string>

namespace fl::library::cuda {

/// The cubin of a PTX module for compute capability major.minor = capability / 10 . capability % 10, by
/// nvJitLink. Empty where that library is not there or does not take the text: the driver takes PTX, too.
/// Safe to call from several threads.
std::string assemble(const std::string& ptx, int capability);

/// Its version and name for cache keys; empty where it is not there.
std::string assembler_version();

}  // namespace fl::library::cuda
