// A compiled kernel, whatever it was compiled for.
#pragma once
#include <string>

#include "flambeau/loop/scalar_bits.h"

namespace fl::codegen {

using loop::ScalarBits;

/// What a launch gets, in the order of the kernel's buffers, sizes and params. Elements that are given by
/// value (loop::Buffer::by_value) are read at their addresses by launch().
struct LaunchArgs {
  void* const* buffers = nullptr;
  const int64_t* sizes = nullptr;
  const ScalarBits* params = nullptr;
};

class Launchable {
 public:
  virtual ~Launchable() = default;
  /// On the CPU the kernel has run when this returns; elsewhere it is in the device's current stream.
  virtual void launch(const LaunchArgs& args) const = 0;
  virtual const std::string& name() const = 0;
};

}  // namespace fl::codegen
