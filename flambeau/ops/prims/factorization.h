// Factorizations of matrices and the systems that they solve, through LAPACK.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

// `caller`: the operator to name in the LinAlgError that a failure raises; empty: no error, see info.
inline constexpr Op<"_linalg_cholesky(Tensor self, bool upper, str caller) -> (Tensor L, Tensor info)">
    _linalg_cholesky;
inline constexpr Op<"_linalg_lu(Tensor self, str caller) -> (Tensor LU, Tensor pivots, Tensor info)">
    _linalg_lu;
/// The rows of A in the order of L's: A[permutation] = L U; or the inverse of that.
inline constexpr Op<"_lu_permutation(Tensor self, SymInt rows, bool inverse=False) -> Tensor">
    _lu_permutation;
inline constexpr Op<"geqrf(Tensor self) -> (Tensor a, Tensor tau)"> geqrf;
inline constexpr Op<"linalg_householder_product(Tensor input, Tensor tau) -> Tensor"> householder_product;
inline constexpr Op<
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor">
    ormqr;
/// Equal batches; B is (m, n) and self square.
inline constexpr Op<
    "_solve_triangular(Tensor self, Tensor B, bool upper, bool left=True, bool unitriangular=False) -> "
    "Tensor">
    _solve_triangular;
inline constexpr Op<
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
    "Tensor "
    "pivots, Tensor info)">
    ldl_factor_ex;
inline constexpr Op<"_ldl_solve(Tensor self, Tensor pivots, Tensor B, bool hermitian) -> Tensor"> _ldl_solve;
/// driver: "gels", "gelsy", "gelsd" or "gelss".
inline constexpr Op<
    "_linalg_lstsq(Tensor self, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor residuals, "
    "Tensor "
    "rank, Tensor singular_values)">
    _linalg_lstsq;

}  // namespace fl
