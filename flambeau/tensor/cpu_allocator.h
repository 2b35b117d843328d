// The caching allocator of host memory.
#pragma once
#include "flambeau/tensor/storage.h"

namespace fl {

/// Blocks up to 1 GiB come in size classes and are kept for reuse: the small ones in lists of the thread, the
/// rest in lists under a lock. A block may be released by any thread.
Allocator& cpu_allocator();

/// Bytes that a request of `bytes` takes: a multiple of 64 up to 1 KiB, then one of four steps an octave.
size_t cpu_block_size(size_t bytes);

}  // namespace fl
