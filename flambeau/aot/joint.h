// One graph of a function and its gradient. Tests: tests/aot/joint_test.cpp.
#pragma once
#include <vector>

#include "flambeau/aot/functionalise.h"
#include "flambeau/trace/trace.h"

namespace fl::aot {

/// The gradient by a result of the forward part: an input of the joint graph.
struct Tangent {
  int32_t node;  ///< its placeholder
  int output;    ///< the output of the joint graph that it belongs to
};

/// The gradient by a tensor from outside.
struct Gradient {
  trace::Outer target;
  int output;  ///< of the joint graph; -1: nothing depends on it
};

struct JointProgram {
  /// The graph is functional. Its outputs: the function's (`user_outputs` of them), bases that several of
  /// those are views of, gradients, what program.grad_effects name, and what info.mutations name.
  trace::TracedProgram program;
  FunctionalInfo info;
  int user_outputs = 0;
  std::vector<Tangent> tangents;
  std::vector<Gradient> gradients;
  /// Outputs with a history that the function itself has used up and freed, and what backward through them
  /// says.
  std::vector<int> freed;
  std::string freed_error;
  bool differentiable() const { return !tangents.empty(); }
  /// Outputs of the graph that are not gradients, in order.
  std::vector<int> forward_outputs() const;
};

/// Captures the function; if it gives something that needs a gradient and gradients are enabled, backward by
/// the same engine as eager mode follows in the same graph. Raises UnsupportedError where a graph can't say
/// what the function does.
JointProgram joint(const trace::Callable& function, const Tensors& inputs,
                   const trace::TraceOptions& options = {});

}  // namespace fl::aot
