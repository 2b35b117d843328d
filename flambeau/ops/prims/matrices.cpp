#include "flambeau/ops/prims/matrices.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"

namespace fl {

IntList batch_sizes(const Sizes& sizes) { return {sizes.data(), sizes.size() - 2}; }
IntList leading_sizes(const Sizes& sizes) { return {sizes.data(), sizes.size() - 1}; }
Sizes with_sizes(IntList batch, std::initializer_list<SymInt> more) {
  Sizes out(batch.begin(), batch.end());
  for (const SymInt s : more) out.push_back(s);
  return out;
}

void check_matrix(const TensorSpec& s, std::string_view caller, std::string_view name) {
  FL_CHECK(s.dim() >= 2, RuntimeError, "{}: The input tensor {} must have at least 2 dimensions, got {}.",
           caller, name, s.dim());
}

void check_square(const TensorSpec& s, std::string_view caller, std::string_view name) {
  check_matrix(s, caller, name);
  const SymInt rows = s.sizes[s.dim() - 2], columns = s.sizes[s.dim() - 1];
  FL_CHECK(rows == columns, RuntimeError,
           "{}: {} must be batches of square matrices, but they are {} by {} matrices", caller, name, rows,
           columns);
}

void check_lapack_dtype(const TensorSpec& s, std::string_view caller) {
  FL_CHECK(is_floating(s.dtype) || is_complex(s.dtype), RuntimeError,
           "{}: Expected a floating point or complex tensor as input. Got {}", caller, name(s.dtype));
  FL_CHECK(size_of(s.dtype) > 2, RuntimeError, "{}: Low precision dtypes not supported. Got {}", caller,
           name(s.dtype));
}

TensorSpec matrices_spec(IntList batch, SymInt rows, SymInt columns, DType dtype, Device device) {
  TensorSpec s = make_spec(with_sizes(batch, {columns, rows}), dtype, device);
  const size_t n = s.sizes.size();
  std::swap(s.sizes[n - 1], s.sizes[n - 2]);
  std::swap(s.strides[n - 1], s.strides[n - 2]);
  return s;
}

TensorSpec vectors_spec(const TensorSpec& a, SymInt length, DType dtype) {
  return make_spec(with_sizes(batch_sizes(a.sizes), {length}), dtype, a.device);
}

Tensor diagonal_of(const Tensor& x) { return diagonal(x, 0, -2, -1); }
Tensor as_diagonal(const Tensor& x) { return diag_embed(x); }
Tensor with_diagonal(const Tensor& x, const Tensor& d) { return diagonal_scatter(x, d, 0, -2, -1); }
bool is_recording() { return dispatch_state().grad_enabled; }

namespace samples {

Tensor regular_matrices(SampleMaker& m, IntList sizes) {
  const SymInt n = sizes.back();
  return add(m.make(sizes, -1, 1), mul(square_eye(n, m.dtype()), Scalar(2.5)));
}

std::vector<Sample> square_matrices(SampleMaker& m, const Samples&) {
  return {{{regular_matrices(m, {3, 3})}, "", ""},
          {{regular_matrices(m, {2, 3, 3})}, "batch", ""},
          {{m.make({2, 0, 0})}, "size 0", ""},
          {{m.make({2, 3})}, "wide", "RuntimeError: square matrices"}};
}

Tensor definite_matrices(SampleMaker& m, IntList sizes) {
  const Tensor x = m.make(sizes, -1, 1);
  return add(matmul(x, adjoint(x)), square_eye(sizes.back(), m.dtype()));
}

}  // namespace samples
}  // namespace fl
