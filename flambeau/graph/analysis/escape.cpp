#include "flambeau/graph/analysis/escape.h"

#include "flambeau/op/op_def.h"

namespace fl::graph {

std::vector<char> escaping_nodes(const Graph& g) {
  std::vector<char> escapes(static_cast<size_t>(g.id_limit()), 0);
  for (int32_t id : g.inputs()) escapes[id] = 1;
  for (const Value& o : g.outputs()) for_each_ref(o, [&](GraphRef r) { escapes[r.node] = 1; });
  std::vector<int32_t> views;
  for (const Node& n : g.calls()) {
    if (!n.op->is_view()) continue;
    views.push_back(n.id);
    // A view of memory that is seen.
    for_each_ref(n.args[0],
                 [&](GraphRef r) { escapes[n.id] |= escapes[r.node] && g.node(r.node).is_input(); });
  }
  for (auto it = views.rbegin(); it != views.rend(); ++it)
    if (escapes[*it]) for_each_ref(g.node(*it).args[0], [&](GraphRef r) { escapes[r.node] = 1; });
  return escapes;
}

}  // namespace fl::graph
