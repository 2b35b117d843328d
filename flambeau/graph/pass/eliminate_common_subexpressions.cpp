#include "flambeau/graph/pass/eliminate_common_subexpressions.h"

#include "flambeau/base/hash.h"
#include "flambeau/graph/analysis/escape.h"
#include "flambeau/graph/analysis/purity.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {
namespace {

uint64_t hash_of(const Value& v) {
  uint64_t h = static_cast<uint64_t>(v.tag());
  auto add = [&h](int64_t x) { h = hash_combine(h, static_cast<uint64_t>(x)); };
  switch (v.tag()) {
    case Value::Tag::GraphRef:
    case Value::Tag::GraphRefList:
      for_each_ref(v, [&](GraphRef r) {
        add(r.node);
        add(r.index);
      });
      break;
    case Value::Tag::Int:
    case Value::Tag::Bool:
      add(v.sym_int().raw());
      break;
    case Value::Tag::IntList:
      for (SymInt i : v.ints()) add(i.raw());
      break;
    case Value::Tag::Float:
      h = hash_combine(h, std::hash<double>()(v.to_double()));
      break;
    default:
      break;  // same_as decides
  }
  return h;
}

uint64_t hash_of(const Node& n) {
  auto h = static_cast<uint64_t>(n.op->id);
  for (const Value& a : n.args) h = hash_combine(h, hash_of(a));
  return h;
}

bool same_call(const Node& a, const Node& b) {
  if (a.op != b.op || a.recompute != b.recompute) return false;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!a.args[i].same_as(b.args[i])) return false;
  return true;
}

}  // namespace

int eliminate_common_subexpressions(Graph& g) {
  if (!is_functional(g)) return 0;
  std::vector<char> escapes = escaping_nodes(g);
  std::unordered_map<uint64_t, std::vector<int32_t>> seen;
  int removed = 0;
  for (Node& n : g.calls()) {
    // Each call that gives a size gives its own symbol, which other shapes are made of.
    if (!is_pure(n) || n.op->is(fl::Tag::DataDependent)) continue;
    std::vector<int32_t>& bucket = seen[hash_of(n)];
    int32_t same = -1;
    for (int32_t other : bucket)
      if (same_call(n, g.node(other)) && !(escapes[n.id] && escapes[other])) {
        same = other;
        break;
      }
    if (same < 0) {
      bucket.push_back(n.id);
      continue;
    }
    escapes[same] |= escapes[n.id];
    for (size_t i = 0; i < n.outs.size(); ++i)
      g.replace_uses(n.ref(static_cast<int>(i)), {same, static_cast<int32_t>(i)});
    g.erase(n.id);
    ++removed;
  }
  return removed;
}

}  // namespace fl::graph
