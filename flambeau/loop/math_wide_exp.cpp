// Exponentials and hyperbolic functions of float64, for machines without a library of them; as the functions
// of float32 in math_exp.cpp and math_hyperbolic.cpp.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kRounder = 6755399441055744;  // 1.5 * 2^52
constexpr double kScaleRounder = kRounder + 2046;
constexpr double kLog2E = 1.44269504088896341;
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // n * kLn2High is exact

/// p * 2^n, rounded once, for |n| < 1100; n + 2046 stands in the low bits of shifted.
Num scale(const Num& p, const Num& shifted) {
  const Num whole = bits(shifted);
  const Num half = (whole >> 1) << 52;
  return p * from_bits(half) * from_bits((whole << 52) - half);
}

struct Reduced {
  Num shifted, r;
};
Reduced reduce(const Num& x, double rounder) {
  const Num shifted = fma(x, kLog2E, rounder);
  const Num n = shifted - rounder;
  return {shifted, fma(n, -kLn2Low, fma(n, -kLn2High, x))};
}

/// e^r for |r| <= ln2/2: 2^-57.
Num exp_polynomial(const Num& r) {
  static constexpr double kP[] = {0.50000000000000111,    0.16666666666666435,    0.041666666666528129,
                                  0.0083333333334470149,  0.0013888888943760663,  0.00019841269642617253,
                                  2.4801493335401598e-05, 2.7557452721635333e-06, 2.7630051678334658e-07,
                                  2.5043287751135262e-08};
  return fma(r * r, horner(r, kP), r) + 1;
}

/// e^r - 1 for |r| <= ln2/2: 2^-61.
Num expm1_polynomial(const Num& r) {
  static constexpr double kP[] = {0.5,
                                  0.16666666666666677,
                                  0.041666666666666692,
                                  0.0083333333333211121,
                                  0.0013888888888858276,
                                  0.00019841269887993293,
                                  2.4801587404055049e-05,
                                  2.7557241896052827e-06,
                                  2.755718355694268e-07,
                                  2.5109966086158584e-08,
                                  2.0949223593434231e-09};
  return fma(r * r, horner(r, kP), r);
}

}  // namespace

Num exp_f64(const Num& x) {
  const Reduced e = reduce(at_most(at_least(x, -746), 710), kScaleRounder);
  return scale(exp_polynomial(e.r), e.shifted);
}

Num scaled_exp_f64(const Num& x, const Num& low, const Num& factor) {
  const Num shifted = fma(x, kLog2E, kScaleRounder), n = shifted - kScaleRounder;
  const Num r = fma(n, -kLn2High, x) + fma(n, -kLn2Low, low);
  return scale(exp_polynomial(r) * factor, shifted);
}

// 2^r = 1 + r p(r): 2^-57.
Num exp2_f64(const Num& x, const Num& low) {
  static constexpr double kP[] = {0.69314718055994529,    0.24022650695910172,   0.055504108664824574,
                                  0.0096181291075771204,  0.0013333558145567702, 0.00015403530478763072,
                                  1.5252734737663379e-05, 1.321542453651285e-06, 1.0177656224264339e-07,
                                  7.0756067623313715e-09, 4.5192972005218202e-10};
  const Num bounded = at_most(at_least(x, -1080), 1025);
  const Num shifted = bounded + kScaleRounder;
  const Num r = (bounded - (shifted - kScaleRounder)) + low;
  return scale(fma(r, horner(r, kP), 1), shifted);
}
Num exp2_f64(const Num& x) { return exp2_f64(x, 0); }

// 2^n (e^r - 1) + (2^n - 1), everything halved so that n = 1024 does not overflow early.
Num expm1_f64(const Num& x) {
  const Reduced e = reduce(at_most(at_least(x, -40), 710), kRounder + 1022);
  const Num half = from_bits(bits(e.shifted) << 52);
  const Num sum = fma(expm1_polynomial(e.r), half, half - 0.5);
  return select(abs(x) < 0x1p-54, x, sum + sum);
}

// With w = expm1(-2a), tanh(a) = -w / (2 + w) = 1 - 2 (1 + w) / (2 + w).
Num tanh_f64(const Num& x) {
  const Reduced e = reduce(at_most(abs(x), 20) * -2, kRounder + 1023);
  const Num power = from_bits(bits(e.shifted) << 52);
  const Num w = fma(expm1_polynomial(e.r), power, power - 1);
  const Num large = w < -0.7, quotient = select(large, w + w + 2, -w) / (w + 2);
  return copysign(select(large, 1 - quotient, quotient), x);
}

namespace {

struct Hyperbolic {
  Num cosh_n, sinh_n;  ///< half of cosh and sinh of n ln2
  Num cosh_r, sinh_r;  ///< cosh(r) - 1, sinh(r): 2^-70, 2^-61
};
/// |x| = n ln2 + r. Half, because 2^(n-1) overflows where the results still do not.
Hyperbolic hyperbolic(const Num& size) {
  static constexpr double kCosh[] = {0.5,
                                     0.041666666666666685,
                                     0.0013888888888873264,
                                     2.4801587349281714e-05,
                                     2.7557251718466583e-07,
                                     2.0921810650343485e-09};
  static constexpr double kSinh[] = {0.16666666666666677, 0.0083333333333213758, 0.00019841269886776774,
                                     2.7557243577414082e-06, 2.5109246754051943e-08};
  const Reduced e = reduce(at_most(size, 710.6), kRounder + 1021);
  const Num n = e.shifted - (kRounder + 1021), square = e.r * e.r;
  const Num up = from_bits(bits(e.shifted) << 52);                                // 2^(n-2)
  const Num down = select(n > 60, 0, from_bits((2042 - bits(e.shifted)) << 52));  // 2^(-n-2)
  return {up + down, up - down, square * horner(square, kCosh),
          fma(square * e.r, horner(square, kSinh), e.r)};
}

}  // namespace

Num sinh_f64(const Num& x) {
  const Num size = abs(x);
  const Hyperbolic h = hyperbolic(size);
  const Num half = h.sinh_n + fma(h.sinh_n, h.cosh_r, h.cosh_n * h.sinh_r);
  return select(size < 0x1p-28, x, copysign(half + half, x));
}

Num cosh_f64(const Num& x) {
  const Hyperbolic h = hyperbolic(abs(x));
  const Num half = h.cosh_n + fma(h.cosh_n, h.cosh_r, h.sinh_n * h.sinh_r);
  return half + half;
}

}  // namespace fl::loop::math
