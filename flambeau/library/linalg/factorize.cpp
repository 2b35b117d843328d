// Factorizations and triangular systems.
#include <algorithm>
#include <vector>

#include "flambeau/library/linalg/instantiate.h"
#include "flambeau/library/linalg/lapack.h"
#include "flambeau/library/linalg/matrices.h"

namespace fl::library {
namespace {

template <class T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

double real_part(double v) { return v; }
template <class T>
double real_part(std::complex<T> v) {
  return static_cast<double>(v.real());
}

/// Asks f for the size of its work array, then runs it with one: f(work, size).
template <class T, class F>
void with_work(F f) {
  T wanted{};
  f(&wanted, -1);
  std::vector<T> work(static_cast<size_t>(std::max(1.0, real_part(wanted))));
  f(work.data(), static_cast<int>(work.size()));
}

}  // namespace

template <class T>
int cholesky(bool upper, int n, T* a) {
  if (n == 0) return 0;
  int info = 0;
  lapack<T, "potrf">(upper ? 'U' : 'L', n, a, n, &info);
  return info;
}

template <class T>
int lu(int m, int n, T* a, int* pivots) {
  if (m == 0 || n == 0) return 0;
  int info = 0;
  lapack<T, "getrf">(m, n, a, m, pivots, &info);
  return info;
}

template <class T>
int qr(int m, int n, T* a, T* tau) {
  if (m == 0 || n == 0) return 0;
  int info = 0;
  with_work<T>([&](T* work, int size) { lapack<T, "geqrf">(m, n, a, m, tau, work, size, &info); });
  return info;
}

template <class T>
int reflectors_product(int m, int n, int k, T* a, const T* tau) {
  if (m == 0 || n == 0) return 0;
  int info = 0;
  with_work<T>([&](T* work, int size) {
    if constexpr (is_complex<T>)
      lapack<T, "ungqr">(m, n, k, a, m, tau, work, size, &info);
    else
      lapack<T, "orgqr">(m, n, k, a, m, tau, work, size, &info);
  });
  return info;
}

template <class T>
int apply_reflectors(bool left, bool adjoint, int m, int n, int k, const T* a, const T* tau, T* c) {
  if (m == 0 || n == 0 || k == 0) return 0;
  int info = 0;
  const int rows = left ? m : n;
  const char side = left ? 'L' : 'R';
  with_work<T>([&](T* work, int size) {
    if constexpr (is_complex<T>)
      lapack<T, "unmqr">(side, adjoint ? 'C' : 'N', m, n, k, a, rows, tau, c, m, work, size, &info);
    else
      lapack<T, "ormqr">(side, adjoint ? 'T' : 'N', m, n, k, a, rows, tau, c, m, work, size, &info);
  });
  return info;
}

template <class T>
void solve_triangular(bool left, bool upper, bool unit_diagonal, int m, int n, const T* a, T* b) {
  if (m == 0 || n == 0) return;
  lapack<T, "trsm">(left ? 'L' : 'R', upper ? 'U' : 'L', 'N', unit_diagonal ? 'U' : 'N', m, n, T(1), a,
                    left ? m : n, b, m);
}

template <class T>
int ldl(bool hermitian, int n, T* a, int* pivots) {
  if (n == 0) return 0;
  int info = 0;
  with_work<T>([&](T* work, int size) {
    if constexpr (is_complex<T>) {
      if (hermitian) return lapack<T, "hetrf">('L', n, a, n, pivots, work, size, &info);
    }
    lapack<T, "sytrf">('L', n, a, n, pivots, work, size, &info);
  });
  return info;
}

template <class T>
int ldl_solve(bool hermitian, int n, int columns, const T* factors, const int* pivots, T* b) {
  if (n == 0 || columns == 0) return 0;
  int info = 0;
  if constexpr (is_complex<T>) {
    if (hermitian) {
      lapack<T, "hetrs">('L', n, columns, factors, n, pivots, b, n, &info);
      return info;
    }
  }
  lapack<T, "sytrs">('L', n, columns, factors, n, pivots, b, n, &info);
  return info;
}

template <class T>
int least_squares(LeastSquares method, int m, int n, int columns, T* a, T* b, double rcond, int* rank,
                  Real<T>* singular_values) {
  if (m == 0 || n == 0 || columns == 0) return 0;
  using R = Real<T>;
  const int rows = std::max(m, n), least = std::min(m, n);
  const R limit = static_cast<R>(rcond);
  int info = 0, found_rank = 0, integer_work = 0;
  std::vector<R> values(least), real_work(std::max(5 * least, 2 * n));
  std::vector<int> pivots(n, 0);
  R real_size = 0;
  with_work<T>([&](T* work, int size) {
    switch (method) {
      case LeastSquares::FullRank:
        return lapack<T, "gels">('N', m, n, columns, a, m, b, rows, work, size, &info);
      case LeastSquares::PivotedQr:
        if constexpr (is_complex<T>)
          return lapack<T, "gelsy">(m, n, columns, a, m, b, rows, pivots.data(), limit, &found_rank, work,
                                    size, real_work.data(), &info);
        else
          return lapack<T, "gelsy">(m, n, columns, a, m, b, rows, pivots.data(), limit, &found_rank, work,
                                    size, &info);
      case LeastSquares::Svd:
        if constexpr (is_complex<T>)
          return lapack<T, "gelss">(m, n, columns, a, m, b, rows, values.data(), limit, &found_rank, work,
                                    size, real_work.data(), &info);
        else
          return lapack<T, "gelss">(m, n, columns, a, m, b, rows, values.data(), limit, &found_rank, work,
                                    size, &info);
      case LeastSquares::SvdDivideAndConquer: {
        const bool asks = size < 0;
        std::vector<int> integers(std::max(1, integer_work));
        std::vector<R> reals(static_cast<size_t>(std::max(R(1), real_size)));
        if constexpr (is_complex<T>)
          lapack<T, "gelsd">(m, n, columns, a, m, b, rows, values.data(), limit, &found_rank, work, size,
                             reals.data(), integers.data(), &info);
        else
          lapack<T, "gelsd">(m, n, columns, a, m, b, rows, values.data(), limit, &found_rank, work, size,
                             integers.data(), &info);
        if (asks) {
          integer_work = integers[0];
          real_size = reals[0];
        }
        return;
      }
    }
  });
  if (rank) *rank = found_rank;
  if (singular_values) std::copy(values.begin(), values.end(), singular_values);
  return info;
}

template <class T>
void multiply(int m, int n, int k, const T* a, const T* b, T* c) {
  if (m == 0 || n == 0) return;
  lapack<T, "gemm">('N', 'N', m, n, k, T(1), a, m, b, std::max(k, 1), T(0), c, m);
}

template <class T>
int solve(int n, int columns, T* a, T* b) {
  if (n == 0 || columns == 0) return 0;
  int info = 0;
  std::vector<int> pivots(n);
  lapack<T, "gesv">(n, columns, a, n, pivots.data(), b, n, &info);
  return info;
}

#define FL_INSTANTIATE(T)                                                                  \
  template int cholesky(bool, int, T*);                                                    \
  template int lu(int, int, T*, int*);                                                     \
  template int qr(int, int, T*, T*);                                                       \
  template int reflectors_product(int, int, int, T*, const T*);                            \
  template int apply_reflectors(bool, bool, int, int, int, const T*, const T*, T*);        \
  template void solve_triangular(bool, bool, bool, int, int, const T*, T*);                \
  template int ldl(bool, int, T*, int*);                                                   \
  template int ldl_solve(bool, int, int, const T*, const int*, T*);                        \
  template int least_squares(LeastSquares, int, int, int, T*, T*, double, int*, Real<T>*); \
  template void multiply(int, int, int, const T*, const T*, T*);                           \
  template int solve(int, int, T*, T*);
FL_FOR_LAPACK_TYPES(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::library
