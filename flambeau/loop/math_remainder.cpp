// Operations on the representation of floats: exact remainder, neighbour.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {

// fmod: from |x| the multiples of |y| 2^240, |y| 2^192, ..., |y| are taken. Each quotient is below 2^50 and,
// made from a rounded 1/|y|, may be one off, which the next step corrects, and the last lines do after the
// last; each product and difference is exact in float64 through fma, as what remains is a multiple of a last
// place of x or y.
Num rem_f32(const Num& x, const Num& y) {
  const Num b = cast(abs(y), DType::Float64), inverse = 1 / b;
  Num rest = cast(abs(x), DType::Float64);
  for (double power : {0x1p240, 0x1p192, 0x1p144, 0x1p96, 0x1p48, 1.0}) {
    const Num step = b * power;
    const Num quotient = trunc(rest * (inverse * (1 / power)));
    rest = fma(-quotient, step, rest);
  }
  rest = select(rest < 0, rest + b, rest);
  rest = select(rest >= b, rest - b, rest);
  const Num result = copysign(cast(rest, DType::Float32), x);
  return select((abs(x) < kInfinity) & (abs(y) == kInfinity), x, result);
}

Num nextafter_f32(const Num& x, const Num& y) {
  const Num away = (x < y) ^ (x < 0);
  const Num step = from_bits(bits(x) + select(away, DType::Int32, 1, -1));
  const Num from_zero = copysign(0x1p-149, y);
  const Num moved = select(x == 0, from_zero, step);
  return select(x == y, y, select(is_nan(x) | is_nan(y), x + y, moved));
}

}  // namespace fl::loop::math
