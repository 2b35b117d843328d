#include "flambeau/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <exception>

#include "flambeau/base/error.h"

namespace fl {

int num_threads() { return omp_get_max_threads(); }

void set_num_threads(int n) {
  FL_CHECK(n > 0, RuntimeError, "set_num_threads expects a positive number of threads, got {}", n);
  omp_set_num_threads(n);
}

void parallel_for(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  if (n <= 0) return;
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces <= 1 || omp_in_parallel()) return body(context, 0, n);
  std::exception_ptr first;
#pragma omp parallel for num_threads(pieces) schedule(static, 1)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    try {
      body(context, n * piece / pieces, n * (piece + 1) / pieces);
    } catch (...) {
#pragma omp critical(fl_parallel_error)
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace fl
