// Eigenvalues, singular values and the exponential of a matrix.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "flambeau/library/linalg/instantiate.h"
#include "flambeau/library/linalg/lapack.h"
#include "flambeau/library/linalg/matrices.h"

namespace fl::library {
namespace {

template <class T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// The sizes of the work arrays that a routine asks for: of elements, of real numbers, of integers.
template <class T>
struct Work {
  std::vector<T> elements{T(0)};
  std::vector<Real<T>> reals{Real<T>(0)};
  std::vector<int> integers{0};
  int element_count = -1, real_count = -1, integer_count = -1;

  void grow() {
    element_count = std::max(1, static_cast<int>(std::real(elements[0])));
    real_count = std::max(1, static_cast<int>(reals[0]));
    integer_count = std::max(1, integers[0]);
    elements.resize(element_count);
    reals.resize(real_count);
    integers.resize(integer_count);
  }
};

}  // namespace

template <class T>
int eigh(bool upper, bool vectors, int n, T* a, Real<T>* values) {
  if (n == 0) return 0;
  int info = 0;
  Work<T> w;
  const char job = vectors ? 'V' : 'N', triangle = upper ? 'U' : 'L';
  const auto run = [&] {
    if constexpr (is_complex<T>)
      lapack<T, "heevd">(job, triangle, n, a, n, values, w.elements.data(), w.element_count, w.reals.data(),
                         w.real_count, w.integers.data(), w.integer_count, &info);
    else
      lapack<T, "syevd">(job, triangle, n, a, n, values, w.elements.data(), w.element_count,
                         w.integers.data(), w.integer_count, &info);
  };
  run();
  w.grow();
  run();
  return info;
}

template <class T>
int eig(int n, T* a, Complex<T>* values, Complex<T>* vectors) {
  if (n == 0) return 0;
  int info = 0;
  Work<T> w;
  const char job = vectors ? 'V' : 'N';
  if constexpr (is_complex<T>) {
    std::vector<Real<T>> reals(2 * static_cast<size_t>(n));
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) w.grow();
      lapack<T, "geev">('N', job, n, a, n, values, static_cast<T*>(nullptr), 1, vectors, n, w.elements.data(),
                        w.element_count, reals.data(), &info);
    }
  } else {
    std::vector<T> re(n), im(n), pairs(vectors ? static_cast<size_t>(n) * n : 1);
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) w.grow();
      lapack<T, "geev">('N', job, n, a, n, re.data(), im.data(), static_cast<T*>(nullptr), 1, pairs.data(), n,
                        w.elements.data(), w.element_count, &info);
    }
    for (int j = 0; j < n; ++j) values[j] = {re[j], im[j]};
    // A conjugate pair's vectors come as a real and an imaginary part.
    for (int j = 0; vectors && j < n; ++j) {
      const bool pair = im[j] != 0 && j + 1 < n;
      for (int i = 0; i < n; ++i) {
        const T x = pairs[i + static_cast<size_t>(j) * n];
        const T y = pair ? pairs[i + static_cast<size_t>(j + 1) * n] : T(0);
        vectors[i + static_cast<size_t>(j) * n] = {x, y};
        if (pair) vectors[i + static_cast<size_t>(j + 1) * n] = {x, -y};
      }
      if (pair) ++j;
    }
  }
  return info;
}

template <class T>
int svd(SvdVectors which, SvdDriver driver, int m, int n, T* a, Real<T>* s, T* u, T* vh) {
  if (m == 0 || n == 0) return 0;
  const char job = which == SvdVectors::None ? 'N' : which == SvdVectors::Reduced ? 'S' : 'A';
  const int least = std::min(m, n), most = std::max(m, n);
  const int vh_rows = which == SvdVectors::All ? n : least;
  int info = 0;
  Work<T> w;
  const size_t k = least;
  std::vector<int> integers(8 * k);
  std::vector<Real<T>> reals(
      is_complex<T> ? std::max(5 * k * k + 7 * k, 2 * static_cast<size_t>(most) * k + 2 * k * k + k) : 1);
  T none{};
  if (which == SvdVectors::None) u = vh = &none;
  const int ldu = which == SvdVectors::None ? 1 : m, ldvh = which == SvdVectors::None ? 1 : vh_rows;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) w.grow();
    if (driver == SvdDriver::DivideAndConquer) {
      if constexpr (is_complex<T>)
        lapack<T, "gesdd">(job, m, n, a, m, s, u, ldu, vh, ldvh, w.elements.data(), w.element_count,
                           reals.data(), integers.data(), &info);
      else
        lapack<T, "gesdd">(job, m, n, a, m, s, u, ldu, vh, ldvh, w.elements.data(), w.element_count,
                           integers.data(), &info);
    } else {
      if constexpr (is_complex<T>)
        lapack<T, "gesvd">(job, job, m, n, a, m, s, u, ldu, vh, ldvh, w.elements.data(), w.element_count,
                           reals.data(), &info);
      else
        lapack<T, "gesvd">(job, job, m, n, a, m, s, u, ldu, vh, ldvh, w.elements.data(), w.element_count,
                           &info);
    }
  }
  return info;
}

