#include "flambeau/graph/analysis/liveness.h"

namespace fl::graph {

std::vector<std::vector<int32_t>> dead_after(const Graph& g) {
  std::vector<int32_t> last(static_cast<size_t>(g.id_limit()), -1);
  for (const Node& n : g.calls()) {
    last[n.id] = n.id;
    for (const Value& a : n.args) for_each_ref(a, [&](GraphRef r) { last[r.node] = n.id; });
  }
  for (const Value& o : g.outputs()) for_each_ref(o, [&](GraphRef r) { last[r.node] = -1; });
  std::vector<std::vector<int32_t>> dead(last.size());
  for (int32_t id = 0; id < g.id_limit(); ++id)
    if (last[id] >= 0) dead[last[id]].push_back(id);
  return dead;
}

}  // namespace fl::graph
