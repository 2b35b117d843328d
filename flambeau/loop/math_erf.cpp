// Error functions.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {

// erf(a) = 1 - 2^g, g = log2(erfc(a)) = a p(a) on [0, 3.92], past which erf rounds to 1; p: 2^-24.6. g = n +
// r, and 2^r - 1 = r q(r): 2^-26.2.
Num erf_f32(const Num& x) {
  static constexpr double kP[] = {-1.62790704,     -0.918444693,   -0.1483192,     0.0278397575,
                                  -0.000242089707, -0.00184744038, 0.000564789341, -6.08239388e-05};
  static constexpr double kQ[] = {0.693147182,   0.240225941,   0.0555036627,
                                  0.00962542929, 0.00133878447, 0.000133355381};
  constexpr double kBiasedRounder = 12582912.0 + 127;
  const Num a = at_most(abs(x), 3.92);
  const Num g = a * horner(a, kP);
  const Num shifted = g + kBiasedRounder;
  const Num r = g - (shifted - kBiasedRounder);
  const Num power = from_bits(bits(shifted) << 23);
  return copysign(fma(r * horner(r, kQ), -power, 1 - power), x);
}

// erfc(a) = e^(-a^2) u p(q), u = 1/(a + 2), q = 1 - 4u, a = |x|; p: 2^-25. What rounding a^2 loses is put
// back to first order. erfc(-a) = 2 - erfc(a).
Num erfc_f32(const Num& x) {
  static constexpr double kP[] = {1.02158272,      -0.687160969,  0.27947095,    -0.0364351459,
                                  -0.021496933,    0.00643343152, 0.00302252546, -0.000731888111,
                                  -0.000506333308, -3.2440199e-05};
  const Num a = at_most(abs(x), 10.1);
  const Num sum = a + 2, u = 1 / sum;
  const Num error = fma(-u, a - (sum - 2), fma(-u, sum, 1));  // 1/(a + 2) = u (1 + error)
  const Num q = fma(u * -4, error, fma(u, -4, 1));
  const Num square = a * a;
  const Num lost = fma(-a, a, square) + error;
  const Num tail = scaled_exp_f32(-square, lost, u * horner(q, kP));
  return select(x < 0, 2 - tail, tail);
}

}  // namespace fl::loop::math
