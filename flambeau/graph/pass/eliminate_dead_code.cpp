#include "flambeau/graph/pass/eliminate_dead_code.h"

#include "flambeau/graph/analysis/purity.h"
#include "flambeau/graph/run_symbols.h"

namespace fl::graph {

int eliminate_dead_code(Graph& g) {
  std::vector<char> is_output(static_cast<size_t>(g.id_limit()), 0);
  for (const Value& o : g.outputs()) for_each_ref(o, [&](GraphRef r) { is_output[r.node] = 1; });
  std::vector<int32_t> calls;
  for (const Node& n : g.calls()) calls.push_back(n.id);
  int removed = 0;
  for (auto it = calls.rbegin(); it != calls.rend(); ++it) {
    // Who gives a size is read by all that is made of its symbol.
    if (is_output[*it] || !g.users(*it).empty() || has_side_effect(g.node(*it)) ||
        gives_unknown_size(g.node(*it)))
      continue;
    g.erase(*it);
    ++removed;
  }
  return removed;
}

}  // namespace fl::graph
