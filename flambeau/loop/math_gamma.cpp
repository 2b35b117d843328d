// Logarithm of the gamma function and its derivative, in float64: their zeros need the precision.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

constexpr double kPi = 3.14159265358979324;

/// sin(pi r) for |r| <= 1/2: 2^-54.
Num sin_pi(const Num& square, const Num& r) {
  static constexpr double kP[] = {3.1415926535897931,     -5.1677127800499107,     2.5501640398725516,
                                  -0.59926452917172934,   0.082145884318868531,    -0.007370411680762465,
                                  0.00046621243896200496, -2.1691771183819358e-05, 5.6093037095171579e-07};
  return r * horner(square, kP);
}
/// cos(pi r) for |r| <= 1/2: 2^-55.
Num cos_pi(const Num& square) {
  static constexpr double kP[] = {4,
                                  -3.7392088021786933,
                                  1.2780132969498121,
                                  -0.22899788752824707,
                                  0.025330969683051908,
                                  -0.0019036701740728498,
                                  0.00010351650022370481,
                                  -4.1332081352030491e-06};
  return (0.25 - square) * horner(square, kP);
}

/// (w - 1/2) log w - w + log(2 pi)/2 + a series in 1/w, for w >= 5: absolute error of the series 2^-59.
Num stirling(const Num& w) {
  static constexpr double kP[] = {0.083333333333333232,    -0.0027777777776530738, 0.00079365074896258294,
                                  -0.00059523086172497304, 0.00084112281228008177, -0.0018859151121332952,
                                  0.0054618554563294307,   -0.012651310563214658};
  constexpr double kHalfLogTwoPi = 0.918938533204672742;
  const Num v = 1 / w;
  return fma(w - 0.5, log_wide(w), -w) + fma(v, horner(v * v, kP), kHalfLogTwoPi);
}

/// digamma of z > 0. Below 8, digamma(z) = digamma(z + 8) - q'(z)/q(z), q(z) = z (z+1) ... (z+7).
Num digamma_positive(const Num& z) {
  // digamma(w) - log w + 1/(2w) = p(1/w^2)/w^2: absolute error 2^-58.
  static constexpr double kP[] = {-0.083333333333325835, 0.0083333333238972927,  -0.0039682500056156872,
                                  0.0041658978092453591, -0.0074995236363564711, 0.017270510594390158};
  static constexpr double kQ[] = {5040, 13068, 13132, 6769, 1960, 322, 28, 1};
  static constexpr double kDerivative[] = {5040, 26136, 39396, 27076, 9800, 1932, 196, 8};
  const Num small = z < 8, bounded = at_most(z, 8);
  const Num shift = horner(bounded, kDerivative) / (bounded * horner(bounded, kQ));
  const Num w = select(small, z + 8, z), v = 1 / w, square = v * v;
  const Num large = fma(square, horner(square, kP), fma(v, -0.5, log_wide(w)));
  return large - select(small, shift, 0);
}

/// x in float64.
Num digamma(const Num& x) {
  const Num z = abs(x), positive = digamma_positive(z);
  const Num r = z - round(z), square = r * r;
  const Num tangent = sin_pi(square, r) / cos_pi(square);
  // digamma(-z) = digamma(z) + 1/z + pi / tan(pi z)
  const Num reflected = positive + (1 / z + kPi / tangent);
  const Num negative = select((r == 0) | is_nan(r), kNan, reflected);
  const Num at_zero = copysign(kInfinity, -x);
  return select(x == 0, at_zero, select(x < 0, negative, positive));
}

}  // namespace

// With w = z + 5 and p = (z+1)(z+2)(z+3)(z+4) where z = |x| < 5, and w = z elsewhere:
// lgamma(z) = Stirling(w) - log(z p), and lgamma(-z) = -(Stirling(w) - log(pi p / |sin(pi z)|)).
Num lgamma_f32(const Num& x) {
  const Num z = cast(abs(x), DType::Float64), small = z < 5, negative = x < 0;
  const Num product = ((z + 1) * (z + 2)) * ((z + 3) * (z + 4));
  const Num r = z - round(z);
  const Num sine = abs(sin_pi(r * r, r));
  const Num upper = select(small, product, select(negative, 1 / z, 1));
  const Num factor = select(negative, kPi / sine, select(small, z, 1));
  const Num value = stirling(select(small, z + 5, z)) - log_wide(upper * factor);
  const Num result = cast(select(negative, -value, value), DType::Float32);
  return select((x == 1) | (x == 2), 0, select(abs(x) == kInfinity, kInfinity, result));
}

Num digamma_f32(const Num& x) { return cast(digamma(cast(x, DType::Float64)), DType::Float32); }

Num digamma_f64(const Num& x) { return digamma(x); }

}  // namespace fl::loop::math
