// Graphs with sizes that follow from elements: run in pieces.
#pragma once
#include <functional>

#include "flambeau/compile/compile.h"

namespace fl {

/// Whether a call of the graph gives a tensor whose size follows from elements.
bool has_unknown_sizes(const graph::Graph& g);

/// Compiles what lies before, between and behind such calls, each as a graph of its own. At each the host
/// waits for the elements and gets to know the size. The runner raises UnsupportedError where a size is not
/// what the graph was captured for: nothing has been changed by then.
GraphRunner compile_in_pieces(const graph::Graph& g,
                              const std::function<GraphRunner(const graph::Graph&)>& compile_piece);

}  // namespace fl
