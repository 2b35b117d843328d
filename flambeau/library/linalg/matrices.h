// Linear algebra of one matrix: dense, column-major, without gaps (the leading dimension is the number of
// rows). T is float, double or a complex of these; sizes may be 0. `info` is LAPACK's: 0 is success.
#pragma once
#include <complex>
#include <cstdint>

namespace fl::library {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
using Complex = std::complex<Real<T>>;

/// n x n: a becomes its factor in the triangle named; the other triangle is left. info k: the leading minor
/// of order k is not positive.
template <class T>
int cholesky(bool upper, int n, T* a);
/// m x n: L and U in a, min(m, n) pivots counted from 1. info k: U's diagonal element k is 0.
template <class T>
int lu(int m, int n, T* a, int* pivots);
/// m x n: R above, the reflectors below the diagonal, and their min(m, n) factors.
template <class T>
int qr(int m, int n, T* a, T* tau);
/// The first n columns of the product of k reflectors of length m, in a's place.
template <class T>
int reflectors_product(int m, int n, int k, T* a, const T* tau);
/// c (m x n) becomes Q c or c Q, or that of the adjoint; the k reflectors are columns of a.
template <class T>
int apply_reflectors(bool left, bool adjoint, int m, int n, int k, const T* a, const T* tau, T* c);
/// Eigenvalues in order, and the eigenvectors in a's place, of the matrix in the triangle named.
template <class T>
int eigh(bool upper, bool vectors, int n, T* a, Real<T>* values);
/// Eigenvalues, and right eigenvectors of length 1 (null: none). a is destroyed.
template <class T>
int eig(int n, T* a, Complex<T>* values, Complex<T>* vectors);

enum class SvdVectors { None, Reduced, All };
enum class SvdDriver { DivideAndConquer, QrIteration };
/// a = u diag(s) vh. a is destroyed.
template <class T>
int svd(SvdVectors which, SvdDriver driver, int m, int n, T* a, Real<T>* s, T* u, T* vh);
/// b (m x n) becomes the solution of a x = b, or of x a = b.
template <class T>
void solve_triangular(bool left, bool upper, bool unit_diagonal, int m, int n, const T* a, T* b);
/// Bunch and Kaufman's factors of a symmetric or Hermitian matrix in its lower triangle.
template <class T>
int ldl(bool hermitian, int n, T* a, int* pivots);
template <class T>
int ldl_solve(bool hermitian, int n, int columns, const T* factors, const int* pivots, T* b);

enum class LeastSquares { FullRank, PivotedQr, Svd, SvdDivideAndConquer };
/// a is m x n and destroyed; b has max(m, n) rows, the right sides in its first m, and the solutions in its
/// first n. rank and singular values (null: not wanted) by the methods that find them.
template <class T>
int least_squares(LeastSquares method, int m, int n, int columns, T* a, T* b, double rcond, int* rank,
                  Real<T>* singular_values);
/// c = a b; a is m x k, b is k x n.
template <class T>
void multiply(int m, int n, int k, const T* a, const T* b, T* c);
/// b becomes the solution of a x = b. a is destroyed. info k: a is singular.
template <class T>
int solve(int n, int columns, T* a, T* b);
/// The exponential of an n x n matrix, in its place: Pade approximants with scaling and squaring
/// (N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix
/// Anal. Appl. 26, 2005).
template <class T>
void matrix_exponential(int n, T* a);

}  // namespace fl::library
