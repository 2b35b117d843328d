// Prints what a function of four lines becomes at every stage; with the name of a stage, that one.
// docs/architecture.md shows the texts; the test check.docs compares them.
#include <fmt/core.h>

#include <cstring>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/loop/program.h"
#include "flambeau/ops/functions.h"

using fl::Tensor;
using fl::Tensors;
namespace graph = fl::graph;
namespace loop = fl::loop;

namespace {

Tensors attend(const Tensors& in) {
  Tensor h = fl::mm(in[0], in[1]);
  fl::mul.in_place(h, 0.5);
  const Tensor p = fl::softmax(h, 1);
  return {fl::sum(fl::mul(p, h), fl::IntList{0, 1})};
}

// What the compiler does with a graph before it makes loops of it (compile/native_backend.cpp).
loop::Program lowered(const graph::Graph& original, const char* name, bool fuse) {
  graph::Graph g = original;
  const fl::sym::ShapeEnv::Scope scope(g.shape_env.get());
  graph::decompose(g);
  graph::run_passes(g, graph::simplification_passes(), name);
  graph::simplify_symbols(g);
  return loop::lower(g, {.fuse = fuse, .name = name});
}

std::string kernels(const loop::Program& p) {
  std::string out;
  for (const loop::Step& s : p.steps)
    if (const auto* k = std::get_if<loop::KernelStep>(&s)) out += k->kernel->str();
  return out;
}

// Forward, backward and a second batch size, so that there is something to explain.
std::string explanation(const Tensor& x, const Tensor& w) {
  const fl::Compiled compiled = fl::compile(attend, {.fullgraph = true, .name = "attend"});
  fl::backward(compiled({x, w})[0]);
  fl::backward(compiled({fl::randn({48, 8}), w})[0]);
  return compiled.explain().str();
}

}  // namespace

int main(int argc, char** argv) {
  const Tensor x = fl::randn({32, 8}), w = fl::randn({8, 128}).set_requires_grad(true);
  auto show = [&](const char* stage, auto&& text) {
    if (argc < 2) fmt::print("# {}\n", stage);
    if (argc < 2 || std::strcmp(argv[1], stage) == 0) fmt::print("{}", text());
  };
  const fl::trace::TraceOptions options{.dynamic_dims = {{0, {0}}}, .names = {"x", "w"}};
  const auto program = fl::aot::CompiledFunction::make(attend, {x, w}, fl::aot::interpreted, {options});
  const graph::Graph &forward = program->forward_graph(), &backward = program->backward_graph();

  show("captured", [&] { return graph::to_text(fl::trace::trace(attend, {x, w}, options).graph); });
  show("joint", [&] { return graph::to_text(fl::aot::joint(attend, {x, w}, options).program.graph); });
  show("primitives", [&] { return graph::to_text(program->joint().program.graph); });
  show("forward", [&] { return graph::to_text(forward); });
  show("backward", [&] { return graph::to_text(backward); });
  show("unfused", [&] { return kernels(lowered(forward, "forward", false)); });
  show("fused", [&] { return kernels(lowered(forward, "forward", true)); });
  show("fused_backward", [&] { return kernels(lowered(backward, "backward", true)); });
  show("program", [&] { return lowered(forward, "forward", true).str(); });
  show("explain", [&] { return explanation(x, w); });
}
