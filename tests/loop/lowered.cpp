#include "lowered.h"

#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/ops/functions.h"

namespace fl::loop::testing {

graph::Graph traced(const trace::Callable& f, const std::vector<std::vector<int64_t>>& sizes, bool dynamic) {
  std::vector<Tensor> inputs;
  for (const auto& list : sizes) {
    Sizes s;
    for (int64_t i : list) s.push_back(i);
    inputs.push_back(zeros(s));
  }
  trace::TraceOptions options;
  options.dynamic = dynamic;
  graph::Graph g = trace::trace(f, inputs, options).graph;
  sym::ShapeEnv::Scope scope(g.shape_env.get());
  graph::decompose(g);
  graph::run_passes(g, graph::simplification_passes(), "test");
  graph::simplify_symbols(g);
  return g;
}

Program lowered(const trace::Callable& f, const std::vector<std::vector<int64_t>>& sizes, bool fuse) {
  const graph::Graph g = traced(f, sizes);
  sym::ShapeEnv::Scope scope(g.shape_env.get());
  return lower(g, {.fuse = fuse, .name = "test"});
}

int kernel_count(const Program& p) {
  int n = 0;
  for (const Step& s : p.steps) n += std::holds_alternative<KernelStep>(s);
  return n;
}

std::string steps(const Program& p) {
  std::string out;
  for (const Step& s : p.steps) {
    if (!out.empty()) out += ", ";
    if (const auto* k = std::get_if<KernelStep>(&s))
      out += k->kernel->name;
    else
      out += std::get<LibraryStep>(s).op->name();
  }
  return out;
}

}  // namespace fl::loop::testing
