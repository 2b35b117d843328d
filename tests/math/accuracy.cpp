#include "accuracy.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace fl::loop {
namespace {
constexpr long double kPi = 3.14159265358979323846264338327950288L;
}  // namespace

std::vector<float> special_points() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> out;
  auto add = [&](float v) {
    for (float p : {v, std::nextafter(v, 0.f), std::nextafter(v, kInf)}) out.insert(out.end(), {p, -p});
  };
  for (float v : {0.f,
                  kInf,
                  std::numeric_limits<float>::quiet_NaN(),
                  std::numeric_limits<float>::max(),
                  0.1f,
                  0.3f,
                  0.7f,
                  1.5f,
                  2.5f,
                  3.5f,
                  88.72284f,
                  87.33655f,
                  103.97208f,
                  89.41599f,
                  150.f,
                  126.f,
                  9.01f,
                  3.92f,
                  10.05f,
                  1.57079633f,
                  3.14159265f,
                  0.78539816f,
                  1e10f,
                  1e22f,
                  1e38f})
    add(v);
  for (int e = -149; e < 128; ++e) add(std::ldexp(1.f, e));
  for (int i = 3; i < 40; ++i) add(static_cast<float>(i));
  return out;
}

std::vector<float> random_bits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& v : out) v = std::bit_cast<float>(static_cast<uint32_t>(random()));
  return out;
}

std::vector<float> sweep(float lo, float hi, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(lo + (static_cast<double>(hi) - lo) * static_cast<double>(i) /
                                         static_cast<double>(count - 1));
  return out;
}

double ulps(float got, long double exact) {
  constexpr double kWrong = 1e9;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kWrong;
  const float rounded = static_cast<float>(exact);
  if (got == rounded) {
    if (got == 0 && std::signbit(got) != std::signbit(rounded)) return kWrong;
    if (got == 0 && exact == 0) return 0;
    if (std::isinf(got)) return 0;
  }
  if (std::isinf(exact)) return kWrong;
  const long double value = std::isinf(got) ? std::copysign(0x1p128L, got) : static_cast<long double>(got);
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(1.0L, std::min(exponent, 127) - 23));
}

long double exact_lgamma(double x) { return std::lgamma(static_cast<long double>(x)); }

/// By recurrence and the asymptotic series in long double; the poles as PyTorch has them.
long double exact_digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    const long double z = -static_cast<long double>(x), r = z - std::nearbyint(z);
    if (r == 0 || std::isnan(r)) return std::numeric_limits<double>::quiet_NaN();
    return exact_digamma(-x) + 1 / z + kPi / std::tan(kPi * r);
  }
  long double z = x, shift = 0;
  for (; z < 20; ++z) shift += 1 / z;
  const long double v = 1 / (z * z);
  const long double tail =
      v *
      (1.L / 12 -
       v * (1.L / 120 - v * (1.L / 252 - v * (1.L / 240 - v * (1.L / 132 - v * (691.L / 32760 - v / 12))))));
  return std::log(z) - 0.5L / z - tail - shift;
}

/// Newton on erf(r) = x near 0, on log(erfc(r)) = log(1 - x) elsewhere.
long double exact_erfinv(double x) {
  const long double half_root_pi = std::sqrt(kPi) / 2, a = std::fabs(static_cast<long double>(x));
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  if (a < 1e-5L) return half_root_pi * x * (1 + kPi / 12 * a * a);
  long double r = a < 0.5L ? a * half_root_pi : std::sqrt(-std::log1p(-a * a));
  for (int i = 0; i < 60; ++i) {
    const long double slope = half_root_pi * std::exp(r * r), tail = std::erfc(r);
    const long double step = a < 0.5L ? (a - std::erf(r)) * slope : std::log(tail / (1 - a)) * tail * slope;
    r += step;
    if (std::fabs(step) < 1e-18L * r) break;
  }
  return x < 0 ? -r : r;
}

std::string Worst::str() const {
  return fmt::format("{:.3f} ulp at ({:a} = {}, {:a} = {}): got {}, expected {}", ulp, a, a, b, b, got,
                     static_cast<double>(exact));
}

}  // namespace fl::loop
