// Values of symbols while a graph runs.
#pragma once
#include <map>
#include <string>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Symbols have their values from the inputs, and those of sizes that follow from elements from the results
/// of the calls that give them.
class RunSymbols {
 public:
  RunSymbols(const Graph& g, const std::vector<Value>& inputs) : graph_(g), inputs_(g, inputs) {}
  int64_t evaluate(SymInt s) const;
  /// Numbers in the place of expressions.
  Value evaluate(const Value& v) const;
  /// The result of a call whose size nobody knew. Raises UnsupportedError where it is not one that the graph
  /// was captured for.
  void learn(const Node& call, const Tensor& result);

 private:
  void check_guards() const;

  const Graph& graph_;
  SymbolValues inputs_;
  std::map<std::string, int64_t> sizes_;  ///< by symbol
};

/// Whether a call gives a tensor whose size follows from elements.
bool gives_unknown_size(const Node& n);

}  // namespace fl::graph
