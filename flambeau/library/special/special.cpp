#include "flambeau/library/special/special.h"

#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "flambeau/library/special/polynomials.h"

namespace fl::library {
namespace {

namespace bm = boost::math;
using bm::policies::ignore_error;
/// Out of the domain is nan, too large is inf; arithmetic in float64.
using Quiet = bm::policies::policy<
    bm::policies::domain_error<ignore_error>, bm::policies::pole_error<ignore_error>,
    bm::policies::overflow_error<ignore_error>, bm::policies::underflow_error<ignore_error>,
    bm::policies::denorm_error<ignore_error>, bm::policies::evaluation_error<ignore_error>,
    bm::policies::indeterminate_result_error<ignore_error>, bm::policies::promote_double<false>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

double bessel_j(int order, double x) {
  if (std::isnan(x)) return x;
  return std::isinf(x) ? 0 : bm::cyl_bessel_j(order, x, Quiet());
}
double bessel_y(int order, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return -kInfinity;
  return std::isinf(x) ? 0 : bm::cyl_neumann(order, x, Quiet());
}
double bessel_i(int order, double x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) > 714) return order % 2 && x < 0 ? -kInfinity : kInfinity;
  return bm::cyl_bessel_i(order, x, Quiet());
}
double bessel_k(int order, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInfinity;
  return x > 745 ? 0 : bm::cyl_bessel_k(order, x, Quiet());
}

/// 1 -+ (4 v^2 - 1) / (8 x) + ...: what is left of I (alternating) and K for large x.
double large_argument_series(int order, double x, bool alternating) {
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    const double odd = 2 * k - 1;
    term *= (4.0 * order * order - odd * odd) / (8 * k * x) * (alternating ? -1 : 1);
    sum += term;
  }
  return sum;
}
double scaled_bessel_i(int order, double x) {
  if (std::isnan(x)) return x;
  const double size = std::abs(x), sign = order % 2 && x < 0 ? -1 : 1;
  if (size < 600) return std::exp(-size) * bessel_i(order, x);
  return sign * large_argument_series(order, size, true) / std::sqrt(2 * kPi * size);
}
double scaled_bessel_k(int order, double x) {
  if (!(x > 0) || x < 600) return std::exp(x) * bessel_k(order, x);
  return large_argument_series(order, x, false) * std::sqrt(kPi / (2 * x));
}

double airy_ai(double x) {
  if (std::isnan(x) || std::isinf(x)) return kNan;
  return x > 103.892 ? 0 : bm::airy_ai(x, Quiet());
}

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  const double s = x * x;
  // The series where sin(x) / x divides two small numbers.
  if (std::abs(x) < 0.5)
    return 1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110 * (1 - s / 156)))));
  return std::sin(x) / x;
}

/// exp(x^2) with the square in two parts, so that its rounding is not multiplied.
double exp_of_square(double x) {
  const double head = static_cast<double>(static_cast<float>(x)), tail = (x - head) * (x + head);
  return std::exp(head * head) * std::exp(tail);
}

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x < -26.7) return kInfinity;
  if (x < 25) return exp_of_square(x) * std::erfc(x);
  const double s = 1 / (2 * x * x);
  return (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s * (1 - 11 * s * (1 - 13 * s))))))) / x *
         std::numbers::inv_sqrtpi;
}

double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  return p < 0.5 ? -std::numbers::sqrt2 * bm::erfc_inv(2 * p, Quiet())
                 : std::numbers::sqrt2 * bm::erf_inv(2 * (p - 0.5), Quiet());
}

/// Sum of (q + k)^-s over k >= 0 by Euler and Maclaurin's formula from q + k = s + 16 on, where its terms
/// fall fast enough.
double hurwitz_zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kNan;
  if (s == 1) return kInfinity;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s)) return kNan;
  }
  double sum = 0, w = q;
  for (; w < s + 16; w += 1) {
    const double term = std::pow(w, -s);
    sum += term;
    if (w > 1 && std::abs(term) < 1e-18 * std::abs(sum)) return sum;
  }
  const double power = std::pow(w, -s);
  sum += power * (w / (s - 1) + 0.5);
  // B_2j / (2j)!
  static constexpr double kFactors[] = {1.0 / 12,          -1.0 / 720,
                                        1.0 / 30240,       -1.0 / 1209600,
                                        1.0 / 47900160,    -691.0 / 1307674368000,
                                        1.0 / 74724249600, -3617.0 / 10670622842880000};
  double rising = s * power / w;
  for (int j = 0; j < 8; ++j) {
    const double term = kFactors[j] * rising;
    sum += term;
    if (std::abs(term) < 1e-18 * std::abs(sum)) break;
    rising *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
  }
  return sum;
}

