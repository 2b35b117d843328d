#include "flambeau/library/transpose.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace fl::library {
namespace {

template <class T>
void compare(int64_t batch, int64_t rows, int64_t columns) {
  std::vector<T> from(static_cast<size_t>(batch * rows * columns)), to(from.size(), T(0));
  std::iota(from.begin(), from.end(), T(1));
  transpose(from.data(), to.data(), batch, rows, columns, sizeof(T));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(to[static_cast<size_t>((b * columns + c) * rows + r)],
                  from[static_cast<size_t>((b * rows + r) * columns + c)])
            << batch << " x " << rows << " x " << columns << " at " << b << ", " << r << ", " << c;
}

TEST(Transpose, EverySizeAroundItsBlocks) {
  for (int64_t batch : {0, 1, 3})
    for (int64_t rows : {0, 1, 3, 15, 16, 17, 64, 70})
      for (int64_t columns : {0, 1, 4, 16, 31, 63, 64, 65, 130}) {
        compare<uint32_t>(batch, rows, columns);
        compare<uint16_t>(batch, rows, columns);
      }
}

TEST(Transpose, ByManyThreads) { compare<uint32_t>(4, 64, 3136); }

}  // namespace
}  // namespace fl::library
