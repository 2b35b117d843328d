// Parts of the text of a graph.
#pragma once
#include <string>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// "f32[s0, 4]"; "f32[4, 4](strides=[1, 4], offset=2, device=cuda:0)" where these are not the usual.
std::string to_text(const TensorSpec& s);
/// "%add", "%split:1", "[s0, 4]", "1.0", "True", "float32", "None".
std::string to_text(const Graph& g, const Value& v);

}  // namespace fl::graph
