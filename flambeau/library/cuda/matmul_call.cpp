#include "flambeau/library/cuda/matmul_call.h"

#include "flambeau/library/matmul_layout.h"

namespace fl::library::cuda {
namespace {

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/// A row-major (or column-major) rows x columns matrix as the library sees its transpose.
ColumnMajor transposed_matrix(const MatrixStrides& s, int64_t rows, int64_t columns) {
  ColumnMajor m;
  m.transposed = s.column != 1;
  m.rows = m.transposed ? rows : columns;
  m.columns = m.transposed ? columns : rows;
  m.leading = m.transposed ? s.column : s.row;
  m.outer_stride = s.batch[0];
  m.batch_stride = s.batch[1];
  return m;
}

/// Whether every product of the batch writes its own matrix.
bool batch_is_plain(const MatmulDesc& d) {
  for (int i = 0; i < 2; ++i)
    if (d.batch[i] != 1 && d.c.batch[i] == 0) return false;
  return true;
}

/// The bias as a vector, or as the matrix that is added; false where it is neither.
bool place_bias(MatmulDesc& d, MatmulCall& call) {
  MatrixStrides& s = d.bias_strides;
  if (d.n == 1) s.column = 1;
  if (d.m == 1) s.row = 0;
  const bool one = s.batch == std::array<int64_t, 2>{0, 0};
  if (one && s.row == 0 && s.column == 1) {
    call.bias_vector = true;
    return true;
  }
  if (d.m == 1) s.row = d.n;
  if (d.beta != 0 || s.column != 1 || s.row < d.n) return false;
  call.added = transposed_matrix(s, d.m, d.n);
  call.beta = 1;
  return true;
}

void place_aux(MatmulEpilogue epilogue, MatmulCall& call) {
  if (!keeps_or_reads_aux(epilogue)) return;
  const bool mask = epilogue == MatmulEpilogue::ReluAndMask || epilogue == MatmulEpilogue::ReluGradient;
  call.aux_leading = round_up(call.result.rows, mask ? 128 : 8);
  call.aux_batch_stride = call.aux_leading * call.result.columns;
  const int64_t elements = call.aux_batch_stride * call.batch;
  call.aux_bytes = mask ? elements / 8 : elements * scalar_bytes(call.dtype);
}

}  // namespace

bool keeps_or_reads_aux(MatmulEpilogue e) {
  return e != MatmulEpilogue::None && e != MatmulEpilogue::Relu && e != MatmulEpilogue::Gelu;
}

std::optional<MatmulCall> matmul_call(const MatmulDesc& desc, MatmulEpilogue epilogue) {
  MatmulDesc d = desc;
  MatmulCall call;
  call.dtype = d.dtype;
  if (!d.bias) d.bias_strides = {};
  merge_batch(d);
  if (d.n != 1 && d.c.column != 1) {
    d = transposed(d);
    call.swapped = true;
  }
  merge_batch_into_rows(d);
  settle_strides(d.a, d.m, d.k);
  settle_strides(d.b, d.k, d.n);
  settle_strides(d.c, d.m, d.n);
  const bool c_plain = d.c.column == 1 && (d.m == 1 || d.c.row >= d.n);
  if (!c_plain || !is_matrix(d.a, d.m, d.k) || !is_matrix(d.b, d.k, d.n) || !batch_is_plain(d))
    return std::nullopt;
  call.outer = d.batch[0];
  call.batch = d.batch[1];
  call.inner = d.k;
  call.left = transposed_matrix(d.b, d.k, d.n);
  call.right = transposed_matrix(d.a, d.m, d.k);
  call.result = transposed_matrix(d.c, d.m, d.n);
  call.beta = d.beta;
  if (d.beta != 0) call.added = call.result;
  if (d.bias && !place_bias(d, call)) return std::nullopt;
  if (call.outer != 1 && keeps_or_reads_aux(epilogue)) return std::nullopt;
  place_aux(epilogue, call);
  return call;
}

}  // namespace fl::library::cuda
