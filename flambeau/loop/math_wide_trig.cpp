// Trigonometric functions of float64 and their inverses, for machines without a library of them. The argument
// is reduced as Payne and Hanek do: |x| is an integer m times a power of two, and of the bits of 2/pi those
// count that come after the ones which only add multiples of 4 to the quotient. Seven words of them times m,
// in integer arithmetic, hold the quotient modulo 4 and 190 bits behind its point: none of float64 comes
// closer than 2^-62 to a multiple of pi/2.
#include <array>
#include <vector>

#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kQuarterPi = kHalfPi / 2, kQuarterPiLow = kHalfPiLow / 2;
constexpr double kPi = 2 * kHalfPi, kPiLow = 2 * kHalfPiLow;
constexpr size_t kWords = 7;
constexpr double kMask = 0xffffffff;

/// The bits of 2/pi behind three words of zeros, the first the highest.
constexpr std::array<uint32_t, 40> kTwoOverPi = {
    0,          0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
    0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c,
    0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
    0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66,
    0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};

/// Words first, first + 1, ... of 2/pi, the lowest first: chosen by one bit of `first` after the other.
std::vector<Num> words_from(const Num& first) {
  std::vector<Num> words;
  for (uint32_t w : kTwoOverPi) words.push_back(int64(first, w));
  for (size_t step = 32; step > 0; step /= 2) {
    const Num is_set = (first & static_cast<double>(step)) != 0;
    std::vector<Num> next;
    for (size_t k = 0; k < kWords + step - 1 && k < words.size(); ++k)
      next.push_back(k + step < words.size() ? select(is_set, words[k + step], words[k]) : words[k]);
    words = std::move(next);
  }
  return {words.rbegin(), words.rend()};
}

/// The low words of m * words, each below 2^32, the lowest first; m is of 53 bits.
std::vector<Num> product(const Num& m, const std::vector<Num>& words) {
  const Num low = m & kMask, high = m >> 32;
  std::vector<Num> out;
  const auto add = [&](size_t at, const Num& n) {
    if (at < words.size()) out[at] = out[at] + n;
  };
  for (size_t k = 0; k < words.size(); ++k) out.push_back(int64(m, 0));
  for (size_t k = 0; k < words.size(); ++k)
    for (const auto& [part, at] : {std::pair(low, k), std::pair(high, k + 1)}) {
      if (at >= words.size()) continue;
      const Num p = part * words[k];
      add(at, p & kMask);
      if (at + 1 < words.size()) add(at + 1, (p >> 32) & kMask);
    }
  for (size_t k = 0; k + 1 < out.size(); ++k) {
    out[k + 1] = out[k + 1] + (out[k] >> 32);
    out[k] = out[k] & kMask;
  }
  out.back() = out.back() & kMask;
  return out;
}

/// sum + n, for |n| no more than the last place of sum.
void add_small(Num& sum, Num& low, const Num& n) {
  const Num total = sum + n;
  low = low + (n - (total - sum));
  sum = total;
}

struct Angle {
  Num quadrant;  ///< int64, modulo 4 in its low bits
  Num r, low;    ///< r + low in [-pi/4, pi/4]
};
/// Of a finite size >= 0.
Angle reduce(const Num& size) {
  const Num whole = bits(size), exponent = whole >> 52;
  const Num m = (whole & int64(size, 0xfffffffffffff)) | int64(size, 0x10000000000000);
  // size = m 2^(position - 98); words before the first one that is taken add multiples of 4.
  const Num position = exponent - (1075 - 96 + 2);
  const std::vector<Num> p = product(m, words_from(position >> 5));
  const Num shift = position & 31;
  const auto shifted = [&](size_t k) {
    const Num up = binary(ScalarOp::Shl, p[k], shift) & kMask;
    return up | binary(ScalarOp::Shr, p[k - 1], 32 - shift);
  };
  // Two bits of the quotient, and the rest as what is left of the nearest integer.
  const Num top = shifted(kWords - 1);
  const Num quotient = (top + static_cast<double>(1 << 29)) >> 30;
  const auto number = [](const Num& n, double unit) { return cast(n, DType::Float64) * unit; };
  Num turns = number(top - (quotient << 30), 0x1p-30),
      low(size.ops(), size.ops().constant(DType::Float64, 0));
  double unit = 0x1p-62;
  for (size_t k = kWords - 2; k >= 2; --k, unit *= 0x1p-32) add_small(turns, low, number(shifted(k), unit));
  const Num r = turns * kHalfPi;
  const Num r_low = fma(turns, kHalfPi, -r) + fma(turns, kHalfPiLow, low * kHalfPi);
  const Num near = size < 0.78;
  return {select(near, int64(size, 0), quotient), select(near, size, r), select(near, 0, r_low)};
}

