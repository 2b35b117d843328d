// The callable that users get in the place of a captured function. Tests: tests/aot/wrapper_test.cpp.
#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include "flambeau/aot/partition.h"

namespace fl::aot {

/// Runs a graph: takes a Value for each of its inputs and gives one for each of its outputs.
using Runner = std::function<std::vector<Value>(const std::vector<Value>&)>;
/// Makes a Runner. The graph is functional and made of primitives.
using Compiler = std::function<Runner(const graph::Graph&)>;
/// The reference: graph::interpret.
Runner interpreted(const graph::Graph& g);

struct CompileOptions {
  trace::TraceOptions trace;
  PartitionOptions partition;
  /// Gradients of gradients run the original function again, eagerly. Otherwise they raise RuntimeError.
  bool double_backward = true;
  /// They run the forward graph again instead: the function can't be called once it was captured.
  bool repeat_graph = false;
};

class CompiledFunction : public std::enable_shared_from_this<CompiledFunction> {
 public:
  /// Captures, differentiates and compiles; the backward graph is compiled when it is first run.
  static std::shared_ptr<CompiledFunction> make(trace::Callable function, const Tensors& inputs,
                                                Compiler compiler, CompileOptions options = {});

  /// What the function returns for arguments that satisfy trace::why_not: values, history, shared memory,
  /// changes of arguments and of .grad, random numbers as in eager mode.
  Tensors operator()(const Tensors& args);

  const JointProgram& joint() const { return joint_; }
  const graph::Graph& forward_graph() const { return partition_.forward; }
  const graph::Graph& backward_graph() const { return partition_.backward; }
  const Partition& partition() const { return partition_; }

 private:
  class Call;
  class BackwardNode;
  void prepare();
  void find_restrided(const std::vector<const TensorSpec*>& wanted);
  const Runner& backward();
  /// The function's results with a history, for gradients of gradients; nothing is changed.
  Tensors repeat(const Tensors& args) const;
  /// Where the forward graph has an output of the joint graph.
  int position(int joint_output) const { return position_[joint_output]; }

  trace::Callable function_;
  Compiler compiler_;
  CompileOptions options_;
  JointProgram joint_;
  Partition partition_;
  trace::InputPlan plan_;
  Runner forward_, backward_;
  std::once_flag backward_once_;
  std::vector<int> position_;
  bool symbolic_steps_ = false;
  /// Outputs of the forward graph whose strides say something else for dimensions of one element.
  std::vector<std::pair<int, Sizes>> restrided_;
};

}  // namespace fl::aot
