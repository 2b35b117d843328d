// A matrix product's call in the library's terms.
#pragma once
#include "flambeau/library/matmul.h"

#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

/// Raises RuntimeError unless a and b are two matrices, or batches of them, that fit, and c their product, of
/// one dtype.
void check_product(const CallArguments& call, const OperandLayout& a, const OperandLayout& b,
                   const OperandLayout& c);

/// Sizes and strides, without the dtype.
library::MatmulDesc describe_product(const OperandLayout& a, const OperandLayout& b, const OperandLayout& c);

library::MatrixStrides matrix_strides(const OperandLayout& matrix);
/// One stride is 1, and rows (or columns) do not overlap.
bool is_plain_matrix(const OperandLayout& matrix);

}  // namespace fl::runtime
