#include "flambeau/library/matmul_layout.h"

#include <algorithm>

namespace fl::library {
namespace {

MatrixStrides transposed(const MatrixStrides& s) { return {s.batch, s.column, s.row}; }

std::array<MatrixStrides*, 4> operands(MatmulDesc& d) { return {&d.a, &d.b, &d.c, &d.bias_strides}; }

}  // namespace

MatmulDesc transposed(MatmulDesc d) {
  std::swap(d.m, d.n);
  std::swap(d.a, d.b);
  for (MatrixStrides* s : operands(d)) *s = transposed(*s);
  return d;
}

void merge_batch(MatmulDesc& d) {
  for (int i = 0; i < 2; ++i)
    if (d.batch[i] == 1)
      for (MatrixStrides* s : operands(d)) s->batch[i] = 0;
  bool one = d.batch[1] == 1;
  if (d.batch[0] != 1 && !one) {
    one = std::ranges::all_of(operands(d),
                              [&](MatrixStrides* s) { return s->batch[0] == s->batch[1] * d.batch[1]; });
    if (one) {
      d.batch = {1, d.batch[0] * d.batch[1]};
      for (MatrixStrides* s : operands(d)) s->batch[0] = 0;
    }
  } else if (one) {
    std::swap(d.batch[0], d.batch[1]);
    for (MatrixStrides* s : operands(d)) std::swap(s->batch[0], s->batch[1]);
  }
}

void merge_batch_into_rows(MatmulDesc& d) {
  if (d.batch[0] != 1 || d.batch[1] == 1 || d.b.batch[1] != 0) return;
  const auto tall = [&](const MatrixStrides& s) { return s.batch[1] == s.row * d.m; };
  const bool bias_tall = !d.bias || tall(d.bias_strides);
  if (!tall(d.a) || !tall(d.c) || !bias_tall) return;
  d.m *= d.batch[1];
  d.batch[1] = 1;
  for (MatrixStrides* s : operands(d)) s->batch[1] = 0;
}

void settle_strides(MatrixStrides& s, int64_t rows, int64_t columns) {
  if (rows == 1 && columns == 1) s.row = s.column = 1;
  if (columns == 1 && rows != 1) s.column = 1;
  if (rows == 1 && columns != 1) s.row = s.column == 1 ? columns : 1;
}

bool is_matrix(const MatrixStrides& s, int64_t rows, int64_t columns) {
  return (s.column == 1 && s.row >= columns) || (s.row == 1 && s.column >= rows);
}

}  // namespace fl::library
