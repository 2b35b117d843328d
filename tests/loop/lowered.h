// Graphs of functions as programs of loops.
#pragma once
#include "flambeau/graph/graph.h"
#include "flambeau/loop/program.h"
#include "flambeau/trace/trace.h"

namespace fl::loop::testing {

/// The function traced on contiguous float32 inputs of these sizes, as primitives. dynamic: sizes are
/// symbols.
graph::Graph traced(const trace::Callable& f, const std::vector<std::vector<int64_t>>& sizes,
                    bool dynamic = true);
Program lowered(const trace::Callable& f, const std::vector<std::vector<int64_t>>& sizes, bool fuse = true);
int kernel_count(const Program& p);
/// Names of the kernels and library calls in order: "mul_sum, mm".
std::string steps(const Program& p);

}  // namespace fl::loop::testing
