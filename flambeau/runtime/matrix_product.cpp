#include "flambeau/runtime/matrix_product.h"

namespace fl::runtime {

void check_product(const CallArguments& call, const OperandLayout& a, const OperandLayout& b,
                   const OperandLayout& c) {
  const size_t rank = a.sizes.size();
  const bool ranks = (rank == 2 || rank == 3) && b.sizes.size() == rank && c.sizes.size() == rank;
  bool fine = ranks && a.dtype == b.dtype && a.dtype == c.dtype;
  if (fine && rank == 3) fine = a.sizes[0] == b.sizes[0] && a.sizes[0] == c.sizes[0];
  if (fine)
    fine = a.sizes[rank - 1] == b.sizes[rank - 2] && a.sizes[rank - 2] == c.sizes[rank - 2] &&
           b.sizes[rank - 1] == c.sizes[rank - 1];
  FL_CHECK(fine, RuntimeError,
           "{} expects two matrices (or batches) that fit and a result of their dtype, got {} [{}], {} [{}] "
           "into {} [{}]",
           call.op.name(), name(a.dtype), fmt::join(a.sizes, ", "), name(b.dtype), fmt::join(b.sizes, ", "),
           name(c.dtype), fmt::join(c.sizes, ", "));
}

library::MatmulDesc describe_product(const OperandLayout& a, const OperandLayout& b, const OperandLayout& c) {
  const size_t rank = a.sizes.size();
  library::MatmulDesc d;
  d.batch = {1, rank == 3 ? a.sizes[0] : 1};
  d.m = a.sizes[rank - 2];
  d.k = a.sizes[rank - 1];
  d.n = b.sizes[rank - 1];
  d.a = matrix_strides(a);
  d.b = matrix_strides(b);
  d.c = matrix_strides(c);
  return d;
}

library::MatrixStrides matrix_strides(const OperandLayout& m) {
  const size_t rank = m.sizes.size();
  return {{0, rank == 3 ? m.strides[0] : 0}, m.strides[rank - 2], m.strides[rank - 1]};
}

bool is_plain_matrix(const OperandLayout& m) {
  const size_t rank = m.sizes.size();
  const int64_t rows = m.sizes[rank - 2], columns = m.sizes[rank - 1];
  const int64_t row = m.strides[rank - 2], column = m.strides[rank - 1];
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

}  // namespace fl::runtime
