// Hyperbolic functions but tanh, and their inverses.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

struct Hyperbolic {
  Num cosh_n, sinh_n;  ///< half of cosh and sinh of n ln2
  Num cosh_r, sinh_r;  ///< cosh(r) - 1, sinh(r): 2^-33, 2^-26
};
/// |x| = n ln2 + r. Half, because 2^(n-1) overflows where the results still do not.
Hyperbolic hyperbolic(const Num& size) {
  static constexpr double kCosh[] = {0.5, 0.0416664593, 0.00139354519};
  static constexpr double kSinh[] = {0.166665435, 0.00836655311};
  constexpr double kRounder = 12582912.0 + 125, kLog2E = 1.44269504088896341;
  constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723e-6;
  const Num a = at_most(size, 89.5);
  const Num shifted = fma(a, kLog2E, kRounder), n = shifted - kRounder;
  const Num r = fma(n, -kLn2Low, fma(n, -kLn2High, a)), square = r * r;
  const Num up = from_bits(bits(shifted) << 23);                               // 2^(n-2)
  const Num down = select(n > 60, 0, from_bits((250 - bits(shifted)) << 23));  // 2^(-n-2)
  return {up + down, up - down, square * horner(square, kCosh), fma(square * r, horner(square, kSinh), r)};
}

}  // namespace

Num sinh_f32(const Num& x) {
  const Num size = abs(x);
  const Hyperbolic h = hyperbolic(size);
  const Num half = h.sinh_n + fma(h.sinh_n, h.cosh_r, h.cosh_n * h.sinh_r);
  return select(size < 0x1p-12, x, copysign(half + half, x));
}

Num cosh_f32(const Num& x) {
  const Hyperbolic h = hyperbolic(abs(x));
  const Num half = h.cosh_n + fma(h.cosh_n, h.cosh_r, h.sinh_n * h.sinh_r);
  return half + half;
}

// The inverses go through the float64 logarithm, whose absolute error is far below a float32 argument's last
// place.
Num asinh_f32(const Num& x) {
  const Num size = abs(x), a = cast(size, DType::Float64);
  const Num r = cast(log_wide(a + sqrt(fma(a, a, 1))), DType::Float32);
  return select(size < 0x1p-12, x, copysign(r, x));
}

Num acosh_f32(const Num& x) {
  const Num a = cast(x, DType::Float64);
  const Num r = cast(log_wide(a + sqrt(fma(a, a, -1))), DType::Float32);
  return select(x < 1, kNan, r);
}

Num atanh_f32(const Num& x) {
  const Num size = abs(x), a = cast(size, DType::Float64);
  const Num r = cast(log_wide((1 + a) / (1 - a)) * 0.5, DType::Float32);
  return select(size < 0x1p-13, x, copysign(r, x));
}

}  // namespace fl::loop::math
