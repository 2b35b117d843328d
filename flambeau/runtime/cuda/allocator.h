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
/// Memory of graphs: blocks that are taken while a graph is recorded belong to its pool. They are given out
/// again for that pool alone, for every launch of its graphs uses them; 0 is all other memory.
using PoolId = uint64_t;
PoolId new_pool();
/// A graph uses the pool, until drop_pool(). With the last graph its memory goes the way of all kept memory.
void hold_pool(int device, PoolId pool);
void drop_pool(int device, PoolId pool);
/// From now on, what this thread takes on the device comes from the pool; blocks that other streams use, too,
/// are kept back until it ends. One at a time.
void begin_pool(int device, PoolId pool);
void end_pool(int device);
/// The streams of record_stream() for the block at `data` since the last call; none unless record_count()
/// has changed.
std::vector<CUstream> take_other_streams(int device, void* data);
uint64_t record_count();

/// No more than this part of the device's memory is taken, in (0, 1].
void set_memory_fraction(int device, double fraction);
/// Free and all bytes of the device, as the driver sees them.
std::pair<int64_t, int64_t> memory_info(int device);
/// The most bytes that were reserved since reset_peak().
int64_t peak_reserved(int device);

struct Counter {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(int64_t n);  ///< below 0: taken away
};
struct PoolFigures {
  Counter blocks, bytes, segments,
      reserved_bytes;                         ///< blocks and bytes: given out; segments: from the device
  int64_t split_blocks = 0, split_bytes = 0;  ///< free, in segments of which other parts may be in use
};
struct MemoryFigures {
  PoolFigures all, small, large;      ///< by the size of blocks: up to 1 MiB, larger
  int64_t retries = 0, failures = 0;  ///< allocations after kept memory was given back; those that failed
};
MemoryFigures memory_figures(int device);
/// Of memory_figures(): peaks to what is current, or sums of what came and went to 0.
void reset_figures(int device, bool peaks);

/// Page-locked host memory, cached: copies from and to it run beside the host.
void* allocate_pinned(size_t bytes);
void release_pinned(void* data);
/// Whether the address lies in page-locked memory.
bool is_pinned(const void* data);
/// Work put into s so far uses the block: it is given out again only after that.
void record_pinned(void* data, Stream s);
/// The block at the address is not given out again while what this returns lives.
std::shared_ptr<const void> hold_pinned(void* data);

}  // namespace fl::runtime::cuda
