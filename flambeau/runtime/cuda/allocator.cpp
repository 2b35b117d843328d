#include "flambeau/runtime/cuda/allocator.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/graph.h"

namespace fl::runtime::cuda {

using library::cuda::driver;

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kUnit = 512;    // Blocks are multiples of it, and aligned to it.
constexpr size_t kSmall = kMiB;  // Blocks up to this size share segments of kSmallSegment bytes.
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kShared = 10 * kMiB;  // Blocks up to this size share segments of kSegment bytes.
constexpr size_t kSegment = 20 * kMiB;
constexpr size_t kSegmentUnit = 2 * kMiB;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The pool that this thread takes memory from.
struct CurrentPool {
  int device = -1;
  PoolId pool = 0;
};
thread_local CurrentPool t_pool;
std::atomic<uint64_t> g_record_count{0};

/// A piece of a segment; neighbours in memory are linked.
struct Block {
  char* data;
  size_t size;
  CUstream stream;
  bool small;
  PoolId pool;
  bool used = false;
  Block *before = nullptr, *after = nullptr;
  std::vector<CUstream> other_streams;  // that used it, too
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->data < b->data;
  }
};

class DeviceAllocator final : public Allocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}

  void* allocate(size_t bytes) override {
    const CUstream stream = current_stream(device_).handle;
    const size_t size = round_up(std::max<size_t>(bytes, 1), kUnit);
    const PoolId pool = t_pool.device == device_ ? t_pool.pool : 0;
    std::lock_guard lock(mutex_);
    ++stats_.allocations;
    if (!waiting_.empty()) collect(false);
    Block* block = find(size, stream, pool);
    if (!block) block = make(size, bytes, stream, pool);
    split(block, size);
    block->used = true;
    blocks_.emplace(block->data, block);
    count(&PoolFigures::blocks, block->small, 1);
    count(&PoolFigures::bytes, block->small, static_cast<int64_t>(block->size));
    stats_.allocated += static_cast<int64_t>(block->size);
    stats_.peak = std::max(stats_.peak, stats_.allocated);
    return block->data;
  }

  void release(void* data, size_t) override {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(data);
    FL_ASSERT(it != blocks_.end(), "memory that cuda:{} did not give out", device_);
    Block* block = it->second;
    blocks_.erase(it);
    stats_.allocated -= static_cast<int64_t>(block->size);
    count(&PoolFigures::blocks, block->small, -1);
    count(&PoolFigures::bytes, block->small, -static_cast<int64_t>(block->size));
    if (block->other_streams.empty()) return put_back(block);
    if (t_pool.device == device_)
      kept_back_[t_pool.pool].push_back(block);  // events of streams that are recorded never happen
    else
      wait_for_other_streams(block);
  }

  void copy(void* to, const void* from, size_t bytes) override { copy_and_wait(device_, to, from, bytes); }

  AllocatorStats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_peak() override {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.allocated;
    peak_reserved_ = stats_.reserved;
  }
  void empty_cache() override {
    std::lock_guard lock(mutex_);
    free_segments();
  }

  void record(void* data, CUstream stream) {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(data);
    if (it == blocks_.end() || it->second->stream == stream) return;
    std::vector<CUstream>& list = it->second->other_streams;
    if (std::find(list.begin(), list.end(), stream) == list.end()) list.push_back(stream);
    ++g_record_count;
  }
  std::vector<CUstream> take_other_streams(void* data) {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(data);
    return it == blocks_.end() ? std::vector<CUstream>{} : std::exchange(it->second->other_streams, {});
  }
  void hold_pool(PoolId pool) {
    std::lock_guard lock(mutex_);
    ++pool_graphs_[pool];
  }
  void drop_pool(PoolId pool) {
    std::lock_guard lock(mutex_);
    if (--pool_graphs_.at(pool) == 0) pool_graphs_.erase(pool);
  }
  void end_pool(PoolId pool) {
    std::lock_guard lock(mutex_);
    for (Block* block : kept_back_[pool]) wait_for_other_streams(block);
    kept_back_.erase(pool);
  }
  std::pair<char*, size_t> block_of(const char* at) const {
    std::lock_guard lock(mutex_);
    for (const auto& [data, block] : blocks_)
      if (at >= block->data && at < block->data + block->size) return {block->data, block->size};
    FL_RAISE(RuntimeError, "cuda:{} has no memory at this address that this library gave out", device_);
  }
  void set_limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  MemoryFigures figures() const {
    std::lock_guard lock(mutex_);
    MemoryFigures out = figures_;
    for (const auto& [place, list] : free_)
      for (const Block* b : list) {
        if (!b->before && !b->after) continue;
        for (PoolFigures* pool : {&out.all, b->small ? &out.small : &out.large}) {
          ++pool->split_blocks;
          pool->split_bytes += static_cast<int64_t>(b->size);
        }
      }
    return out;
  }
  void reset_figures(bool peaks) {
    std::lock_guard lock(mutex_);
    for (PoolFigures* pool : {&figures_.all, &figures_.small, &figures_.large})
      for (Counter* c : {&pool->blocks, &pool->bytes, &pool->segments, &pool->reserved_bytes}) {
        if (peaks)
          c->peak = c->current;
        else
          c->allocated = c->freed = 0;
      }
    if (!peaks) figures_.retries = figures_.failures = 0;
  }
  int64_t peak_reserved() const {
    std::lock_guard lock(mutex_);
    return peak_reserved_;
  }

 private:
  using Free = std::set<Block*, BySize>;
  using Place = std::tuple<PoolId, CUstream, bool>;  // the last: of small blocks
  struct Waiting {
    Block* block;
    std::unique_ptr<Event> event;
    bool last;  // of the block's events
  };

  void count(Counter PoolFigures::*what, bool small, int64_t n) {
    (figures_.all.*what).add(n);
    PoolFigures& pool = small ? figures_.small : figures_.large;
    (pool.*what).add(n);
  }

  Free& free_list(const Block& b) { return free_[{b.pool, b.stream, b.small}]; }

  Block* find(size_t size, CUstream stream, PoolId pool) {
    Block wanted{nullptr, size, stream, size <= kSmall, pool};
    Free& list = free_list(wanted);
    auto it = list.lower_bound(&wanted);
    if (it == list.end()) return nullptr;
    // A large block is not cut for something much smaller than it.
    if (size > kShared && (*it)->size >= size + kSegment) return nullptr;
    Block* block = *it;
    list.erase(it);
    return block;
  }

  Block* make(size_t size, size_t requested, CUstream stream, PoolId pool) {
    const bool small = size <= kSmall;
    const size_t bytes = small ? kSmallSegment : size < kShared ? kSegment : round_up(size, kSegmentUnit);
    void* data = from_driver(bytes);
    if (!data && !recording()) {  // else the host can't wait for the device
      ++figures_.retries;
      collect(true);
      free_segments();
      if (Block* block = find(size, stream, pool)) return block;
      data = from_driver(bytes);
    }
    if (!data) {
      ++figures_.failures;
      const auto [free, total] = memory_info(device_);
      FL_RAISE(OutOfMemoryError,
               "CUDA out of memory. Tried to allocate {} bytes on cuda:{}, which has {} bytes of which {} "
               "are free; "
               "this process has {} bytes in tensors and {} reserved{}",
               requested, device_, total, free, stats_.allocated, stats_.reserved,
               limit_ < total ? fmt::format(", and may take {}", limit_) : "");
    }
    stats_.reserved += static_cast<int64_t>(bytes);
    peak_reserved_ = std::max(peak_reserved_, stats_.reserved);
    count(&PoolFigures::segments, small, 1);
    count(&PoolFigures::reserved_bytes, small, static_cast<int64_t>(bytes));
    return new Block{static_cast<char*>(data), bytes, stream, small, pool};
  }

  /// Null where the device has no more, or no more may be taken.
  void* from_driver(size_t bytes) {
    if (stats_.reserved + static_cast<int64_t>(bytes) > limit_) return nullptr;
    activate(device_);
    const UnrecordedCalls allowed;
    CUdeviceptr out = 0;
    const CUresult result = driver().cuMemAlloc(&out, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    if (result != CUDA_SUCCESS) library::cuda::raise_error(result, "cuMemAlloc");
    return reinterpret_cast<void*>(out);
  }

  void split(Block* block, size_t size) {
    const size_t rest = block->size - size;
    if (block->small ? rest < kUnit : rest <= kSmall) return;
    auto* tail = new Block{block->data + size, rest, block->stream, block->small, block->pool};
    tail->before = block;
    tail->after = block->after;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->size = size;
    free_list(*tail).insert(tail);
  }

  void put_back(Block* block) {
    block->used = false;
    Free& list = free_list(*block);
    const auto swallow = [&](Block* a, Block* b) {  // b follows a
      a->size += b->size;
      a->after = b->after;
      if (a->after) a->after->before = a;
      delete b;
    };
    const auto is_free = [&](Block* b) { return b && !b->used && list.contains(b); };
    if (is_free(block->after)) {
      list.erase(block->after);
      swallow(block, block->after);
    }
    if (is_free(block->before)) {
      Block* before = block->before;
      list.erase(before);
      swallow(before, block);
      block = before;
    }
    list.insert(block);
  }

  void wait_for_other_streams(Block* block) {
    for (CUstream s : block->other_streams) {
      auto event = std::make_unique<Event>(device_, false);
      event->record({s, device_});
      waiting_.push_back({block, std::move(event), s == block->other_streams.back()});
    }
    block->other_streams.clear();
  }

  /// Takes back blocks that other streams are done with; or waits for them.
  void collect(bool wait) {
    if (recording()) return;
    const UnrecordedCalls allowed;  // for what other threads record
    while (!waiting_.empty()) {
      Waiting& w = waiting_.front();
      if (wait)
        w.event->synchronize();
      else if (!w.event->has_happened())
        return;
      if (w.last) put_back(w.block);
      waiting_.pop_front();
    }
  }

  void free_segments() {
    // Waiting for the device would spoil what another thread records.
    const DeviceWait permission(device_, DeviceWait::Try{});
    if (!permission) return;
    bool waited = false;
    for (auto& [place, list] : free_) {
      if (pool_graphs_.contains(std::get<PoolId>(place))) continue;
      for (auto it = list.begin(); it != list.end();) {
        Block* b = *it;
        if (b->before || b->after) {
          ++it;
          continue;
        }
        if (!waited) {
          activate(device_);
          FL_CUDA(cuCtxSynchronize);
          waited = true;
        }
        FL_CUDA(cuMemFree, reinterpret_cast<CUdeviceptr>(b->data));
        stats_.reserved -= static_cast<int64_t>(b->size);
        count(&PoolFigures::segments, b->small, -1);
        count(&PoolFigures::reserved_bytes, b->small, -static_cast<int64_t>(b->size));
        it = list.erase(it);
        delete b;
      }
    }
  }

  const int device_;
  mutable std::mutex mutex_;
  std::map<Place, Free> free_;
  std::map<PoolId, int> pool_graphs_;                // how many graphs use a pool
  std::map<PoolId, std::vector<Block*>> kept_back_;  // until end_pool()
  std::unordered_map<void*, Block*> blocks_;         // those that are given out
  std::deque<Waiting> waiting_;
  AllocatorStats stats_;
  MemoryFigures figures_;
  int64_t peak_reserved_ = 0;
  int64_t limit_ = INT64_MAX;
};

