// compile(): a function of tensors, captured, differentiated, fused and compiled at its first call.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/trace/trace.h"

namespace fl {

using Callable = trace::Callable;

struct CompileOptions {
  /// "native": machine code. "interpreter": the loop interpreter. "aot_eager": the captured and
  /// differentiated graph, one eager operator after the other. "eager": the function as it is. Or a name
  /// given to register_backend.
  std::string backend = "native";
  /// Sizes as symbols: true: all; false: none; unset: the first dimension at once, others when they have
  /// changed.
  std::optional<bool> dynamic;
  /// true: what can't be captured raises UnsupportedError. false: it runs eagerly.
  bool fullgraph = false;
  /// "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs". On GPUs the second and the
  /// third record runs and run them again as one (runtime/recorded_runs.h); else they are the same.
  std::string mode = "default";
  /// Captures of one function before it runs eagerly.
  int recompile_limit = 8;
  /// For dumps.
  std::string name = "function";
};

/// Milliseconds of the stages of one capture.
struct StageTimes {
  double trace = 0;    ///< capture, differentiation, partition
  double lower = 0;    ///< decomposition, loops, fusion
  double codegen = 0;  ///< machine code of the kernels
  double total() const { return trace + lower + codegen; }
};

/// What became of one capture.
struct GraphReport {
  int operators = 0;  ///< calls in the captured graphs
  int kernels = 0;    ///< generated kernels
  int library_calls = 0;
  int64_t bytes_moved = 0;  ///< by the kernels and library calls of one run with the first sizes
  StageTimes times;
  std::string reason;  ///< why it was made: "first call", or the guard that failed
  std::string graph;   ///< text of the forward graph
};
struct Explanation {
  std::vector<GraphReport> graphs;
  std::vector<std::string> fallbacks;  ///< reasons for eager runs
  int64_t calls = 0;
  std::string str() const;
};

/// A compiled function; copies share what was compiled. Calls from several threads are fine.
class Compiled {
 public:
  Compiled(Callable function, CompileOptions options);
  /// What the function returns: values, history for autograd, changed arguments, random numbers.
  Tensors operator()(const Tensors& inputs) const;
  Explanation explain() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

Compiled compile(Callable function, CompileOptions options = {});

/// Runs a functional graph of primitives or composites: one Value for each input, one for each output.
using GraphRunner = std::function<std::vector<Value>(const std::vector<Value>&)>;
using GraphCompiler = std::function<GraphRunner(const graph::Graph&)>;
/// Makes a backend known by name; replaces one of the same name.
void register_backend(const std::string& name, GraphCompiler compiler);
std::vector<std::string> list_backends();

/// Raises ValueError on a mode or backend that does not exist.
void check_options(const CompileOptions& options);
/// The compiler of the options' backend; what it does is added to a report, if one is given: also what it
/// does later, for a backward graph, so it keeps the report.
GraphCompiler graph_compiler(const CompileOptions& options, std::shared_ptr<GraphReport> report);

}  // namespace fl
