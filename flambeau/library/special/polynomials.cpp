#include "flambeau/library/special/polynomials.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace fl::library {
namespace {

/// The degree, or -1 for a negative one. nan stays nan through the caller's check.
int64_t degree_of(double n) { return n <= -1 ? -1 : static_cast<int64_t>(std::min(n, 9e15)); }

/// p_k from p_0 = 1 and p_1 by next(k, p_k, p_k-1) = p_k+1.
template <class F>
double by_recurrence(double first, double n, F next) {
  if (std::isnan(n)) return n;
  const int64_t degree = degree_of(n);
  if (degree < 0) return 0;
  double before = 1, now = first;
  if (degree == 0) return before;
  for (int64_t k = 1; k < degree && !std::isnan(now); ++k) {
    const double after = next(static_cast<double>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

double chebyshev(double x, double first, double n) {
  return by_recurrence(first, n, [x](double, double now, double before) { return 2 * x * now - before; });
}

/// By angles inside (-1, 1), where the recurrence of a high degree would lose digits.
bool has_angle(double x, double n) { return n > 8 && std::abs(x) < 1; }
double whole(double n) { return std::trunc(n); }

}  // namespace

double chebyshev_t(double x, double n) {
  return has_angle(x, n) ? std::cos(whole(n) * std::acos(x)) : chebyshev(x, x, n);
}
double chebyshev_u(double x, double n) {
  if (!has_angle(x, n)) return chebyshev(x, 2 * x, n);
  const double angle = std::acos(x);
  return std::sin((whole(n) + 1) * angle) / std::sin(angle);
}
double chebyshev_v(double x, double n) {
  if (!has_angle(x, n)) return chebyshev(x, 2 * x - 1, n);
  const double half = std::acos(x) / 2;
  return std::cos((2 * whole(n) + 1) * half) / std::cos(half);
}
double chebyshev_w(double x, double n) {
  if (!has_angle(x, n)) return chebyshev(x, 2 * x + 1, n);
  const double half = std::acos(x) / 2;
  return std::sin((2 * whole(n) + 1) * half) / std::sin(half);
}

double hermite_h(double x, double n) {
  return by_recurrence(2 * x, n,
                       [x](double k, double now, double before) { return 2 * (x * now - k * before); });
}
double hermite_he(double x, double n) {
  return by_recurrence(x, n, [x](double k, double now, double before) { return x * now - k * before; });
}
double laguerre_l(double x, double n) {
  return by_recurrence(1 - x, n, [x](double k, double now, double before) {
    return ((2 * k + 1 - x) * now - k * before) / (k + 1);
  });
}
double legendre_p(double x, double n) {
  return by_recurrence(x, n, [x](double k, double now, double before) {
    return ((2 * k + 1) * x * now - k * before) / (k + 1);
  });
}

}  // namespace fl::library
