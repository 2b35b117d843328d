#include "accuracy.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace fl::loop {

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

std::string Worst::str() const {
  return fmt::format("{:.3f} ulp at ({:a} = {}, {:a} = {}): got {}, expected {}", ulp, a, a, b, b, got,
                     static_cast<double>(exact));
}

}  // namespace fl::loop
