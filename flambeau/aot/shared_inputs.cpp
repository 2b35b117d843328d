#include "flambeau/aot/shared_inputs.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/graph/infer.h"
#include "flambeau/op/op.h"

namespace fl::aot {

using trace::Outer;

namespace {

struct Member {
  Outer outer;
  int32_t* node;
  const Storage* storage;  ///< tells apart; of captured tensors only
  bool written, requires_grad;
};

/// Tensors from outside that share one storage, in order.
using Group = std::vector<Member>;

std::vector<Group> shared_groups(trace::TracedProgram& p) {
  std::vector<Group> groups;
  std::vector<int> group_of_input(p.inputs.size(), -1);
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    trace::InputInfo& in = p.inputs[i];
    if (in.same_as >= 0) {
      group_of_input[i] = group_of_input[in.same_as];
      continue;
    }
    if (in.shares_with >= 0) group_of_input[i] = group_of_input[in.shares_with];
    if (group_of_input[i] < 0) {
      group_of_input[i] = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    groups[group_of_input[i]].push_back(
        {{Outer::Kind::Input, static_cast<int>(i)}, &in.node, nullptr, in.written, in.requires_grad});
  }
  for (size_t i = 0; i < p.captured.size(); ++i) {
    trace::CapturedInfo& c = p.captured[i];
    if (c.node < 0) continue;
    const Storage* storage = c.tensor.storage().get();
    Member m{
        {Outer::Kind::Captured, static_cast<int>(i)}, &c.node, storage, c.written, c.tensor.requires_grad()};
    auto same = [&](const Group& g) { return g[0].storage == storage; };
    if (c.shares_input >= 0) {
      groups[group_of_input[c.shares_input]].push_back(m);
    } else if (auto it = std::find_if(groups.begin(), groups.end(), same); it != groups.end()) {
      it->push_back(m);
    } else {
      groups.push_back({m});
    }
  }
  return groups;
}

int32_t first_call(const graph::Graph& g) {
  for (const graph::Node& n : g.calls()) return n.id;
  return -1;
}

void merge(trace::TracedProgram& p, const Group& group) {
  graph::Graph& g = p.graph;
  const DType dtype = g.node(*group[0].node).spec().dtype;
  SymInt end = 0;
  for (const Member& m : group) {
    const TensorSpec& s = g.node(*m.node).spec();
    FL_CHECK(
        !m.requires_grad, UnsupportedError,
        "inputs that share memory are changed in place and need gradients (input '{}'); pass one tensor and "
        "make the views inside the function",
        g.node(*m.node).name);
    FL_CHECK(s.dtype == dtype, UnsupportedError,
             "inputs that share memory and are changed in place have dtypes {} and {}", name(dtype),
             name(s.dtype));
    SymInt last = s.offset + SymInt(1);
    for (int d = 0; d < s.dim(); ++d) last += (s.sizes[d] - SymInt(1)) * s.strides[d];
    end = max(end, last);
  }
  TensorSpec flat = make_spec(Sizes{end}, dtype, g.node(*group[0].node).spec().device);
  graph::Node& base = g.add_input(graph::InputKind::Input, flat, "base");
  p.bases.push_back({base.id, group[0].outer, flat});
  const OpInfo& as_strided = find_op("as_strided");
  for (const Member& m : group) {
    const TensorSpec s = g.node(*m.node).spec();
    std::vector<Value> args{Value(base.ref()), Value(s.sizes), Value(s.strides), Value(s.offset)};
    std::vector<TensorSpec> specs = graph::infer_specs(g, as_strided, args);
    graph::Node& view = g.insert(first_call(g), as_strided, std::move(args), std::move(specs));
    g.replace_uses(g.node(*m.node).ref(), view.ref());
    g.erase(*m.node);
    *m.node = -1;
  }
  for (trace::InputInfo& in : p.inputs)
    if (in.same_as >= 0) in.node = p.inputs[in.same_as].node;
}

}  // namespace

void separate_shared_inputs(trace::TracedProgram& p) {
  for (const Group& group : shared_groups(p)) {
    const bool written = std::any_of(group.begin(), group.end(), [](const Member& m) { return m.written; });
    if (group.size() > 1 && written) merge(p, group);
  }
}

}  // namespace fl::aot
