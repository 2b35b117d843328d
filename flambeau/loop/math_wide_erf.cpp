// Error functions of float64, for machines without a library of them.
#include "flambeau/loop/math_functions.h"

namespace fl::loop::math {
namespace {

/// erf(a) for a < 1, as a + a p(a^2): 2^-56.
Num erf_near_zero(const Num& a) {
  static constexpr double kP[] = {0.12837916709551259,     -0.37612638903184092,    0.11283791670970846,
                                  -0.026866170647992706,   0.0052239776524223023,   -0.00085483285264092209,
                                  0.00012055386072554018,  -1.4926883739443401e-05, 1.6481175490303932e-06,
                                  -1.6559181582181329e-07, 1.6032286348675606e-08,  -1.6557842161335682e-09,
                                  1.4532464687253177e-10};
  return fma(a, horner(a * a, kP), a);
}

/// erfc(a) = e^(-a^2) u p(q) for a >= 1/2, u = 1/(a + 2), q = 1 - 4u: 2^-53. What rounding a^2 loses is put
/// back to first order.
Num erfc_tail(const Num& size) {
  static constexpr double kP[] = {
      1.021582705242023,       -0.68716068441380895,    0.27947209255604594,     -0.036442231507123349,
      -0.02151066188866101,    0.0064791850780059005,   0.0030906120294707379,   -0.00083729625408268389,
      -0.00066307297098909318, 3.4373312053635845e-05,  0.00014446530826149866,  3.4138700945225823e-05,
      -2.1662875945349824e-05, -1.6091367135696009e-05, -1.2511045975177788e-06, 3.6114048988341399e-06,
      2.2877075567000359e-06,  -4.1906578593663671e-08, -9.4057510828888182e-07, -1.6992908838261808e-07,
      2.3093672555763862e-07,  -1.3921679999430042e-08};
  const Num a = at_most(size, 27.3);
  const Num sum = a + 2, u = 1 / sum;
  const Num error = fma(-u, a - (sum - 2), fma(-u, sum, 1));  // 1/(a + 2) = u (1 + error)
  const Num q = fma(u * -4, error, fma(u, -4, 1));
  const Num square = a * a;
  const Num lost = fma(-a, a, square) + error;
  return scaled_exp_f64(-square, lost, u * horner(q, kP));
}

}  // namespace

Num erf_f64(const Num& x) {
  const Num a = abs(x);
  return copysign(select(a < 1, erf_near_zero(a), 1 - erfc_tail(a)), x);
}

Num erfc_f64(const Num& x) {
  const Num a = abs(x), tail = erfc_tail(a);
  return select(a < 0.65, 1 - copysign(erf_near_zero(a), x), select(x < 0, 2 - tail, tail));
}

}  // namespace fl::loop::math
