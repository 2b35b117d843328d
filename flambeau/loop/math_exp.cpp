// Exponentials. x = n ln2 + r with |r| <= ln2/2; n comes from adding 1.5*2^23, which rounds to the nearest
// integer and leaves n in the low bits, so that no conversion to an integer is needed and nan passes through.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kRounder = 12582912.0 + 254;      // 1.5 * 2^23; 254 for scale()
constexpr double kWideRounder = 6755399441055744;  // 1.5 * 2^52
constexpr double kLog2E = 1.44269504088896341;
constexpr double kHalfLn2 = 0.346573590279972655;
constexpr double kLn2High = 0.693145751953125;  // 16 bits: n * kLn2High is exact
constexpr double kLn2Low = 1.42860682030941723e-6;

/// p * 2^n, rounded once, for |n| < 250; n + 254 stands in the low bits of shifted: half of it is the biased
/// exponent of one factor, the rest that of the other. nan for a p that is nan.
Num scale(const Num& p, const Num& shifted) {
  const Num whole = bits(shifted);
  const Num half = (whole >> 1) << 23;
  return p * from_bits(half) * from_bits((whole << 23) - half);
}

struct Reduced {
  Num shifted, r;
};
Reduced reduce(const Num& x) {
  const Num shifted = fma(x, kLog2E, kRounder);
  const Num n = shifted - kRounder;
  return {shifted, fma(n, -kLn2Low, fma(n, -kLn2High, x))};
}

/// e^r for |r| <= ln2/2: 2^-28.
Num exp_polynomial(const Num& r) {
  static constexpr double kP[] = {1, 1, 0.49999994, 0.166665167, 0.0416682512, 0.00836909469, 0.00138222496};
  return horner(r, kP);
}

/// e^r - 1 for |r| <= ln2/2: 2^-28.
Num expm1_polynomial(const Num& r) {
  static constexpr double kP[] = {0.5,           0.166666359,   0.0416665114,
                                  0.00834160578, 0.00139305228, 0.000149336091};
  return fma(r * r, horner(r, kP), r);
}

}  // namespace

Num exp_f32(const Num& x) {
  const Reduced e = reduce(at_most(at_least(x, -104), 89));
  return scale(exp_polynomial(e.r), e.shifted);
}

// What is scaled stays normal, so that one factor does.
Num decay_f32(const Num& x) {
  constexpr double kBiasedRounder = 12582912.0 + 127;
  const Num t = -abs(x);
  const Num shifted = fma(t, kLog2E, kBiasedRounder), n = shifted - kBiasedRounder;
  const Num r = fma(n, -kLn2Low, fma(n, -kLn2High, t));
  return select(t < -87, Num(0), exp_polynomial(r) * from_bits(bits(shifted) << 23));
}

Num scaled_exp_f32(const Num& x, const Num& low, const Num& factor) {
  const Num shifted = fma(x, kLog2E, kRounder), n = shifted - kRounder;
  const Num r = fma(n, -kLn2High, x) + fma(n, -kLn2Low, low);
  return scale(exp_polynomial(r) * factor, shifted);
}

Num exp2_f32(const Num& x) {
  static constexpr double kP[] = {
      1, 0.693147182, 0.240225941, 0.0555036627, 0.00962542929, 0.00133878447, 0.000133355381};
  const Num bounded = at_most(at_least(x, -151), 129);
  const Num shifted = bounded + kRounder;
  return scale(horner(bounded - (shifted - kRounder), kP), shifted);
}

// 2^n (e^r - 1) + (2^n - 1), everything halved so that n = 128 does not overflow early.
Num expm1_f32(const Num& x) {
  const Reduced e = reduce(at_most(at_least(x, -18), 89));
  const Num half = from_bits((bits(e.shifted) - 128) << 23);
  const Num sum = fma(expm1_polynomial(e.r), half, half - 0.5);
  return select(abs(x) < 0x1p-26, x, sum + sum);
}

// With w = -expm1(-2a)/2, tanh(a) = w / (1 - w). -2a = n ln2 - 2r; one constant for ln2/2 does, since 2^n
// shrinks with the error of n times it. w = 2^n p(r) + (1 - 2^n)/2 where p(r) = -expm1(-2r)/2: 2^-27.
Num tanh_f32(const Num& x) {
  static constexpr double kP[] = {-0.99999994, 0.666661561, -0.333339125, 0.133873537, -0.044422891};
  constexpr double kBiasedRounder = 12582912.0 + 127;
  const Num a = at_most(abs(x), 9.02);
  const Num shifted = fma(a, -2 * kLog2E, kBiasedRounder);
  const Num r = fma(shifted - kBiasedRounder, kHalfLn2, a);
  const Num power = from_bits(bits(shifted) << 23);
  const Num w = fma(fma(r * r, horner(r, kP), r), power, fma(power, -0.5, 0.5));
  return copysign(w / (1 - w), x);
}

Num exp2_wide(const Num& t) {
  static constexpr double kP[] = {1,
                                  0.69314718070448944,
                                  0.24022651066581818,
                                  0.055504103660793148,
                                  0.009618038129804999,
                                  0.0013333934997664452,
                                  0.00015466756903531162,
                                  1.5196168483794841e-05};
  const Num shifted = t + kWideRounder;
  return from_bits(bits(horner(t - (shifted - kWideRounder), kP)) + (bits(shifted) << 52));
}

}  // namespace fl::loop::math