namespace {

/// Coefficients of the numerator of the [k/k] Pade approximant of exp, scaled to whole numbers.
std::vector<double> pade_coefficients(int k) {
  // b_j = (2k - j)! / ((k - j)! j!), from b_k = 1 downwards.
  std::vector<double> b(k + 1);
  b[k] = 1;
  for (int j = k; j > 0; --j) b[j - 1] = b[j] * static_cast<double>(2 * k - j + 1) * j / (k - j + 1);
  return b;
}

struct Degree {
  int degree;
  double largest_norm;  // of the 1-norm, for which the backward error is below the unit roundoff
};
constexpr std::array<Degree, 5> kDouble{{{3, 1.495585217958292e-2},
                                         {5, 2.539398330063230e-1},
                                         {7, 9.504178996162932e-1},
                                         {9, 2.097847961257068e0},
                                         {13, 5.371920351148152e0}}};
constexpr std::array<Degree, 3> kSingle{
    {{3, 4.258730016922831e-1}, {5, 1.880152677804762e0}, {7, 3.925724783138660e0}}};

template <class T>
Real<T> one_norm(int n, const T* a) {
  Real<T> largest = 0;
  for (int j = 0; j < n; ++j) {
    Real<T> column = 0;
    for (int i = 0; i < n; ++i) column += std::abs(a[i + static_cast<size_t>(j) * n]);
    if (!(column <= largest)) largest = column;  // keeps nan
  }
  return largest;
}

}  // namespace

template <class T>
void matrix_exponential(int n, T* a) {
  if (n == 0) return;
  const size_t count = static_cast<size_t>(n) * n;
  const double norm = static_cast<double>(one_norm(n, a));
  if (!std::isfinite(norm)) {
    std::fill(a, a + count, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    return;
  }
  int degree = 0, squarings = 0;
  double limit = 0;
  const auto choose = [&](const auto& degrees) {
    for (const Degree& d : degrees) {
      degree = d.degree;
      limit = d.largest_norm;
      if (norm <= limit) return;
    }
    squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / limit))));
  };
  if constexpr (std::is_same_v<Real<T>, double>)
    choose(kDouble);
  else
    choose(kSingle);

  const Real<T> scale = static_cast<Real<T>>(std::ldexp(1.0, -squarings));
  for (size_t i = 0; i < count; ++i) a[i] *= scale;
  // exp(a) = (v - u)^-1 (v + u): u has the odd powers, v the even ones.
  const std::vector<double> b = pade_coefficients(degree);
  std::vector<T> square(count), power(count), next(count), odd(count), even(count);
  multiply(n, n, n, a, a, square.data());
  for (int i = 0; i < n; ++i) {
    const size_t diagonal = i + static_cast<size_t>(i) * n;
    power[diagonal] = T(1);
    odd[diagonal] = T(static_cast<Real<T>>(b[1]));
    even[diagonal] = T(static_cast<Real<T>>(b[0]));
  }
  for (int j = 2; j <= degree; j += 2) {
    multiply(n, n, n, power.data(), square.data(), next.data());
    power.swap(next);
    const auto even_factor = static_cast<Real<T>>(b[j]);
    const auto odd_factor = j + 1 <= degree ? static_cast<Real<T>>(b[j + 1]) : Real<T>(0);
    for (size_t i = 0; i < count; ++i) {
      even[i] += even_factor * power[i];
      odd[i] += odd_factor * power[i];
    }
  }
  multiply(n, n, n, a, odd.data(), next.data());
  for (size_t i = 0; i < count; ++i) {
    power[i] = even[i] - next[i];
    a[i] = even[i] + next[i];
  }
  solve(n, n, power.data(), a);
  for (int k = 0; k < squarings; ++k) {
    multiply(n, n, n, a, a, next.data());
    std::copy(next.begin(), next.end(), a);
  }
}

#define FL_INSTANTIATE(T)                                                  \
  template int eigh(bool, bool, int, T*, Real<T>*);                        \
  template int eig(int, T*, Complex<T>*, Complex<T>*);                     \
  template int svd(SvdVectors, SvdDriver, int, int, T*, Real<T>*, T*, T*); \
  template void matrix_exponential(int, T*);
FL_FOR_LAPACK_TYPES(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::library
