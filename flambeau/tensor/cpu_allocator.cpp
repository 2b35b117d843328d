#include "flambeau/tensor/cpu_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "flambeau/base/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

namespace fl {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr size_t kHugePage = 2 * kMiB;
constexpr int kLinearClasses = 16;       // 64, 128, ..., 1024
constexpr size_t kSlabBlock = 4 * kKiB;  // Blocks up to this size are cut from slabs.
constexpr size_t kSlab = 256 * kKiB;
constexpr size_t kThreadBlock = kMiB;          // Blocks up to this size are kept by threads.
constexpr size_t kCentralBlock = kKiB * kMiB;  // Blocks up to this size are kept at all.

int class_of(size_t bytes) {
  if (bytes <= kKiB) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kAlignment);
  const int octave = std::bit_width(bytes - 1) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  const int step = static_cast<int>((bytes - 1) >> (octave - 2)) & 3;
  return kLinearClasses + (octave - 10) * 4 + step;
}

constexpr size_t class_size(int c) {
  if (c < kLinearClasses) return static_cast<size_t>(c + 1) * kAlignment;
  const int octave = 10 + (c - kLinearClasses) / 4, step = (c - kLinearClasses) % 4;
  return static_cast<size_t>(4 + step + 1) << (octave - 2);
}

constexpr int kThreadClasses = kLinearClasses + 10 * 4;  // up to 1 MiB
constexpr int kClasses = kLinearClasses + 20 * 4;        // up to 1 GiB
static_assert(class_size(kThreadClasses - 1) == kThreadBlock);
static_assert(class_size(kClasses - 1) == kCentralBlock);

constexpr int kThreadSlots = 64;
/// Blocks of a class that one thread keeps: at most 64, and few of the large ones.
constexpr int thread_limit(int c) {
  const size_t size = class_size(c);
  return size <= kSlabBlock ? kThreadSlots : size <= 64 * kKiB ? 16 : 4;
}

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Null if the system has no more.
void* system_allocate(size_t bytes) {
  if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  madvise(data, bytes, MADV_HUGEPAGE);  // Fewer page faults; a refusal does no harm.
  return data;
}

void system_release(void* data, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  if (bytes < kHugePage)
    std::free(data);
  else
    munmap(data, bytes);
}

class CpuAllocator;

/// What one thread keeps.
struct ThreadCache {
  struct List {
    int count = 0;
    std::array<void*, kThreadSlots> blocks;
  };
  std::array<List, kThreadClasses> lists;
  std::atomic<int64_t> allocations{0};  // Written by this thread alone.
};

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override;
  void release(void* data, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  AllocatorStats stats() const override;
  void reset_peak() override { peak_.store(allocated_.load()); }
  void empty_cache() override;

  void enroll(ThreadCache* cache);
  void retire(ThreadCache* cache);

 private:
  [[gnu::noinline]] void* allocate_slow(int c, size_t bytes, ThreadCache* cache);
  [[gnu::noinline]] void release_slow(int c, void* data, ThreadCache* cache);
  void* from_system(size_t size, size_t requested);
  void refill_from_slab(int c, size_t requested);
  void drain(ThreadCache* cache);
  void keep_or_free(int c, void* data);
  void free_kept();

  void count_up(size_t size) {
    const int64_t now = allocated_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed) +
                        static_cast<int64_t>(size);
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  alignas(64) std::atomic<int64_t> allocated_{0};
  std::atomic<int64_t> peak_{0};

  mutable std::mutex mutex_;  // Guards everything below.
  std::array<std::vector<void*>, kClasses> kept_;
  std::vector<ThreadCache*> threads_;
  std::vector<void*> slabs_;
  int64_t reserved_ = 0;
  int64_t kept_bytes_ = 0;
  int64_t other_allocations_ = 0;  // by threads that ended, or without a cache
  // Blocks beyond a quarter of the machine's memory go back to the system rather than being kept.
  const int64_t kept_limit_ = sysconf(_SC_PHYS_PAGES) / 4 * sysconf(_SC_PAGESIZE);
};

CpuAllocator& instance() {
  static CpuAllocator& a = *new CpuAllocator;  // Lives as long as the process: tensors may outlive statics.
  return a;
}

// A plain pointer, so that reading it is one instruction and outlives the thread's destructors.
[[gnu::tls_model("initial-exec")]] thread_local ThreadCache* t_cache = nullptr;
thread_local bool t_ended = false;

struct ThreadEnd {
  ~ThreadEnd() {
    if (t_cache) instance().retire(t_cache);
    t_cache = nullptr;
    t_ended = true;
  }
};

/// Null while the thread ends.
ThreadCache* thread_cache() {
  if (t_cache) [[likely]]
    return t_cache;
  if (t_ended) return nullptr;
  thread_local ThreadEnd at_end;
  (void)at_end;
  t_cache = new ThreadCache;
  instance().enroll(t_cache);
  return t_cache;
}

void CpuAllocator::enroll(ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  threads_.push_back(cache);
}

void CpuAllocator::retire(ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  drain(cache);
  other_allocations_ += cache->allocations.load(std::memory_order_relaxed);
  std::erase(threads_, cache);
  delete cache;
}