/// sin(r + low) for |r| <= pi/4: 2^-63.
Num sin_polynomial(const Num& r, const Num& low, const Num& square) {
  static constexpr double kP[] = {-0.16666666666666666,   0.0083333333333330418,   -0.0001984126984096247,
                                  2.7557319073981393e-06, -2.5052070921946941e-08, 1.6054311390713457e-10,
                                  -7.3894524992558947e-13};
  return r + fma(square * r, horner(square, kP), low * fma(square, -0.5, 1));
}
/// cos(r + low) for |r| <= pi/4: 2^-63.
Num cos_polynomial(const Num& r, const Num& low, const Num& square) {
  static constexpr double kP[] = {0.041666666666666595,    -0.0013888888888873338, 2.4801587288997665e-05,
                                  -2.7557314215432478e-07, 2.0875705145584989e-09, -1.1358735018728028e-11};
  const Num half = square * 0.5, first = 1 - half;
  const Num lost = (1 - first) - half;
  return first + fma(square * square, horner(square, kP), lost - r * low);
}

/// sin of the angle, as if it lay `quarters` further.
Num sin_of(const Angle& a, int quarters) {
  const Num square = a.r * a.r, quadrant = a.quadrant + quarters;
  const Num value =
      select((quadrant & 1) != 0, cos_polynomial(a.r, a.low, square), sin_polynomial(a.r, a.low, square));
  return from_bits(bits(value) ^ ((quadrant & 2) << 62));
}

Num finite(const Num& x, const Num& r) { return select(abs(x) < kInfinity, r, kNan); }

/// The sign of x, as bits.
Num sign_bits(const Num& x) { return (bits(x) >> 63) << 63; }

}  // namespace

Num sin_f64(const Num& x) {
  const Num r = sin_of(reduce(abs(x)), 0);
  return finite(x, select(abs(x) < 0x1p-27, x, from_bits(bits(r) ^ sign_bits(x))));
}

Num cos_f64(const Num& x) { return finite(x, sin_of(reduce(abs(x)), 1)); }

Num tan_f64(const Num& x) {
  const Angle a = reduce(abs(x));
  const Num square = a.r * a.r;
  const Num sine = sin_polynomial(a.r, a.low, square), cosine = cos_polynomial(a.r, a.low, square);
  const Num is_odd = (a.quadrant & 1) != 0;
  const Num ratio = select(is_odd, cosine, sine) / select(is_odd, sine, cosine);
  const Num r = from_bits(bits(ratio) ^ (a.quadrant << 63) ^ sign_bits(x));
  return finite(x, select(abs(x) < 0x1p-27, x, r));
}

