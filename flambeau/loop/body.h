// Runs the bodies of graph values, reading what they read from wherever it is.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/loop/builder.h"
#include "flambeau/loop/nodes.h"

namespace fl::loop {

/// Writes the instructions of values into a builder. Memory reads go through `read`, so that a kernel under
/// construction can answer with a value that it just computed.
class BodyWriter {
 public:
  /// The element of a value with memory: (value, its index, element number, mask) -> Val of the value's
  /// dtype.
  using Read = std::function<Val(GraphRef, const Expr& flat, Val mask)>;
  BodyWriter(const NodeGraph& nodes, Builder& builder, Read read)
      : nodes_(nodes), builder_(builder), read_(std::move(read)) {}

  /// Ranges of the loops around, for the simplification of indices.
  void set_ranges(std::vector<Range> ranges);
  /// The element of any value at an index of it, in its own dtype.
  Val value(GraphRef r, Index index, Val mask = {});
  /// Runs a node's body at a point; gives operands of a reduction or the values of the outputs, as the body
  /// returns them.
  std::vector<Val> body(int32_t node, const Lowered& l, std::span<const Expr> i, std::span<const Expr> r,
                        Val mask = {});
  std::vector<Val> finish(int32_t node, const Lowered& l, std::span<const Expr> i,
                          std::span<const Val> results);
  Lowered::Update update(int32_t node, const Lowered& l, std::span<const Expr> i);
  /// A computed value in its storage dtype.
  Val to_dtype(Val v, DType d) { return builder_.cast(v, d); }
  Builder& builder() { return builder_; }
  const NodeGraph& nodes() const { return nodes_; }
  Expr simplified(const Expr& e) const { return sym::simplify(e, ranges_); }

 private:
  const NodeGraph& nodes_;
  Builder& builder_;
  Read read_;
  std::vector<Range> ranges_;
  std::unordered_map<std::string, Val> memo_;  // values computed in place in this stage
};

}  // namespace fl::loop
