// What can be seen of one run of a program, and how a compiled run differs from the eager one.
#pragma once
#include <string>
#include <vector>

#include "flambeau/compile/compile.h"
#include "random_program.h"

namespace fl::testing {

struct Run {
  std::string error;  ///< type of what it raised
  std::string message;
  std::vector<std::string> facts;  ///< dtypes, sizes, strides, histories, shared memory
  std::vector<std::vector<double>> values;
  std::vector<bool> exact;
  std::vector<double> tolerance;  ///< relative, by value
  std::vector<double> rounding;   ///< absolute, by value: what another order of rounding may change
  std::vector<std::string> names;
};

/// Runs a function on a program's inputs, and the gradients of a linear function of its outputs.
Run observe(const RandomProgram& p, const Callable& f, int64_t n);

/// Sets `rounding` of a program's eager run by what its runs in float64 give, on these inputs and on others:
/// sums in which large numbers cancel have lost most of their digits.
void measure_rounding(Run& eager, RandomProgram p, int64_t n);

/// The first difference, or nothing. `bits`: set where values are close but not equal to the bit.
std::string difference(const Run& eager, const Run& compiled, bool* bits = nullptr);

/// Makes the backend "unfused": machine code, one kernel for each operator.
void register_unfused_backend();

}  // namespace fl::testing
