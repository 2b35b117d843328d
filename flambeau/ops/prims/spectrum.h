// Eigenvalues, singular values and functions of matrices, through LAPACK.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "_linalg_eigh(Tensor self, str UPLO, bool compute_v) -> (Tensor eigenvalues, Tensor eigenvectors)">
    _linalg_eigh;
inline constexpr Op<"_linalg_eig(Tensor self, bool compute_v) -> (Tensor eigenvalues, Tensor eigenvectors)">
    _linalg_eig;
inline constexpr Op<
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor "
    "U, "
    "Tensor S, Tensor Vh)">
    _linalg_svd;
inline constexpr Op<"linalg_matrix_exp(Tensor self) -> Tensor"> matrix_exp;

}  // namespace fl
