// Power and hypotenuse, in float64. pow = 2^(y log2|x|) rounded to float32 at the end, which gives denormal
// results and overflow.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {

Num pow_f32(const Num& x, const Num& y) {
  const Num size = abs(x), wide = cast(size, DType::Float64);
  Num log = select(size == 0, -kInfinity, log2_wide(wide));
  log = select(size < kInfinity, log, wide);  // inf and nan
  const Num t = log * cast(y, DType::Float64);
  const Num power = cast(exp2_wide(at_most(at_least(t, -200), 200)), DType::Float32);

  const Num half = y * 0.5;
  const Num integer = trunc(y) == y;  // infinities and everything past 2^24 are even
  const Num odd = integer & (trunc(half) != half);
  const Num sign = bits(x) & static_cast<double>(INT32_MIN);
  const Num is_odd = cast(odd, DType::Int32);
  const Num signed_power = from_bits(bits(power) | (sign & (Num(0) - is_odd)));
  const Num undefined = (x < 0) & (x > -kInfinity) & (trunc(y) != y) & (y == y);
  const Num one = (y == 0) | (x == 1) | ((x == -1) & (abs(y) == kInfinity));
  return select(one, 1, select(undefined, kNan, signed_power));
}

// In float64 the squares are exact, and nothing overflows.
Num hypot_f32(const Num& x, const Num& y) {
  const Num a = cast(x, DType::Float64), b = cast(y, DType::Float64);
  const Num r = cast(sqrt(fma(a, a, b * b)), DType::Float32);
  return select((abs(x) == kInfinity) | (abs(y) == kInfinity), kInfinity, r);
}

}  // namespace fl::loop::math
