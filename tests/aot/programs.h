// Runs a small program eagerly and compiled, and compares all that can be seen.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "flambeau/aot/compiled_function.h"

namespace fl::testing {

struct Program {
  std::string name;
  trace::Callable function;
  /// Fresh inputs, the same values at each call.
  std::function<Tensors()> inputs;
  aot::CompileOptions options{};
  /// Other inputs to run the compiled function on; none: those it was captured with.
  std::function<Tensors()> later_inputs{};
};

inline void PrintTo(const Program& p, std::ostream* out) { *out << p.name; }

/// Increasing values of a fraction around zero.
Tensor ramp(std::vector<int64_t> sizes, double start = -1, double step = 0.37, DType dtype = DType::Float32);
Tensor leaf(Tensor t);
/// A tensor that needs a gradient and is no leaf.
Tensor interior(const Tensor& leaf);
std::vector<double> elements(const Tensor& t);

/// Values, dtypes, strides, histories and shared memory of the outputs, values of the inputs afterwards, and
/// gradients of everything that needs one.
void expect_same_as_eager(const Program& p);
/// Whether eager mode runs the program and its backward without an error.
bool eager_succeeds(const Program& p);

}  // namespace fl::testing
