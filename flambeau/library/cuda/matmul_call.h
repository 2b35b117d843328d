// A matrix product in cuBLASLt's words: column-major matrices with leading dimensions.
#pragma once
#include <optional>

#include "flambeau/library/matmul.h"

namespace fl::library::cuda {

/// What happens to the sum on its way to memory, and what is kept for the gradient.
enum class MatmulEpilogue : uint8_t {
  None,
  Relu,
  ReluAndMask,   ///< keeps which elements were not negative, 0 among them: a bit each
  ReluGradient,  ///< of ReluAndMask: 0 where the mask is
  Gelu,          ///< by tanh, as gelu(approximate="tanh")
  GeluAndInput,  ///< keeps what gelu got
  GeluGradient,  ///< times gelu's derivative at what GeluAndInput kept
};

bool keeps_or_reads_aux(MatmulEpilogue epilogue);

/// One operand: `rows` x `columns` in column order, a batch of them `batch_stride` elements apart.
struct ColumnMajor {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;   ///< the product takes its transpose
  int64_t outer_stride = 0;  ///< between the library's calls
  bool operator==(const ColumnMajor&) const = default;
};

/// result = epilogue(left @ right + bias + beta * what is added), by `outer` calls of the library for `batch`
/// products each. The rows of the result are c's columns: left is b and right is a, the other way around
/// where `swapped`.
struct MatmulCall {
  ScalarKind dtype = ScalarKind::F32;
  bool swapped = false;
  int64_t outer = 1, batch = 1, inner = 0;
  ColumnMajor left, right, result;
  bool bias_vector = false;          ///< one element for each row of the result
  std::optional<ColumnMajor> added;  ///< a bias with c's shape; c itself where beta is not 0
  float beta = 0;
  int64_t aux_leading = 0, aux_batch_stride = 0;  ///< in elements; bits of a mask
  int64_t aux_bytes = 0;
};

/// None where no call of the library does it: other strides than a matrix's, a bias that is neither a vector
/// along the result's rows nor a matrix, a bias and beta. All sizes are at least 1.
std::optional<MatmulCall> matmul_call(const MatmulDesc& desc, MatmulEpilogue epilogue);

}  // namespace fl::library::cuda