namespace {

struct ArcSine {
  Num big, value, low;
};
/// asin(|x|) for |x| <= 1/2; else half of acos(|x|) = asin(sqrt((1 - |x|)/2)): value + low. The polynomial:
/// 2^-59.
ArcSine arc_sine(const Num& size) {
  static constexpr double kP[] = {0.1666666666666676,    0.074999999999708106, 0.044642857174642336,
                                  0.030381942705086332,  0.022372215088099768, 0.017351609873398153,
                                  0.013980849492861528,  0.011398652289451588, 0.010781824983606901,
                                  0.0037000725867208629, 0.021723763219806708, -0.021023353028584619,
                                  0.032644530010596487};
  const Num big = size > 0.5;
  const Num z = select(big, fma(size, -0.5, 0.5), size * size);
  const Num s = select(big, sqrt(z), size);
  const Num lost = select(big & (z > 0), fma(-s, s, z) / (s + s), 0);  // by the square root
  return {big, s, fma(s * z, horner(z, kP), lost)};
}

struct ArcTangent {
  Num middle, value;  ///< atan t = value, or pi/4 + value
};
/// For t in [0, 1]; the polynomial: 2^-63.
ArcTangent arc_tangent(const Num& t) {
  static constexpr double kP[] = {-0.33333333333333326,  0.19999999999997098,   -0.14285714285317072,
                                  0.11111111083804882,   -0.09090907988505062,  0.076922792698382175,
                                  -0.066661757998003002, 0.058765281241472289,  -0.052152594720648766,
                                  0.044908902292944738,  -0.033182613894450312, 0.014901557450930771};
  const Num middle = t > 0.41421356237309503;
  const Num u = select(middle, (t - 1) / (t + 1), t), z = u * u;
  return {middle, fma(u * z, horner(z, kP), u)};
}

/// start + value, where start is a multiple of pi/4 in two parts.
struct Start {
  Num high, low;
};
Start choose(const Num& condition, const Start& a, const Start& b) {
  return {select(condition, a.high, b.high), select(condition, a.low, b.low)};
}

}  // namespace

Num asin_f64(const Num& x) {
  const ArcSine a = arc_sine(abs(x));
  const Num large = fma(a.value, -2, kHalfPi) - fma(a.low, 2, -kHalfPiLow);
  return copysign(select(a.big, large, a.value + a.low), x);
}

Num acos_f64(const Num& x) {
  const ArcSine a = arc_sine(abs(x));
  const Num sum = a.value + a.low, twice = sum + sum;
  const Num middle = kHalfPi - (copysign(sum, x) - kHalfPiLow);
  return select(a.big, select(x < 0, kPi - (twice - kPiLow), twice), middle);
}

Num atan_f64(const Num& x) {
  const Num size = abs(x), big = size > 1;
  const ArcTangent a = arc_tangent(select(big, 1 / size, size));
  const Num zero(x.ops(), x.ops().constant(DType::Float64, 0));
  const Start quarter{zero + kQuarterPi, zero + kQuarterPiLow}, half{zero + kHalfPi, zero + kHalfPiLow};
  const Start start = choose(a.middle, quarter, choose(big, half, {zero, zero}));
  return copysign(start.high + (select(big, -a.value, a.value) + start.low), x);
}

Num atan2_f64(const Num& y, const Num& x) {
  const Num a = abs(y), b = abs(x), steep = a > b;
  const Num low = select(steep, b, a), high = select(steep, a, b);
  // The quotients 0/0 and inf/inf mean 0 and 1 here.
  const Num t = select(low == high, select(high == 0, DType::Float64, 0, 1), low / high);
  const ArcTangent p = arc_tangent(t);
  const Num zero(x.ops(), x.ops().constant(DType::Float64, 0));
  const auto times_quarter = [&](double n) { return Start{zero + n * kQuarterPi, zero + n * kQuarterPiLow}; };
  const Num back = bits(x) < 0;
  // Of pi/4: 0, 1, 1, 2, and in the left half plane 4, 3, 3, 2 of them.
  const Start three{zero + 0x1.2d97c7f3321d2p+1, zero + 0x1.a79394c9e8a0ap-54};
  const Start front = choose(p.middle, times_quarter(1), choose(steep, times_quarter(2), {zero, zero}));
  const Start behind = choose(p.middle, three, choose(steep, times_quarter(2), times_quarter(4)));
  const Start start = choose(back, behind, front);
  const Num value = select(steep ^ back, -p.value, p.value);
  return copysign(start.high + (value + start.low), y);
}

}  // namespace fl::loop::math
