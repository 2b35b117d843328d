// Sine, cosine and tangent. The argument is reduced in float64: 2/pi is taken as three parts of 29 bits
// after the leading bits have been dropped that, for the size of x, only add multiples of 4 to the quotient
// (the idea of Payne and Hanek). The products with the first two parts are exact, so the reduction holds for
// every float32.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kWideRounder = 6755399441055744;  // 1.5 * 2^52
constexpr double kHalfPi = 1.57079632679489662;

/// 2/pi without the bits above 2^-15, 2^-47, 2^-79: for |x| below 2^40, 2^72, 2^104 and above.
constexpr double kTwoOverPi[4][3] = {
    {0x1.45f306d000000p-1, 0x1.9391054000000p-30, 0x1.4fe13abe8fa9ap-59},
    {0x1.836e4e4000000p-16, 0x1.054a7f0000000p-46, 0x1.3abe8fa9a6ee0p-75},
    {0x1.529fc20000000p-52, 0x1.d5f47d4000000p-78, 0x1.a6ee06db14acdp-107},
    {0x1.57d1f53000000p-80, 0x1.377036c000000p-110, 0x1.8a5664f10e410p-138},
};

/// x * part modulo 4, exactly.
Num multiple(const Num& x, const Num& part) {
  const Num product = x * part;
  return fma(round(product * 0.25), -4, product);
}

struct Angle {
  Num quadrant;  ///< int32, modulo 4 in its low bits
  Num r;         ///< float32 in [-pi/4, pi/4]
};
Angle reduce(const Num& x) {
  const Num wide = cast(x, DType::Float64), size = abs(x);
  const Num past40 = size >= 0x1p40, past72 = size >= 0x1p72, past104 = size >= 0x1p104;
  auto part = [&](int j) {
    Num p = select(past40, DType::Float64, kTwoOverPi[1][j], kTwoOverPi[0][j]);
    p = select(past72, kTwoOverPi[2][j], p);
    return select(past104, kTwoOverPi[3][j], p);
  };
  const Num first = multiple(wide, part(0)), second = multiple(wide, part(1));
  const Num rest = part(2), shifted = fma(wide, rest, first + second) + kWideRounder;
  const Num turns = fma(wide, rest, (first - (shifted - kWideRounder)) + second);
  return {cast(bits(shifted), DType::Int32), cast(turns * kHalfPi, DType::Float32)};
}

/// sin r for |r| <= pi/4: 2^-27.9.
Num sin_polynomial(const Num& r, const Num& square) {
  static constexpr double kP[] = {-0.166666552, 0.00833218917, -0.000195182845};
  return fma(square * r, horner(square, kP), r);
}
/// cos r for |r| <= pi/4: 2^-33.
Num cos_polynomial(const Num& square) {
  static constexpr double kP[] = {1, -0.5, 0.0416666456, -0.00138873095, 2.44323619e-05};
  return horner(square, kP);
}

/// sin of r in the quadrant.
Num sin_in(const Num& quadrant, const Num& r) {
  const Num square = r * r;
  const Num value = select((quadrant & 1) != 0, cos_polynomial(square), sin_polynomial(r, square));
  return from_bits(bits(value) ^ ((quadrant & 2) << 30));
}

}  // namespace

Num sin_f32(const Num& x) {
  const Angle a = reduce(x);
  return select(abs(x) < 0x1p-12, x, sin_in(a.quadrant, a.r));
}

Num cos_f32(const Num& x) {
  const Angle a = reduce(x);
  return sin_in(a.quadrant + 1, a.r);
}

Num tan_f32(const Num& x) {
  const Angle a = reduce(x);
  const Num square = a.r * a.r;
  const Num sine = sin_polynomial(a.r, square), cosine = cos_polynomial(square);
  const Num is_odd = (a.quadrant & 1) != 0;
  const Num ratio = select(is_odd, cosine, sine) / select(is_odd, sine, cosine);
  return select(abs(x) < 0x1p-13, x, from_bits(bits(ratio) ^ (a.quadrant << 31)));
}

}  // namespace fl::loop::math
