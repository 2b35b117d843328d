// The special functions behind expand(), one file of formulas a family. The figures are the largest errors
// measured, over random bit patterns and sweeps through every second or third float of the ranges that
// matter; tests/math asserts bounds just above them.
#pragma once
#include "flambeau/loop/math_value.h"

namespace fl::loop::math {

// math_exp.cpp
Num exp_f32(const Num& x);    // 0.89 ulp
Num exp2_f32(const Num& x);   // 0.89 ulp
Num expm1_f32(const Num& x);  // 1.44 ulp
Num tanh_f32(const Num& x);   // 2.5 ulp
Num decay_f32(const Num& x);  // exp(-|x|); 0 below exp(-87), 1 ulp above
/// exp(x + low) * factor for a low far below x, without a second rounding where the product is denormal; x in
/// [-150, 0], factor in (0, 4].
Num scaled_exp_f32(const Num& x, const Num& low, const Num& factor);
/// 2^t in float64, relative error 2^-34, for t in [-1000, 1000]; nan for nan.
Num exp2_wide(const Num& t);

// math_log.cpp
Num log_f32(const Num& x);    // 0.94 ulp
Num log2_f32(const Num& x);   // 1.47 ulp
Num log10_f32(const Num& x);  // 1.46 ulp
Num log1p_f32(const Num& x);  // 1.27 ulp
/// Natural logarithm of float64 (its series: 2^-59); denormals excepted.
Num log_wide(const Num& x);
/// log2 of a positive, finite, normal float64, relative error 2^-45.
Num log2_wide(const Num& x);

// math_erf.cpp
Num erf_f32(const Num& x);   // 3.4 ulp
Num erfc_f32(const Num& x);  // 3.76 ulp

// math_erfinv.cpp
Num erfinv_f32(const Num& x);  // 2.4 ulp
Num erfinv_f64(const Num& x);  // relative 5e-16

// math_trig.cpp
Num sin_f32(const Num& x);  // 1.5 ulp
Num cos_f32(const Num& x);  // 1.5 ulp
Num tan_f32(const Num& x);  // 3.15 ulp

// math_inverse_trig.cpp
Num asin_f32(const Num& x);                 // 2.35 ulp
Num acos_f32(const Num& x);                 // 1.25 ulp
Num atan_f32(const Num& x);                 // 1.97 ulp
Num atan2_f32(const Num& y, const Num& x);  // 1.9 ulp

// math_hyperbolic.cpp
Num sinh_f32(const Num& x);   // 1.88 ulp
Num cosh_f32(const Num& x);   // 1.73 ulp
Num asinh_f32(const Num& x);  // 0.5 ulp
Num acosh_f32(const Num& x);  // 0.5 ulp
Num atanh_f32(const Num& x);  // 0.5 ulp

// math_gamma.cpp
Num lgamma_f32(const Num& x);   // 0.5 ulp
Num digamma_f32(const Num& x);  // 0.5 ulp
Num digamma_f64(const Num& x);  // relative 2e-15; near its zeros absolute

// math_pow.cpp
Num pow_f32(const Num& x, const Num& y);    // 0.51 ulp
Num hypot_f32(const Num& x, const Num& y);  // 0.5 ulp

// math_remainder.cpp
Num rem_f32(const Num& x, const Num& y);        // exact
Num nextafter_f32(const Num& x, const Num& y);  // exact

}  // namespace fl::loop::math