void* CpuAllocator::allocate(size_t bytes) {
  ThreadCache* cache = thread_cache();
  const int c = bytes <= kCentralBlock ? class_of(bytes) : kClasses;
  void* data;
  if (cache && c < kThreadClasses && cache->lists[c].count > 0) [[likely]] {
    ThreadCache::List& list = cache->lists[c];
    data = list.blocks[--list.count];
  } else {
    data = allocate_slow(c, bytes, cache);
  }
  count_up(cpu_block_size(bytes));
  if (cache)
    cache->allocations.store(cache->allocations.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  return data;
}

void CpuAllocator::release(void* data, size_t bytes) {
  ThreadCache* cache = thread_cache();
  const size_t size = cpu_block_size(bytes);
  allocated_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  ASAN_POISON_MEMORY_REGION(data, size);
  const int c = bytes <= kCentralBlock ? class_of(bytes) : kClasses;
  if (cache && c < kThreadClasses && cache->lists[c].count < thread_limit(c)) [[likely]] {
    ThreadCache::List& list = cache->lists[c];
    list.blocks[list.count++] = data;
  } else if (c < kClasses) {
    release_slow(c, data, cache);
  } else {
    std::lock_guard lock(mutex_);
    reserved_ -= static_cast<int64_t>(size);
    system_release(data, size);
  }
}

void* CpuAllocator::allocate_slow(int c, size_t bytes, ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  if (!cache) ++other_allocations_;
  if (c == kClasses) return from_system(cpu_block_size(bytes), bytes);
  const size_t size = class_size(c);
  std::vector<void*>& kept = kept_[c];
  if (kept.empty()) {
    if (size > kSlabBlock) return from_system(size, bytes);
    refill_from_slab(c, bytes);
  }
  const auto take = [&] {
    void* data = kept.back();
    kept.pop_back();
    kept_bytes_ -= static_cast<int64_t>(size);
    return data;
  };
  // Half a list at once, so that a thread that only allocates takes the lock seldom.
  if (cache && c < kThreadClasses) {
    ThreadCache::List& list = cache->lists[c];
    while (list.count < thread_limit(c) / 2 && kept.size() > 1) list.blocks[list.count++] = take();
  }
  return take();
}

void CpuAllocator::release_slow(int c, void* data, ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  // Half of a full list moves out, for a thread that only releases.
  if (cache && c < kThreadClasses) {
    ThreadCache::List& list = cache->lists[c];
    while (list.count > thread_limit(c) / 2) keep_or_free(c, list.blocks[--list.count]);
  }
  keep_or_free(c, data);
}

void CpuAllocator::keep_or_free(int c, void* data) {
  const auto size = static_cast<int64_t>(class_size(c));
  if (class_size(c) > kSlabBlock && kept_bytes_ + size > kept_limit_) {
    reserved_ -= size;
    system_release(data, class_size(c));
    return;
  }
  kept_[c].push_back(data);
  kept_bytes_ += size;
}

void* CpuAllocator::from_system(size_t size, size_t requested) {
  void* data = system_allocate(size);
  if (!data) {
    free_kept();
    data = system_allocate(size);
  }
  FL_CHECK(data, OutOfMemoryError,
           "out of memory on cpu: requested {} bytes, {} bytes are allocated and {} bytes are reserved; "
           "expected the system to have as much free",
           requested, allocated_.load(), reserved_);
  reserved_ += static_cast<int64_t>(size);
  return data;
}

void CpuAllocator::refill_from_slab(int c, size_t requested) {
  char* slab = static_cast<char*>(from_system(kSlab, requested));
  slabs_.push_back(slab);
  ASAN_POISON_MEMORY_REGION(slab, kSlab);
  const size_t size = class_size(c);
  for (size_t at = kSlab / size; at-- > 0;) kept_[c].push_back(slab + at * size);
  kept_bytes_ += static_cast<int64_t>(kSlab / size * size);
}

void CpuAllocator::drain(ThreadCache* cache) {
  for (int c = 0; c < kThreadClasses; ++c) {
    ThreadCache::List& list = cache->lists[c];
    while (list.count > 0) keep_or_free(c, list.blocks[--list.count]);
  }
}

/// Slabs stay: their blocks may be in use.
void CpuAllocator::free_kept() {
  for (int c = class_of(kSlabBlock) + 1; c < kClasses; ++c) {
    const auto size = static_cast<int64_t>(class_size(c));
    for (void* data : kept_[c]) system_release(data, class_size(c));
    reserved_ -= size * static_cast<int64_t>(kept_[c].size());
    kept_bytes_ -= size * static_cast<int64_t>(kept_[c].size());
    kept_[c].clear();
  }
}

/// Other threads keep their lists: only they may touch them.
void CpuAllocator::empty_cache() {
  ThreadCache* cache = thread_cache();
  std::lock_guard lock(mutex_);
  if (cache) drain(cache);
  free_kept();
}

AllocatorStats CpuAllocator::stats() const {
  std::lock_guard lock(mutex_);
  AllocatorStats s;
  s.allocated = allocated_.load();
  s.peak = peak_.load();
  s.reserved = reserved_;
  s.allocations = other_allocations_;
  for (const ThreadCache* cache : threads_)
    s.allocations += cache->allocations.load(std::memory_order_relaxed);
  return s;
}

}  // namespace

Allocator& cpu_allocator() { return instance(); }

size_t cpu_block_size(size_t bytes) {
  return bytes <= kCentralBlock ? class_size(class_of(bytes)) : round_up(bytes, kHugePage);
}

}  // namespace fl
