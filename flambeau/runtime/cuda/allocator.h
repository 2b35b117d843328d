// The caching allocator of a GPU. Memory is handed out in the order of streams: a block that was given back
// may be given out again at once for the same stream, whose earlier work comes first; for other streams it
// waits.
#pragma once
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/tensor/storage.h"

namespace fl::runtime::cuda {

/// Of the current stream of `device` at each allocation. Lives as long as the process.
Allocator& device_allocator(int device);

/// The block that holds `data` is also used by work put into s so far: it is given out again only after that.
void record_stream(int device, void* data, Stream s);
/// Address and size of the block that was given out and holds the address; raises RuntimeError where there is
/// none.
std::pair<char*, size_t> block_of(int device, const void* data);
/// No more than this part of the device's memory is taken, in (0, 1].
void set_memory_fraction(int device, double fraction);
/// Free and all bytes of the device, as the driver sees them.
std::pair<int64_t, int64_t> memory_info(int device);
/// The most bytes that were reserved since reset_peak().
int64_t peak_reserved(int device);

/// Page-locked host memory, cached: copies from and to it run beside the host.
void* allocate_pinned(size_t bytes);
void release_pinned(void* data);
/// Whether the address lies in page-locked memory.
bool is_pinned(const void* data);
/// Work put into s so far uses the block: it is given out again only after that.
void record_pinned(void* data, Stream s);

}  // namespace fl::runtime::cuda