/// Both incomplete gamma functions where one argument decides; nan inside the domain.
double gamma_edge(double a, double x, bool lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? (lower ? 1 : 0) : kNan;
  if (x == 0) return lower ? 0 : 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : (lower ? 0 : 1);
  return lower ? 1 : 0;  // x is infinite
}
bool has_edge(double a, double x) { return !(a > 0 && x > 0 && std::isfinite(a) && std::isfinite(x)); }
double lower_gamma(double a, double x) {
  return has_edge(a, x) ? gamma_edge(a, x, true) : bm::gamma_p(a, x, Quiet());
}
double upper_gamma(double a, double x) {
  return has_edge(a, x) ? gamma_edge(a, x, false) : bm::gamma_q(a, x, Quiet());
}

struct NamedUnary {
  std::string_view name;
  UnaryFunction function;
};
constexpr NamedUnary kUnary[] = {
    {"airy_ai", airy_ai},
    {"bessel_j0", [](double x) { return bessel_j(0, x); }},
    {"bessel_j1", [](double x) { return bessel_j(1, x); }},
    {"bessel_y0", [](double x) { return bessel_y(0, x); }},
    {"bessel_y1", [](double x) { return bessel_y(1, x); }},
    {"i0", [](double x) { return bessel_i(0, x); }},
    {"i0e", [](double x) { return scaled_bessel_i(0, x); }},
    {"i1", [](double x) { return bessel_i(1, x); }},
    {"i1e", [](double x) { return scaled_bessel_i(1, x); }},
    {"modified_bessel_i0", [](double x) { return bessel_i(0, x); }},
    {"modified_bessel_i1", [](double x) { return bessel_i(1, x); }},
    {"modified_bessel_k0", [](double x) { return bessel_k(0, x); }},
    {"modified_bessel_k1", [](double x) { return bessel_k(1, x); }},
    {"scaled_modified_bessel_k0", [](double x) { return scaled_bessel_k(0, x); }},
    {"scaled_modified_bessel_k1", [](double x) { return scaled_bessel_k(1, x); }},
    {"spherical_bessel_j0", spherical_bessel_j0},
    {"erfcx", erfcx},
    {"ndtri", ndtri},
};

struct NamedBinary {
  std::string_view name;
  BinaryFunction function;
};
constexpr NamedBinary kBinary[] = {
    {"zeta", hurwitz_zeta},
    {"gammainc", lower_gamma},
    {"gammaincc", upper_gamma},
    {"chebyshev_polynomial_t", chebyshev_t},
    {"chebyshev_polynomial_u", chebyshev_u},
    {"chebyshev_polynomial_v", chebyshev_v},
    {"chebyshev_polynomial_w", chebyshev_w},
    {"shifted_chebyshev_polynomial_t", [](double x, double n) { return chebyshev_t(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_u", [](double x, double n) { return chebyshev_u(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_v", [](double x, double n) { return chebyshev_v(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_w", [](double x, double n) { return chebyshev_w(2 * x - 1, n); }},
    {"hermite_polynomial_h", hermite_h},
    {"hermite_polynomial_he", hermite_he},
    {"laguerre_polynomial_l", laguerre_l},
    {"legendre_polynomial_p", legendre_p},
};

}  // namespace

UnaryFunction find_unary_function(std::string_view name) {
  for (const NamedUnary& f : kUnary)
    if (f.name == name) return f.function;
  return nullptr;
}
BinaryFunction find_binary_function(std::string_view name) {
  for (const NamedBinary& f : kBinary)
    if (f.name == name) return f.function;
  return nullptr;
}

}  // namespace fl::library
