// How reductions, scans and scatters combine values.
#pragma once
#include <cstdint>

namespace fl {

/// How the values of a reduction or scan combine. Operands and results are of one dtype unless stated.
enum class ReduceOp : uint8_t {
  Sum,
  Prod,
  Min,  ///< nan if any is
  Max,
  Any,     ///< bool
  All,     ///< bool
  ArgMin,  ///< results: the minimum, its int64 position (operand 1); the smallest position of equals; nan
           ///< wins
  ArgMax,
  Welford,        ///< operand x; results: mean, sum of squared deviations, count (all in x's dtype)
  OnlineSoftmax,  ///< operand x; results: max, sum of exp(x - max); all -inf gives -inf and nan; a nan gives
                  ///< nan
};
enum class StoreMode : uint8_t { Set, Add, Mul, Min, Max };

}  // namespace fl