DeviceAllocator& instance(int device) {
  static std::deque<DeviceAllocator>& all = *[] {
    auto* list = new std::deque<DeviceAllocator>;  // Tensors may outlive statics.
    for (int d = 0; d < device_count(); ++d) list->emplace_back(d);
    return list;
  }();
  check_device(device);
  return all[static_cast<size_t>(device)];
}

/// Page-locked blocks in sizes of powers of two.
class PinnedMemory {
 public:
  void* allocate(size_t bytes) {
    size_t size = kUnit;
    while (size < bytes) size *= 2;
    std::lock_guard lock(mutex_);
    collect();
    std::vector<void*>& kept = free_[size];
    if (!kept.empty()) {
      void* data = kept.back();
      kept.pop_back();
      return data;
    }
    activate(current_device());
    const UnrecordedCalls allowed;
    void* data = nullptr;
    FL_CUDA(cuMemHostAlloc, &data, size, CU_MEMHOSTALLOC_PORTABLE);
    blocks_.emplace(static_cast<char*>(data), Pinned{size, {}, 0});
    return data;
  }
  void release(void* data) {
    std::lock_guard lock(mutex_);
    Pinned& block = blocks_.at(static_cast<char*>(data));
    if (block.events.empty() && block.holders == 0)
      free_[block.size].push_back(data);
    else
      waiting_.push_back(data);
  }
  std::shared_ptr<const void> hold(void* data) {
    std::lock_guard lock(mutex_);
    const auto it = containing(data);
    if (it == blocks_.end()) return nullptr;
    ++it->second.holders;
    return {it->first, [this](char* block) {
              std::lock_guard unlock(mutex_);
              --blocks_.at(block).holders;
            }};
  }
  void record(void* data, Stream s) {
    auto event = std::make_unique<Event>(s.device, false);
    event->record(s);
    std::lock_guard lock(mutex_);
    if (auto it = containing(data); it != blocks_.end()) it->second.events.push_back(std::move(event));
  }
  bool contains(const void* data) {
    std::lock_guard lock(mutex_);
    return containing(data) != blocks_.end();
  }

