#include "flambeau/runtime/cuda/copy.h"

#include <map>
#include <mutex>

#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/graph.h"

namespace fl::runtime::cuda {

namespace {
CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }
}  // namespace

void copy_bytes(Stream s, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  activate(s.device);
  // Unified addresses: the driver finds out where each side is; from pageable memory it has read when it
  // returns.
  FL_CUDA(cuMemcpyAsync, address(to), address(from), bytes, s.handle);
}

void copy_and_wait(int device, void* to, const void* from, size_t bytes) {
  const Stream s = current_stream(device);
  if (recording() && is_recorded(s)) refuse_in_recording("this waits for the device");
  copy_bytes(s, to, from, bytes);
  synchronize(s);
}

void* workspace(int device, size_t bytes) {
  struct Memory {
    void* data = nullptr;
    size_t bytes = 0;
  };
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<int, CUstream>, Memory>;
  const Stream s = current_stream(device);
  if (recording()) {
    // Of the graph's own memory, for the time of the graph's life.
    void* data = device_allocator(device).allocate(bytes);
    device_allocator(device).release(data, bytes);
    return data;
  }
  std::lock_guard lock(mutex);
  Memory& m = all[{device, s.handle}];
  if (m.bytes < bytes) {
    Allocator& memory = device_allocator(device);
    // Calls that use the old block come first in the stream.
    if (m.data) memory.release(m.data, m.bytes);
    m.data = memory.allocate(bytes);
    m.bytes = bytes;
  }
  return m.data;
}

}  // namespace fl::runtime::cuda
