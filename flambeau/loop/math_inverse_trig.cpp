// Inverse trigonometric functions.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kPi = 3.14159265358979324;
constexpr double kHalfPi = 1.57079632679489662;

struct ArcSine {
  Num big, value;
};
/// asin(|x|) for |x| <= 1/2; else half of acos(|x|) = asin(sqrt((1 - |x|)/2)). The polynomial: 2^-27.6.
ArcSine arc_sine(const Num& size) {
  static constexpr double kP[] = {0.166667521, 0.0749530643, 0.0454697721, 0.0241807736, 0.0421664119};
  const Num big = size > 0.5;
  const Num z = select(big, fma(size, -0.5, 0.5), size * size);
  const Num s = select(big, sqrt(z), size);
  return {big, fma(s * z, horner(z, kP), s)};
}

/// atan t for t in [0, 1]: 2^-25.8.
Num atan_polynomial(const Num& t) {
  static constexpr double kP[] = {-0.333331525,  0.199937671,  -0.14211008,   0.10665822,
                                  -0.0755183846, 0.0432075933, -0.0163654014, 0.00292008254};
  const Num z = t * t;
  return fma(t * z, horner(z, kP), t);
}

}  // namespace

Num asin_f32(const Num& x) {
  const ArcSine a = arc_sine(abs(x));
  return copysign(select(a.big, fma(a.value, -2, kHalfPi), a.value), x);
}

Num acos_f32(const Num& x) {
  const ArcSine a = arc_sine(abs(x));
  const Num twice = a.value + a.value;
  return select(a.big, select(x < 0, kPi - twice, twice), kHalfPi - copysign(a.value, x));
}

Num atan_f32(const Num& x) {
  const Num size = abs(x), big = size > 1;
  const Num p = atan_polynomial(select(big, 1 / size, size));
  return copysign(select(big, kHalfPi - p, p), x);
}

Num atan2_f32(const Num& y, const Num& x) {
  const Num a = abs(y), b = abs(x), steep = a > b;
  const Num low = select(steep, b, a), high = select(steep, a, b);
  // The quotients 0/0 and inf/inf mean 0 and 1 here.
  const Num t = select(low == high, select(high == 0, DType::Float32, 0, 1), low / high);
  const Num p = atan_polynomial(t);
  const Num first = select(steep, kHalfPi - p, p);
  return copysign(select(bits(x) < 0, kPi - first, first), y);
}

}  // namespace fl::loop::math
