// Threads: OpenMP's, shared with the libraries, so that nothing is oversubscribed.
#pragma once
#include <cstdint>
#include <type_traits>

namespace fl {

/// Threads that parallel regions use; at least 1.
int num_threads();
void set_num_threads(int n);

/// Runs body(context, begin, end) over disjoint pieces of [0, n), in parallel where n > grain. The pieces
/// depend on n, grain and the number of threads alone. The first exception of a piece is thrown again here.
void parallel_for(int64_t n, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                  void* context);

template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  parallel_for(
      n, grain, [](void* c, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<F>*>(c))(b, e); },
      &f);
}

}  // namespace fl
