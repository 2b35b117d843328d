// The loops of a graph before fusion: which values get memory, and one loop node for each of them.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/loop/machine_shape.h"
#include "flambeau/loop/program.h"
#include "flambeau/op/op_def.h"

namespace fl::loop {

struct RefHash {
  size_t operator()(GraphRef r) const {
    return static_cast<size_t>(r.node) * 1000003u + static_cast<size_t>(r.index);
  }
};

/// How a value of the graph is found when a body reads it.
struct ValueSource {
  enum class Kind : uint8_t {
    Buffer,  ///< in memory, with the strides of its spec
    Inline,  ///< computed again at each place that reads it
    View,    ///< another value at a mapped index
  };
  Kind kind = Kind::Buffer;
  const Lowered* lowered = nullptr;  ///< of Inline and View
};

/// A read or write of memory by a node: the element number as an expression over the node's loop variables.
struct Access {
  GraphRef value;
  Expr index;  ///< "%..." symbols where it depends on data
};

/// One value (or several computed together) that gets memory.
struct LoopNode {
  enum class Kind : uint8_t { Loops, Library };
  Kind kind = Kind::Loops;
  int32_t node = -1;                 ///< of the graph
  const Lowered* lowered = nullptr;  ///< of Loops
  std::vector<GraphRef> writes;
  std::vector<Expr> sizes, reduce;    ///< loops: variables i0.. and r0..
  std::vector<Access> reads, stores;  ///< of Loops, by memory
  std::vector<int> depends;           ///< nodes that write what this one reads, each once, ascending
  int operations = 0;                 ///< of the body
  bool heavy = false;                 ///< the body has a transcendental function
  bool columns = false;               ///< a reduction whose memory runs along the outputs
  bool in_order = false;              ///< its points are so few that nothing is gained by cutting them
  bool ordered = false;               ///< scan, scatter or run-time check: not fused
};

/// In a body: reads the partial results of the call's reduction instead of an argument.
inline constexpr int kPartialResults = -1;

/// Loop variables of nodes.
Expr loop_variable(char letter, int number);

struct NodeGraph {
  const graph::Graph* graph = nullptr;
  MachineShape machine;
  std::unordered_map<GraphRef, ValueSource, RefHash> sources;
  std::unordered_map<int32_t, std::unique_ptr<Lowered>> lowered;  ///< by graph node
  std::vector<std::unique_ptr<Lowered>> made_lowered;             ///< of reductions in canonical order
  std::unordered_map<int32_t, GraphRef> piece_of;                 ///< graph node -> its partial results
  std::vector<LoopNode> nodes;                                    ///< in order of the graph
  std::unordered_map<GraphRef, int, RefHash> writer;              ///< node that writes a buffer
  std::unordered_map<GraphRef, TensorSpec, RefHash>
      pieces;  ///< specs of partial results, which the graph does not have
  std::unordered_map<GraphRef, bool, RefHash> is_output;
  std::unordered_map<GraphRef, TensorSpec, RefHash> laid_out;  ///< values with other strides than the graph's

  /// Dtype, sizes and the strides that the value has in memory.
  const TensorSpec& spec(GraphRef r) const;
  /// Element number of an index in a value that has memory.
  Expr flat_index(GraphRef r, std::span<const Expr> index) const;
  /// A size for the example, for heuristics only.
  int64_t hint(const Expr& e) const;
};

struct NodeOptions {
  bool inline_values = true;  ///< cheap values are computed where they are read
  LayoutRule takes_channels_last = nullptr;
  MachineShape machine{};
};
/// Decides what is computed in place and what gets memory, and makes the loop nodes.
NodeGraph make_nodes(const graph::Graph& g, const NodeOptions& options);

}  // namespace fl::loop
