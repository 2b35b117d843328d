#include "flambeau/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "flambeau/base/error.h"

namespace fl {

int num_threads() { return omp_get_max_threads(); }

void set_num_threads(int n) {
  FL_CHECK(n > 0, RuntimeError, "set_num_threads expects a positive number of threads, got {}", n);
  omp_set_num_threads(n);
}

namespace {

using Body = void (*)(void*, int64_t, int64_t);

// The thread sanitizer does not see the synchronisation inside GNU OpenMP, so it is told: what a thread did
// before happens_before(address) happens before what another does after happens_after(address).
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
void happens_before(void* address) { __tsan_release(address); }
void happens_after(void* address) { __tsan_acquire(address); }
#define FL_UNINSTRUMENTED __attribute__((no_sanitize("thread")))
#else
void happens_before(void*) {}
void happens_after(void*) {}
#define FL_UNINSTRUMENTED
#endif

struct Region {
  int64_t n;
  int64_t pieces;
  Body body;
  void* context;
  std::mutex mutex;
  std::exception_ptr first;
};

void run_piece(Region& region, int64_t piece) {
  happens_after(&region.n);
  try {
    region.body(region.context, region.n * piece / region.pieces, region.n * (piece + 1) / region.pieces);
  } catch (...) {
    std::lock_guard lock(region.mutex);
    if (!region.first) region.first = std::current_exception();
  }
  happens_before(&region.pieces);
}

FL_UNINSTRUMENTED void run_pieces(Region& region) {
#pragma omp parallel for num_threads(region.pieces) schedule(static, 1)
  for (int64_t piece = 0; piece < region.pieces; ++piece) run_piece(region, piece);
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, Body body, void* context) {
  if (n <= 0) return;
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces <= 1 || omp_in_parallel()) return body(context, 0, n);
  Region region{n, pieces, body, context, {}, nullptr};
  happens_before(&region.n);
  run_pieces(region);
  happens_after(&region.pieces);
  if (region.first) std::rethrow_exception(region.first);
}

}  // namespace fl
