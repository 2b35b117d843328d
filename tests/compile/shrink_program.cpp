// Smaller programs that fail like a given one.
#include "random_program.h"

#include <algorithm>

#include "flambeau/graph/graph.h"

namespace fl::testing {
namespace {

// The program without a step; what read its results reads its first tensor argument instead.
RandomProgram without_step(const RandomProgram& p, size_t step) {
  RandomProgram out = p;
  int first = static_cast<int>(p.inputs.size());
  for (size_t k = 0; k < step; ++k) first += p.steps[k].results;
  const int count = p.steps[step].results;
  int instead = -1;
  for (const Value& v : p.steps[step].args)
    graph::for_each_ref(v, [&](GraphRef r) {
      if (instead < 0) instead = r.node;
    });
  auto moved = [&](int v) { return v < first ? v : v < first + count ? instead : v - count; };
  out.steps.erase(out.steps.begin() + static_cast<std::ptrdiff_t>(step));
  for (ProgramStep& s : out.steps)
    for (Value& v : s.args) v = graph::map_refs(v, [&](GraphRef r) { return GraphRef{moved(r.node), 0}; });
  for (int& o : out.outputs) o = moved(o);
  return out;
}

RandomProgram without_output(const RandomProgram& p, size_t output) {
  RandomProgram out = p;
  out.outputs.erase(out.outputs.begin() + static_cast<std::ptrdiff_t>(output));
  out.exact_outputs.erase(out.exact_outputs.begin() + static_cast<std::ptrdiff_t>(output));
  return out;
}

RandomProgram without_input(const RandomProgram& p, int input) {
  RandomProgram out = p;
  out.inputs.erase(out.inputs.begin() + input);
  auto moved = [&](int v) { return v > input ? v - 1 : v; };
  for (ProgramStep& s : out.steps)
    for (Value& v : s.args) v = graph::map_refs(v, [&](GraphRef r) { return GraphRef{moved(r.node), 0}; });
  for (int& o : out.outputs) o = moved(o);
  return out;
}

bool reads_input(const RandomProgram& p, int input) {
  bool out = std::count(p.outputs.begin(), p.outputs.end(), input) > 0;
  for (const ProgramStep& s : p.steps)
    for (const Value& v : s.args) graph::for_each_ref(v, [&](GraphRef r) { out = out || r.node == input; });
  return out;
}

}  // namespace

RandomProgram shrink(RandomProgram p, const std::function<bool(const RandomProgram&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto attempt = [&](RandomProgram q) {
      if (!fails(q)) return false;
      p = std::move(q);
      return smaller = true;
    };
    for (size_t o = p.outputs.size(); o-- > 0 && p.outputs.size() > 1;) attempt(without_output(p, o));
    for (size_t s = p.steps.size(); s-- > 0;)
      if (p.steps[s].results > 0) attempt(without_step(p, s));
    for (int i = static_cast<int>(p.inputs.size()); i-- > 0 && p.inputs.size() > 1;)
      if (!reads_input(p, i)) attempt(without_input(p, i));
    if (p.gradients) {
      RandomProgram q = p;
      q.gradients = false;
      attempt(std::move(q));
    }
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      RandomProgram q = p;
      if (std::exchange(q.inputs[i].layout, ProgramInput::Layout::Contiguous) !=
          ProgramInput::Layout::Contiguous)
        attempt(q);
      for (size_t d = 0; d < p.inputs[i].sizes.size(); ++d) {
        q = p;
        if (std::exchange(q.inputs[i].sizes[d], 1) > 1) attempt(q);
      }
    }
  }
  return p;
}

}  // namespace fl::testing
