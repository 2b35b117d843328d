// Logarithms, powers and inverse hyperbolic functions of float64, for machines without a library of them.
// x = m 2^e with m in [sqrt(1/2), sqrt(2)), f = m - 1 exactly; with s = f / (m + 1), log m = 2s + s^3 p(s^2)
// = f - s (f - s^2 p(s^2)).
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // e * kLn2High is exact

struct Parts {
  Num m, e;
};
/// Of a positive x; denormals are scaled first.
Parts split(const Num& x) {
  const Num small = x < 0x1p-1022;
  const Num whole = bits(select(small, x * 0x1p54, x));
  const Num exponent = (whole - int64(x, 0x3fe6a09e667f3bcd)) >> 52;
  return {from_bits(whole - (exponent << 52)),
          cast(exponent, DType::Float64) + select(small, DType::Float64, -54, 0)};
}

/// f - log(1 + f) for |s| < 0.2, where d = 2 + f: 2^-62.
Num log_tail(const Num& f, const Num& d) {
  static constexpr double kP[] = {0.66666666666666596, 0.4000000000005674,  0.28571428555805672,
                                  0.22222224299486104, 0.18181665677881209, 0.15391118787098851,
                                  0.131734796889109,   0.13843873086662511};
  const Num s = f / d, square = s * s;
  return s * fma(-square, horner(square, kP), f);
}

/// r, made right where x is not a positive finite number; x is the argument shifted so that the pole is at 0.
Num with_specials(const Num& x, const Num& r) {
  const Num at_pole = select(x == 0, DType::Float64, -kInfinity, kNan);
  return select(x > 0, select(x < kInfinity, r, x), at_pole);
}

}  // namespace

Num log_f64(const Num& x) {
  const Parts p = split(x);
  const Num f = p.m - 1, low = fma(p.e, -kLn2Low, log_tail(f, p.m + 1));
  return with_specials(x, fma(p.e, kLn2High, f - low));
}

// (f - t) / ln2, with 1/ln2 in two parts for the leading term.
Num log2_f64(const Num& x) {
  constexpr double kHigh = 0x1.71547652b82fep+0, kLow = 0x1.777d0ffda0d24p-56;
  const Parts p = split(x);
  const Num f = p.m - 1, t = log_tail(f, p.m + 1);
  const Num log_m = fma(f, kHigh, fma(t, -kHigh, f * kLow));
  return with_specials(x, p.e + log_m);
}

Num log10_f64(const Num& x) {
  constexpr double kHigh = 0x1.bcb7b1526e50ep-2, kLow = 0x1.95355baaafad3p-57;  // 1/ln10
  constexpr double kLog10Of2High = 0x1.34413508p-2, kLog10Of2Low = 0x1.f79fef311f12bp-34;
  const Parts p = split(x);
  const Num f = p.m - 1, t = log_tail(f, p.m + 1);
  const Num log_m = fma(f, kHigh, fma(t, -kHigh, f * kLow));
  return with_specials(x, fma(p.e, kLog10Of2High, fma(p.e, kLog10Of2Low, log_m)));
}

// e is chosen from 1 + x; then f = x 2^-e + (2^-e - 1) in [-1/4, 1/2], where scaling x is exact. 2^-e is had
// from 2^(2-e), which is normal for every e.
Num log1p_f64(const Num& x) {
  const Num sum = x + 1;
  const Num exponent = (bits(sum) - int64(x, 0x3fe8000000000000)) >> 52;
  const Num shift = exponent << 52, e = cast(exponent, DType::Float64);
  const Num f = from_bits(bits(x) - shift) + fma(from_bits(int64(x, 0x4010000000000000) - shift), 0.25, -1);
  const Num low = fma(e, -kLn2Low, log_tail(f, f + 2));
  const Num r = with_specials(sum, fma(e, kLn2High, f - low));
  return select(abs(x) < 0x1p-54, x, r);
}

