// Copies of bytes and of strided elements between GPUs and the host.
#pragma once
#include <span>

#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/library_calls.h"

namespace fl::runtime::cuda {

/// In the current stream of the device; either side may be any memory. Has happened when it returns.
void copy_and_wait(int device, void* to, const void* from, size_t bytes);
/// As above, but returns at once where both sides are on devices or page-locked.
void copy_bytes(Stream s, void* to, const void* from, size_t bytes);

/// Device memory for the calling thread's library calls in the current stream: at least `bytes`, aligned to
/// 256, valid until the next call for the same stream.
void* workspace(int device, size_t bytes);

}  // namespace fl::runtime::cuda