 private:
  struct Pinned {
    size_t size;
    std::vector<std::unique_ptr<Event>> events;
    int holders = 0;  // graphs that read or write it at every launch
  };
  std::map<char*, Pinned>::iterator containing(const void* data) {
    auto* at = const_cast<char*>(static_cast<const char*>(data));
    auto it = blocks_.upper_bound(at);
    if (it == blocks_.begin()) return blocks_.end();
    --it;
    return at < it->first + it->second.size ? it : blocks_.end();
  }
  void collect() {
    if (recording()) return;
    std::erase_if(waiting_, [&](void* data) {
      Pinned& block = blocks_.at(static_cast<char*>(data));
      std::erase_if(block.events, [](const auto& e) { return e->has_happened(); });
      if (!block.events.empty() || block.holders > 0) return false;
      free_[block.size].push_back(data);
      return true;
    });
  }

  std::mutex mutex_;
  std::map<char*, Pinned> blocks_;  // all
  std::map<size_t, std::vector<void*>> free_;
  std::vector<void*> waiting_;
};

PinnedMemory& pinned() {
  static PinnedMemory& memory = *new PinnedMemory;
  return memory;
}

}  // namespace

Allocator& device_allocator(int device) { return instance(device); }
void record_stream(int device, void* data, Stream s) { instance(device).record(data, s.handle); }
std::pair<char*, size_t> block_of(int device, const void* data) {
  return instance(device).block_of(static_cast<const char*>(data));
}
PoolId new_pool() {
  static std::atomic<PoolId> count{0};
  return ++count;
}
void hold_pool(int device, PoolId pool) { instance(device).hold_pool(pool); }
void drop_pool(int device, PoolId pool) { instance(device).drop_pool(pool); }
void begin_pool(int device, PoolId pool) { t_pool = {device, pool}; }
void end_pool(int device) {
  const PoolId pool = std::exchange(t_pool, {}).pool;
  instance(device).end_pool(pool);
}
std::vector<CUstream> take_other_streams(int device, void* data) {
  return instance(device).take_other_streams(data);
}
uint64_t record_count() { return g_record_count.load(std::memory_order_relaxed); }
void Counter::add(int64_t n) {
  current += n;
  peak = std::max(peak, current);
  (n > 0 ? allocated : freed) += std::abs(n);
}
MemoryFigures memory_figures(int device) { return instance(device).figures(); }
void reset_figures(int device, bool peaks) { instance(device).reset_figures(peaks); }
int64_t peak_reserved(int device) { return instance(device).peak_reserved(); }

void set_memory_fraction(int device, double fraction) {
  FL_CHECK(fraction > 0 && fraction <= 1, ValueError,
           "expected a fraction of the device's memory in (0, 1], got {}", fraction);
  instance(device).set_limit(static_cast<int64_t>(fraction * static_cast<double>(facts(device).total_bytes)));
}

std::pair<int64_t, int64_t> memory_info(int device) {
  activate(device);
  size_t free = 0, total = 0;
  FL_CUDA(cuMemGetInfo, &free, &total);
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

void* allocate_pinned(size_t bytes) { return pinned().allocate(bytes); }
void release_pinned(void* data) { pinned().release(data); }
bool is_pinned(const void* data) { return pinned().contains(data); }
void record_pinned(void* data, Stream s) { pinned().record(data, s); }
std::shared_ptr<const void> hold_pinned(void* data) { return pinned().hold(data); }

}  // namespace fl::runtime::cuda