namespace {

/// A sum of two numbers, the second far below the first.
struct Pair {
  Num high, low;
};

/// a + b exactly, for |a| >= |b| or a = 0.
Pair fast_sum(const Num& a, const Num& b) {
  const Num sum = a + b;
  return {sum, b - (sum - a)};
}

// log2 of a positive, finite x, relative error 2^-65. log m = 2s + 2/3 s^3 + s^5 q(s^2): the first two terms
// as pairs; q: 2^-73 of the whole.
Pair log2_pair(const Num& x) {
  static constexpr double kQ[] = {0.3999999999999998,  0.28571428571443841, 0.22222222217789728,
                                  0.18181818844000547, 0.1538455842725687,  0.13336264587164659,
                                  0.11675778013062747, 0.11981783988218876};
  constexpr double kThirdsHigh = 0x1.5555555555555p-1, kThirdsLow = 0x1.5555555555555p-55;
  constexpr double kHigh = 0x1.71547652b82fep+0, kLow = 0x1.777d0ffda0d24p-56;
  const Parts p = split(x);
  const Num f = p.m - 1, d = p.m + 1, d_low = p.m - (d - 1);
  const Num s = f / d, s_low = fma(-s, d_low, fma(-s, d, f)) / d;
  const Num z = s * s, z_low = fma(s, s, -z) + (s + s) * s_low;
  const Num c = z * s, c_low = fma(z, s, -c) + fma(z, s_low, z_low * s);
  const Num u = c * kThirdsHigh, u_low = fma(c, kThirdsHigh, -u) + fma(c, kThirdsLow, c_low * kThirdsHigh);
  const Pair a = fast_sum(s + s, u);
  const Num rest = a.low + (u_low + (s_low + s_low + c * z * horner(z, kQ)));
  const Num b = a.high * kHigh, b_low = fma(a.high, kHigh, -b) + fma(a.high, kLow, rest * kHigh);
  const Pair sum = fast_sum(p.e, b);  // |b| <= 1/2
  return fast_sum(sum.high, sum.low + b_low);
}

}  // namespace

// 2^(y log2|x|), the product as a pair.
Num pow_f64(const Num& x, const Num& y) {
  const Num size = abs(x);
  const Pair log = log2_pair(size);
  const Num unusual = (size == 0) | (size == kInfinity) | is_nan(x);
  const Num high = select(unusual, select(size == 0, Num(-kInfinity), size), log.high);
  const Num t = y * high, t_low = fma(y, high, -t) + y * log.low;
  const Num power = exp2_f64(t, select(abs(t) < 1100, t_low, 0));

  const Num half = y * 0.5;
  const Num integer = trunc(y) == y;  // infinities and everything past 2^53 are even
  const Num odd = integer & (trunc(half) != half);
  const Num signed_power = select(odd, copysign(power, x), power);
  const Num undefined = (x < 0) & (x > -kInfinity) & (trunc(y) != y) & (y == y);
  const Num one = (y == 0) | (x == 1) | ((x == -1) & (abs(y) == kInfinity));
  return select(one, 1, select(undefined, kNan, signed_power));
}

// The squares neither overflow nor lose digits.
Num hypot_f64(const Num& x, const Num& y) {
  const Num a = abs(x), b = abs(y);
  const Num large = (a > 0x1p500) | (b > 0x1p500), small = (a < 0x1p-450) & (b < 0x1p-450);
  const Num scale = select(large, Num(0x1p-600), select(small, DType::Float64, 0x1p600, 1));
  const Num back = select(large, Num(0x1p600), select(small, DType::Float64, 0x1p-600, 1));
  const Num high = select(a < b, b, a) * scale, low = select(a < b, a, b) * scale;
  const Num r = sqrt(fma(high, high, low * low)) * back;
  return select((a == kInfinity) | (b == kInfinity), kInfinity, r);
}

// log1p of a + a^2 / (1 + sqrt(1 + a^2)) = a + sqrt(a^2 + 1) - 1; log(2a) past 2^54.
Num asinh_f64(const Num& x) {
  const Num a = abs(x), large = a > 0x1p54;
  const Num square = a * a;
  const Num t = select(large, a, a + square / (sqrt(square + 1) + 1));
  const Num r = log1p_f64(t) + select(large, DType::Float64, 0.693147180559945309, 0);
  return select(a < 0x1p-28, x, copysign(r, x));
}

// With t = x - 1, log1p(t + sqrt(t (t + 2))).
Num acosh_f64(const Num& x) {
  const Num large = x > 0x1p54, t = x - 1;
  const Num sum = select(large, x, t + sqrt(t * (t + 2)));
  const Num r = log1p_f64(sum) + select(large, DType::Float64, 0.693147180559945309, 0);
  return select(x < 1, kNan, r);
}

// Half of log1p(2a / (1 - a)).
Num atanh_f64(const Num& x) {
  const Num a = abs(x);
  const Num r = log1p_f64((a + a) / (1 - a)) * 0.5;
  return select(a < 0x1p-28, x, copysign(r, x));
}

}  // namespace fl::loop::math
