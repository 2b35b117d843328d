// Capture of a C++ function: it runs once, on tensors without elements whose sizes are symbols, and every
// call of an operator below autograd becomes a node of a graph.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/op/autocast.h"
#include "flambeau/op/grad_ctx.h"
#include "flambeau/tensor/generator.h"

namespace fl::trace {

using Callable = std::function<Tensors(const Tensors&)>;

struct TraceOptions {
  /// Sizes of all inputs are symbols. 0 and 1 stay constants.
  bool dynamic = false;
  /// Input number -> dimensions whose size is a symbol.
  std::map<int, std::vector<int>> dynamic_dims{};
  /// Inputs whose symbols are numbers rather than sizes: 0 and 1, too.
  std::set<int> numbers{};
  /// Sizes of 1 that are to be symbols become so, where nothing requires gradients: they stand for an example
  /// of another size. See is_right_for_ones().
  bool one_varies = false;
  /// Names of the inputs in the graph; arg0, arg1, ... where there is none.
  std::vector<std::string> names{};
};

/// One of the tensors that a program knows from outside.
struct Outer {
  enum class Kind : uint8_t { None, Input, Captured } kind = Kind::None;
  int index = -1;  ///< of TracedProgram::inputs or ::captured
  explicit operator bool() const { return kind != Kind::None; }
  bool operator==(const Outer&) const = default;
};

/// A tensor that the caller passes. Inputs that are the same tensor are one input of the graph.
struct InputInfo {
  int32_t node = -1;     ///< its placeholder
  int same_as = -1;      ///< an earlier input that is the same tensor
  int shares_with = -1;  ///< the first earlier input on the same storage
  TensorSpec spec;       ///< in the graph: sizes over symbols
  bool requires_grad = false;
  bool is_leaf = true;
  bool written = false;  ///< its memory is changed in place
};

/// A tensor that the function reached by itself: a parameter, a buffer, a constant.
struct CapturedInfo {
  int32_t node = -1;
  Tensor tensor;
  Outer grad_of;          ///< at the start of a run it is the .grad of this one; `tensor` has no elements
  int shares_input = -1;  ///< an input on the same storage
  bool written = false;   ///< its memory is changed in place
};

/// One tensor that the function returned.
struct OutputInfo {
  bool defined = true;
  Outer is;                  ///< it is this tensor itself
  int is_output = -1;        ///< it is the same object as an earlier output
  Outer alias_of;            ///< it has this one's storage (the first such)
  int alias_of_output = -1;  ///< it has the storage of this earlier output, and of nothing outside
  bool requires_grad = false;
  TensorSpec spec;
};

/// What the function did to the .grad of a tensor from outside.
struct GradEffect {
  Outer target;
  int output = -1;  ///< the output of the graph that it becomes; -1: undefined
};

/// The function added to a .grad or read it, so what it did depends on whether there was one.
struct GradAssumption {
  Outer target;
  bool defined = false;
  int input = -1;  ///< it is this input itself
};

/// An input of the graph that is the whole storage of a tensor from outside, as one flat tensor.
struct SharedBase {
  int32_t node;
  Outer member;  ///< one of the tensors on the storage
  TensorSpec spec;
};

struct TracedProgram {
  /// Inputs: each distinct tensor input, then captured ones and numbers in the order in which they were met.
  /// Outputs: the function's, then the gradients that it left.
  graph::Graph graph;
  std::vector<InputInfo> inputs;
  std::vector<CapturedInfo> captured;
  std::vector<OutputInfo> outputs;
  std::vector<GradEffect> grad_effects;
  std::vector<GradAssumption> grad_assumptions;
  std::vector<SharedBase> bases;
  std::vector<Ref<Generator>> generators;  ///< of graph.random
  bool grad_enabled = true;                ///< the mode at the start
  AutocastMode autocast;                   ///< the same

  const std::vector<sym::Guard>& guards() const { return graph.shape_env->guards(); }
  /// The tensor in a run with these arguments.
  Tensor outer(const Tensors& args, Outer o) const;
};

/// Where the inputs of a program's graph come from in a run, tangents left out.
class InputPlan {
 public:
  InputPlan() = default;
  explicit InputPlan(const TracedProgram& p);
  /// The arguments, captured tensors, and seeds and offsets from the generators, which this moves on.
  std::vector<Value> values(const TracedProgram& p, const Tensors& args) const;
  /// The same with None in the place of numbers: nothing is drawn.
  std::vector<Value> tensors(const TracedProgram& p, const Tensors& args) const;
  /// Where an input (by node id) is in those lists.
  int position(int32_t node) const { return position_.at(node); }

 private:
  struct Source {
    enum class Kind : uint8_t { Argument, Captured, Base, Random } kind;
    int index;  ///< Random: 3 * generator + 0 (low word of the seed), 1 (high word) or 2 (offset)
  };
  static Source number_source(const TracedProgram& p, const sym::Expr& symbol);
  std::vector<Source> sources_;
  std::unordered_map<int32_t, int> position_;
};

/// Why the program must not be run with these arguments, or nothing: the first difference from what it was
/// captured for.
std::string why_not(const TracedProgram& p, const Tensors& args);

/// Why the .grad of tensors from outside are not those that a program was captured for, or nothing.
std::string gradient_difference(const TracedProgram& p, const Tensors& args);

/// Whether the graph of a program traced with TraceOptions::one_varies is right for sizes of 1 as well: every
/// operator's rule gives the same shapes with 1 in the place of those symbols.
bool is_right_for_ones(const TracedProgram& p);

/// Raises UnsupportedError where the function reads elements, and whatever the function raises. What the
/// function did to .grad and to other state of real tensors is undone.
TracedProgram trace(const Callable& function, const Tensors& inputs, const TraceOptions& options = {});

}  // namespace fl::trace
