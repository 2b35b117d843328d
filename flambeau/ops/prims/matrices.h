// What operators on batches of matrices share: checks, specs, samples.
#pragma once
#include <string_view>

#include "flambeau/op/op.h"

namespace fl {

/// All dimensions but the last two.
IntList batch_sizes(const Sizes& sizes);
/// All dimensions but the last.
IntList leading_sizes(const Sizes& sizes);
/// The sizes with more dimensions behind them.
Sizes with_sizes(IntList batch, std::initializer_list<SymInt> more);

/// Raise RuntimeError as PyTorch does: fewer than two dimensions, not square, integers or halves.
void check_matrix(const TensorSpec& s, std::string_view caller, std::string_view name = "A");
void check_square(const TensorSpec& s, std::string_view caller, std::string_view name = "A");
void check_lapack_dtype(const TensorSpec& s, std::string_view caller);

/// Column-major matrices, as LAPACK and PyTorch lay out results.
TensorSpec matrices_spec(IntList batch, SymInt rows, SymInt columns, DType dtype, Device device);
/// A vector of this length for each matrix of a.
TensorSpec vectors_spec(const TensorSpec& a, SymInt length, DType dtype);

/// The diagonal of the last two dimensions, and vectors as the diagonals of matrices.
Tensor diagonal_of(const Tensor& x);
Tensor as_diagonal(const Tensor& x);
/// The matrix with another diagonal.
Tensor with_diagonal(const Tensor& x, const Tensor& diagonal);
/// Whether the formula that runs may itself be differentiated: then only operators with gradients will do.
bool is_recording();

namespace samples {
/// Matrices that are far from singular, and positive definite ones.
Tensor regular_matrices(SampleMaker& m, IntList sizes);
Tensor definite_matrices(SampleMaker& m, IntList sizes);
/// One, a batch, none, and one that is not square, for operators that take a matrix.
std::vector<Sample> square_matrices(SampleMaker& m, const Samples& o);
/// The dtypes that LAPACK computes in.
inline constexpr DTypeSet kLapackDTypes = dtypes::full_floats | dtypes::complexes;
}  // namespace samples

}  // namespace fl
