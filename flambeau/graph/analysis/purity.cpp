#include "flambeau/graph/analysis/purity.h"

#include "flambeau/op/op_def.h"

namespace fl::graph {

bool has_side_effect(const Node& n) { return !n.is_input() && n.op->mutates(); }

bool is_pure(const Node& n) {
  if (n.is_input() || has_side_effect(n)) return false;
  for (const Value& a : n.args)
    if (a.tag() == Value::Tag::Generator) return false;
  // A random operator whose schema has a generator draws from the default one.
  if (n.op->is(Tag::Random))
    for (const Argument& a : n.op->schema.args)
      if (a.type == ArgType::OptGenerator) return false;
  return true;
}

bool is_functional(const Graph& g) {
  for (const Node& n : g.calls())
    if (has_side_effect(n)) return false;
  return true;
}

}  // namespace fl::graph
