// Elementary functions of complex numbers as operations on their parts: principal branches and signs of zero
// as in C's complex.h. The harder ones of complex64 are computed in float64.
#pragma once
#include "flambeau/op/scalar_ops.h"

namespace fl::complex_functions {

Val exp(ScalarOps& s, Val z);
Val exp2(ScalarOps& s, Val z);
Val expm1(ScalarOps& s, Val z);
Val log(ScalarOps& s, Val z);
Val log2(ScalarOps& s, Val z);
Val log10(ScalarOps& s, Val z);
Val log1p(ScalarOps& s, Val z);
Val sqrt(ScalarOps& s, Val z);
Val rsqrt(ScalarOps& s, Val z);
Val sin(ScalarOps& s, Val z);
Val cos(ScalarOps& s, Val z);
Val tan(ScalarOps& s, Val z);
Val sinh(ScalarOps& s, Val z);
Val cosh(ScalarOps& s, Val z);
Val tanh(ScalarOps& s, Val z);
Val asin(ScalarOps& s, Val z);
Val acos(ScalarOps& s, Val z);
Val atan(ScalarOps& s, Val z);
Val asinh(ScalarOps& s, Val z);
Val acosh(ScalarOps& s, Val z);
Val atanh(ScalarOps& s, Val z);
Val sigmoid(ScalarOps& s, Val z);
/// exp(b log a); a = 0 gives 0 where b's real part is positive, and 1 where b is 0.
Val pow(ScalarOps& s, Val a, Val b);

}  // namespace fl::complex_functions
