// Logarithms. x = m 2^e with m near 1, f = m - 1 exactly; e and m come from the bits of x by integer
// arithmetic.
#include <cmath>

#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kLn2 = 0.693147180559945309;

/// (log(1+f) - f) / f^2 on [-1/3, 1/3], relative to log(1+f) / f^2: 2^-27.6.
Num log_tail(const Num& f) {
  static constexpr double kP[] = {-0.5,        0.333331972,  -0.249999195, 0.20011431,  -0.166744485,
                                  0.139897734, -0.122734316, 0.140598416,  -0.124889389};
  return horner(f, kP);
}

struct Parts {
  Num f, e;
};
/// For positive x: m in [2/3, 4/3). Denormals are scaled first.
Parts split(const Num& x) {
  const Num small = x < 0x1p-126;
  const Num whole = bits(select(small, x * 0x1p23, x));
  const Num exponent = (whole - 0x3f2aaaab) >> 23;
  const Num m = from_bits(whole - (exponent << 23));
  return {m - 1, cast(exponent, DType::Float32) + select(small, DType::Float32, -23, 0)};
}

/// r, made right where x is not a positive finite number; x is the argument shifted so that the pole is at 0.
Num with_specials(const Num& x, const Num& r) {
  const Num at_pole = select(x == 0, DType::Float32, -kInfinity, kNan);
  return select(x > 0, select(x < kInfinity, r, x), at_pole);
}

}  // namespace

Num log_f32(const Num& x) {
  const Parts p = split(x);
  const Num log_m = fma(p.f * p.f, log_tail(p.f), p.f);
  return with_specials(x, fma(p.e, kLn2, log_m));
}

// log2(1+f) = f/ln2 + f^2 tail/ln2, with 1/ln2 in two parts for the leading term.
Num log2_f32(const Num& x) {
  constexpr double kHigh = 1.4426950216293335, kLow = 1.92596299e-8;
  const Parts p = split(x);
  const Num tail = p.f * p.f * log_tail(p.f);
  const Num log_m = fma(p.f, kHigh, fma(tail, kHigh, p.f * kLow));
  return with_specials(x, p.e + log_m);
}

Num log10_f32(const Num& x) {
  constexpr double kHigh = 0.43429449200630188, kLow = -1.01032199e-8;  // 1/ln10
  constexpr double kLog10Of2High = 0.30102539,
                   kLog10Of2Low = 4.60503907e-06;  // e times the high part is exact
  const Parts p = split(x);
  const Num tail = p.f * p.f * log_tail(p.f);
  const Num log_m = fma(p.f, kHigh, fma(tail, kHigh, p.f * kLow));
  return with_specials(x, fma(p.e, kLog10Of2High, fma(p.e, kLog10Of2Low, log_m)));
}

// e is chosen from 1 + x; then f = x 2^-e + (2^-e - 1) in [-1/4, 1/2], where scaling x is exact. 2^-e is had
// from 2^(2-e), which is normal for every e.
Num log1p_f32(const Num& x) {
  static constexpr double kP[] = {-0.5,        0.333334625,  -0.250001937, 0.199903905,  -0.166426659,
                                  0.144753337, -0.132068291, 0.105848104,  -0.0459876284};
  const Num sum = x + 1;
  const Num exponent = (bits(sum) - 0x3f400000) >> 23;
  const Num shift = exponent << 23;
  const Num f = from_bits(bits(x) - shift) + fma(from_bits(0x40800000 - shift), 0.25, -1);
  const Num log_m = fma(f * f, horner(f, kP), f);
  const Num r = with_specials(sum, fma(cast(exponent, DType::Float32), kLn2, log_m));
  return select(abs(x) < 0x1p-26, x, r);
}

namespace {

struct WideParts {
  Num m, e;
};
/// m in [sqrt(1/2), sqrt(2)).
WideParts split_wide(const Num& x) {
  const Num sqrt_half(x.ops(), x.ops().constant(DType::Int64, int64_t{0x3fe6a09e667f3bcd}));
  const Num whole = bits(x);
  const Num exponent = (whole - sqrt_half) >> 52;
  return {from_bits(whole - (exponent << 52)), cast(exponent, DType::Float64)};
}

}  // namespace

// With s = (m-1)/(m+1), log2 m = s p(s^2).
Num log2_wide(const Num& x) {
  static constexpr double kP[] = {2.8853900817778495,  0.96179669411364954, 0.57707794231136744,
                                  0.41220925614179538, 0.31990558224472243, 0.28290141559656978};
  const WideParts p = split_wide(x);
  const Num s = (p.m - 1) / (p.m + 1);
  return fma(s, horner(s * s, kP), p.e);
}

// log m = 2s + s^3 p(s^2) = f - s (f - s^2 p(s^2)), f = m - 1 exact: 2^-59.
Num log_wide(const Num& x) {
  static constexpr double kP[] = {0.6666666666666734,  0.39999999999416652, 0.28571428742024635,
                                  0.22222198605476354, 0.18183562827840019, 0.15314085457440454,
                                  0.14795627164667752};
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const WideParts p = split_wide(x);
  const Num f = p.m - 1, s = f / (p.m + 1), square = s * s;
  const Num low = fma(p.e, -kLn2Low, s * fma(-square, horner(square, kP), f));
  const Num r = fma(p.e, kLn2High, f - low);
  const Num at_pole = select(x == 0, DType::Float64, -kInfinity, kNan);
  return select(x > 0, select(x < kInfinity, r, x), at_pole);
}

}  // namespace fl::loop::math
