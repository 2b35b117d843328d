// The special functions behind expand(), one file of formulas a family.
#pragma once
#include "flambeau/loop/math_value.h"

namespace fl::loop::math {

// math_exp.cpp
Num exp_f32(const Num& x);
Num exp2_f32(const Num& x);
Num expm1_f32(const Num& x);
Num tanh_f32(const Num& x);
/// exp(x) * factor, the product rounded once even where it is denormal; x in [-200, 88], factor in [1/4, 4].
Num scaled_exp_f32(const Num& x, const Num& factor);
/// 2^t in float64, relative error 2^-34, for t in [-1000, 1000]; nan for nan.
Num exp2_wide(const Num& t);

// math_log.cpp
Num log_f32(const Num& x);
Num log2_f32(const Num& x);
Num log10_f32(const Num& x);
Num log1p_f32(const Num& x);
/// log2 of a positive, finite, normal float64, relative error 2^-45.
Num log2_wide(const Num& x);

// math_erf.cpp
Num erf_f32(const Num& x);
Num erfc_f32(const Num& x);

// math_trig.cpp
Num sin_f32(const Num& x);
Num cos_f32(const Num& x);

// math_pow.cpp
Num pow_f32(const Num& x, const Num& y);

}  // namespace fl::loop::math
