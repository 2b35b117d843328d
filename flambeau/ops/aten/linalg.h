// Linear algebra over the factorizations: factors, systems, spectra, determinants, inverses, norms, products.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

// Factors.
inline constexpr Op<
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor "
    "info)">
    linalg_cholesky_ex;
inline constexpr Op<"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"> linalg_cholesky;
inline constexpr Op<"cholesky(Tensor self, bool upper=False) -> Tensor"> cholesky;
inline constexpr Op<"cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"> cholesky_solve;
inline constexpr Op<"cholesky_inverse(Tensor self, bool upper=False) -> Tensor"> cholesky_inverse;
inline constexpr Op<"linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"> lu_factor;
inline constexpr Op<
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
    "pivots, "
    "Tensor info)">
    lu_factor_ex;
inline constexpr Op<"linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"> linalg_lu;
inline constexpr Op<
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor "
    "P, "
    "Tensor L, Tensor U)">
    lu_unpack;
inline constexpr Op<"linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)"> linalg_qr;
inline constexpr Op<"qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)"> qr;
inline constexpr Op<"orgqr(Tensor self, Tensor input2) -> Tensor"> orgqr;
inline constexpr Op<"linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)">
    ldl_factor;
inline constexpr Op<"linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor">
    ldl_solve;

// Systems.
inline constexpr Op<
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) "
    "-> "
    "Tensor">
    solve_triangular;
inline constexpr Op<
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
    "unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)">
    triangular_solve;
inline constexpr Op<
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor">
    linalg_lu_solve;
inline constexpr Op<"lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"> lu_solve;
inline constexpr Op<
    "_linalg_solve(Tensor A, Tensor B, str caller) -> (Tensor result, Tensor LU, Tensor pivots, "
    "Tensor info)">
    _linalg_solve;
inline constexpr Op<"linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"> linalg_solve;
inline constexpr Op<
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
    "Tensor "
    "info)">
    linalg_solve_ex;
inline constexpr Op<"_linalg_inv(Tensor A, str caller) -> (Tensor inverse, Tensor info)"> _linalg_inv;
inline constexpr Op<"linalg_inv(Tensor A) -> Tensor"> linalg_inv;
inline constexpr Op<"linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)">
    linalg_inv_ex;
inline constexpr Op<"inverse(Tensor self) -> Tensor"> inverse;
inline constexpr Op<
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, Tensor rank, Tensor singular_values)">
    linalg_lstsq;
/// The solution of `linalg_lstsq`, with its gradient.
inline constexpr Op<"_lstsq_solution(Tensor self, Tensor b, Tensor solution) -> Tensor"> _lstsq_solution;
inline constexpr Op<"linalg_tensorinv(Tensor self, int ind=2) -> Tensor"> tensorinv;
inline constexpr Op<"linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor"> tensorsolve;

// Determinants.
inline constexpr Op<"_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"> _linalg_det;
inline constexpr Op<"linalg_det(Tensor A) -> Tensor"> linalg_det;
inline constexpr Op<"det(Tensor self) -> Tensor"> det;
inline constexpr Op<"_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)">
    _linalg_slogdet;
inline constexpr Op<"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"> linalg_slogdet;
inline constexpr Op<"slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"> slogdet;
inline constexpr Op<"logdet(Tensor self) -> Tensor"> logdet;

// Spectra.
inline constexpr Op<"linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)">
    linalg_eigh;
inline constexpr Op<"linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor"> linalg_eigvalsh;
inline constexpr Op<"linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"> linalg_eig;
inline constexpr Op<"linalg_eigvals(Tensor self) -> Tensor"> linalg_eigvals;
inline constexpr Op<
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)">
    linalg_svd;
inline constexpr Op<"linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor"> linalg_svdvals;
inline constexpr Op<
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)">
    svd;
inline constexpr Op<
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False) -> "
    "Tensor">
    linalg_pinv_tensors;
inline constexpr Op<
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
    "-> "
    "Tensor">
    linalg_pinv_floats;
inline constexpr Op<"linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor"> linalg_pinv;
inline constexpr Op<"linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor">
    linalg_pinv_rcond;
inline constexpr Op<"pinverse(Tensor self, float rcond=1e-15) -> Tensor"> pinverse;
inline constexpr Op<
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False) -> Tensor">
    matrix_rank_tensors;
inline constexpr Op<
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
    "hermitian=False) -> Tensor">
    matrix_rank_floats;
inline constexpr Op<"linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor"> matrix_rank;
inline constexpr Op<"linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor">
    matrix_rank_tol;
inline constexpr Op<"linalg_polar(Tensor A) -> (Tensor U, Tensor H)"> linalg_polar;
inline constexpr Op<"linalg_matrix_sqrth(Tensor self) -> Tensor"> matrix_sqrth;
inline constexpr Op<"matrix_exp(Tensor self) -> Tensor"> torch_matrix_exp;

// Norms.
inline constexpr Op<
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor">
    matrix_norm;
inline constexpr Op<
    "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor">
    matrix_norm_named;
inline constexpr Op<
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) "
    "-> Tensor">
    linalg_norm_named;
inline constexpr Op<"linalg_cond(Tensor self, Scalar? p=None) -> Tensor"> linalg_cond;
inline constexpr Op<"linalg_cond.p_str(Tensor self, str p) -> Tensor"> linalg_cond_named;

// Products.
inline constexpr Op<"linalg_matmul(Tensor self, Tensor other) -> Tensor"> linalg_matmul;
inline constexpr Op<"linalg_multi_dot(Tensor[] tensors) -> Tensor"> multi_dot;
inline constexpr Op<"chain_matmul(Tensor[] matrices) -> Tensor"> chain_matmul;
inline constexpr Op<"linalg_matrix_power(Tensor self, int n) -> Tensor"> linalg_matrix_power;
inline constexpr Op<"matrix_power(Tensor self, int n) -> Tensor"> matrix_power;
inline constexpr Op<"linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor"> linalg_cross;
inline constexpr Op<"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor"> linalg_vecdot;
inline constexpr Op<"linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)">
    linalg_diagonal;
inline constexpr Op<"linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor"> linalg_vander;

}  // namespace fl
