// The meaning of scalar operations as a function on values: of all that expand_operation() does not take
// apart.
#pragma once
#include "flambeau/loop/scalar_bits.h"

namespace fl::loop {

/// op on operands of dtype `operand` (Select: of b and c) with a result of dtype `result`. Float to integer:
/// to int64 directly, to smaller ones by way of int32; what does not fit (or is nan) gives the least value of
/// that intermediate, whose low bits are kept. Conversions to half types go by way of float32.
ScalarBits evaluate(ScalarOp op, DType result, DType operand, const ScalarBits& a, const ScalarBits& b = {},
                    const ScalarBits& c = {});

/// The dtype of op's result; `requested` counts for Cast and Bitcast.
DType result_dtype(ScalarOp op, DType requested, DType a, DType b);

}  // namespace fl::loop
