// Special functions written over the core scalar operations (tests/math). Each is branch-free, and each step
// is defined to the bit, so that interpreter and machine code agree; the definitions are in math_*.cpp with
// the largest error measured there. Tables come from tools/fit_polynomials.py.
#pragma once
#include "flambeau/op/scalar_ops.h"

namespace fl::loop {

/// True where op on dtype is to be replaced by expand() before interpretation and code generation: every
/// transcendental of float32, and of float64 those that libm lacks.
bool needs_expansion(ScalarOp op, DType dtype);

/// The value of op on a (and b) in core operations of s; float32 functions are within 4 ulp of the exact
/// result, denormals included, and follow C99 annex F on special values. Raises InternalError where
/// needs_expansion is false.
Val expand(ScalarOps& s, ScalarOp op, Val a, Val b = {});

/// exp(-|x|) for sums of which the largest term is 1: in float32 what is less than exp(-87) is 0.
Val decay(ScalarOps& s, Val x);

}  // namespace fl::loop
