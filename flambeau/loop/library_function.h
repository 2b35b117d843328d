// Functions that are called, one lane at a time, instead of being emitted as instructions: libm's in float64
// and integer powers.
#pragma once
#include <string>

#include "flambeau/op/scalar_ops.h"

namespace fl::loop {

/// out[k] = op(a[k], b[k]) for k < n; b is not read for unary operations.
using LibraryFunction = void (*)(const void* a, const void* b, void* out, int64_t n);

/// The function of op on dtype, or null where there is none.
LibraryFunction library_function(ScalarOp op, DType dtype);
/// Its name in object files: "fl_exp_f64".
std::string library_function_name(ScalarOp op, DType dtype);
/// The function with this name, or null.
LibraryFunction find_library_function(std::string_view name);

}  // namespace fl::loop
