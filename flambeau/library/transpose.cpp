#include "flambeau/library/transpose.h"

#include <algorithm>
#include <cstring>

#include "flambeau/base/error.h"
#include "flambeau/base/parallel.h"

namespace fl::library {
namespace {

// A square of this many elements of 4 bytes reads and writes whole cache lines.
constexpr int64_t kBlock = 16;
// Columns of a task: several lines of each row, which the processor then fetches ahead.
constexpr int64_t kStripe = 64;
constexpr int64_t kGrainElements = 16384;

using Four = uint32_t __attribute__((vector_size(16)));

Four load(const uint32_t* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(uint32_t* p, Four v) { std::memcpy(p, &v, sizeof v); }

// 4 x 4, rows of `from` and of `to` this far apart.
void square(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step) {
  const Four a = load(from), b = load(from + from_step), c = load(from + 2 * from_step),
             d = load(from + 3 * from_step);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(to + to_step, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(to + 2 * to_step, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(to + 3 * to_step, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

template <class T>
void block(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  if constexpr (sizeof(T) == 4)
    if (rows == kBlock && columns == kBlock) {
      for (int64_t c = 0; c < kBlock; c += 4)
        for (int64_t r = 0; r < kBlock; r += 4)
          square(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
      return;
    }
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
}

template <class T>
void transpose_as(const T* from, T* to, int64_t batch, int64_t rows, int64_t columns) {
  // Tasks are stripes of the result's rows.
  const int64_t stripes = (columns + kStripe - 1) / kStripe;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, rows * kStripe));
  parallel_for(batch * stripes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t matrix = task / stripes * rows * columns, first = task % stripes * kStripe;
      const int64_t last = std::min(first + kStripe, columns);
      for (int64_t r = 0; r < rows; r += kBlock)
        for (int64_t c = first; c < last; c += kBlock)
          block(from + matrix + r * columns + c, columns, to + matrix + c * rows + r, rows,
                std::min(kBlock, rows - r), std::min(kBlock, last - c));
    }
  });
}

}  // namespace

void transpose(const void* from, void* to, int64_t batch, int64_t rows, int64_t columns,
               int64_t element_bytes) {
  FL_ASSERT(element_bytes == 2 || element_bytes == 4, "elements of {} bytes", element_bytes);
  if (element_bytes == 4)
    transpose_as(static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to), batch, rows, columns);
  else
    transpose_as(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to), batch, rows, columns);
}

}  // namespace fl::library
