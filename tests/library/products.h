// A matrix product with operands, and its result by loops in double.
#pragma once
#include "flambeau/library/matmul.h"
#include "tests/library/values.h"

namespace fl::library::test {

/// Elements that the strides reach.
inline int64_t extent(const MatmulDesc& d, const MatrixStrides& s, int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0 || d.batch[0] == 0 || d.batch[1] == 0) return 1;
  return (d.batch[0] - 1) * s.batch[0] + (d.batch[1] - 1) * s.batch[1] + (rows - 1) * s.row +
         (columns - 1) * s.column + 1;
}

/// Calls f(batch 0, batch 1, row, column) for every element of the result.
template <class F>
void for_each_result(const MatmulDesc& d, const F& f) {
  for (int64_t b0 = 0; b0 < d.batch[0]; ++b0)
    for (int64_t b1 = 0; b1 < d.batch[1]; ++b1)
      for (int64_t i = 0; i < d.m; ++i)
        for (int64_t j = 0; j < d.n; ++j) f(b0, b1, i, j);
}

struct Product {
  Buffer a, b, bias, c;  // c as it is before
  Buffer expected;

  explicit Product(const MatmulDesc& d)
      : a(d.dtype, extent(d, d.a, d.m, d.k), 1),
        b(d.dtype, extent(d, d.b, d.k, d.n), 2),
        bias(d.dtype, extent(d, d.bias_strides, d.m, d.n), 3),
        c(d.dtype, extent(d, d.c, d.m, d.n), 4),
        expected(c) {
    for_each_result(d, [&](int64_t b0, int64_t b1, int64_t i, int64_t j) {
      const auto at = [&](const MatrixStrides& s, int64_t row, int64_t column) {
        return b0 * s.batch[0] + b1 * s.batch[1] + row * s.row + column * s.column;
      };
      double sum = 0;
      for (int64_t l = 0; l < d.k; ++l) sum += a.get(at(d.a, i, l)) * b.get(at(d.b, l, j));
      if (d.bias) sum += bias.get(at(d.bias_strides, i, j));
      if (d.beta != 0) sum += d.beta * c.get(at(d.c, i, j));
      expected.set(at(d.c, i, j), d.relu && sum < 0 ? 0 : sum);
    });
  }
};

inline void expect_close(ScalarKind dtype, const Buffer& actual, const Buffer& expected, double scale = 1) {
  for (int64_t i = 0; i < actual.count(); ++i)
    ASSERT_TRUE(close(dtype, actual.get(i), expected.get(i), scale))
        << i << ": " << actual.get(i) << " for " << expected.get(i);
}

inline MatmulDesc with_layout(MatmulDesc d, bool a_columns, bool b_columns, bool c_columns, int64_t padding) {
  const auto plain = [&](bool columns, int64_t m, int64_t n) {
    return columns ? MatrixStrides{{0, 0}, 1, m + padding} : MatrixStrides{{0, 0}, n + padding, 1};
  };
  d.a = plain(a_columns, d.m, d.k);
  d.b = plain(b_columns, d.k, d.n);
  d.c = plain(c_columns, d.m, d.n);
  return d;
}

}  // namespace fl::library::test
