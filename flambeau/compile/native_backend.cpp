#include "flambeau/compile/native_backend.h"

#include <algorithm>
#include <chrono>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/base/option.h"
#include "flambeau/compile/pieces.h"
#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/loop/program.h"
#include "flambeau/runtime/library_calls.h"

namespace fl {
namespace {

using loop::KernelStep;
using loop::LibraryStep;
using loop::Program;
using loop::ProgramBuffer;

int memory_of(const Program& p, int buffer) {
  const ProgramBuffer& b = p.buffers[buffer];
  return b.kind == ProgramBuffer::Kind::View ? b.index : buffer;
}

// Whether kernel step `k`, which writes buffer `out`, may write it into the memory of buffer `in`: each
// element of `in` that it reads is the one that it writes at the same point, and not in a later pass.
bool kernel_allows(const KernelStep& k, int in, int out) {
  const loop::Kernel& kernel = *k.kernel;
  const sym::Expr* stored = nullptr;
  size_t store_stage = 0;
  for (size_t s = 0; s < kernel.stages.size(); ++s)
    for (const loop::Store& st : kernel.stages[s].stores)
      if (k.buffers[st.buffer] == out) {
        if (stored || st.mode != StoreMode::Set) return false;
        stored = &st.index;
        store_stage = s;
      }
  if (!stored) return false;
  for (size_t s = 0; s < kernel.stages.size(); ++s)
    for (int32_t id : kernel.stages[s].insts) {
      const loop::Inst& i = kernel.insts[id];
      if (i.kind != loop::InstKind::Load || k.buffers[i.slot] != in) continue;
      if (s > store_stage || !(i.index == *stored)) return false;
    }
  return true;
}

// Whether output buffer `out` may share the memory of input buffer `in`.
bool may_take_place(const Program& p, int in, int out) {
  const ProgramBuffer &a = p.buffers[in], &b = p.buffers[out];
  if (b.kind != ProgramBuffer::Kind::Output || a.dtype != b.dtype || a.sizes != b.sizes ||
      a.strides != b.strides)
    return false;
  if (std::count_if(p.outputs.begin(), p.outputs.end(), [&](const auto& o) { return o.buffer == out; }) != 1)
    return false;
  bool written = false;
  for (const loop::Step& s : p.steps) {
    bool reads = false, writes = false;
    if (const auto* k = std::get_if<KernelStep>(&s)) {
      for (size_t i = 0; i < k->buffers.size(); ++i) {
        reads = reads || memory_of(p, k->buffers[i]) == in;
        writes = writes || (k->buffers[i] == out && k->kernel->buffers[i].written);
      }
      if (writes && reads && !kernel_allows(*k, in, out)) return false;
    } else {
      const auto& l = std::get<LibraryStep>(s);
      for (const Value& v : l.args)
        graph::for_each_ref(v, [&](GraphRef r) { reads = reads || memory_of(p, r.node) == in; });
      writes = std::count(l.outs.begin(), l.outs.end(), out) > 0;
      if (writes && reads) return false;
    }
    if (written && (reads || writes)) return false;
    written = written || writes;
  }
  return written;
}

struct Prepared {
  std::unique_ptr<runtime::Executable> executable;
  std::vector<bool> is_number;                // by input of the graph
  std::vector<std::pair<int, int>> in_place;  // output number -> tensor input number
};

double milliseconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

}  // namespace

GraphRunner compile_graph(const graph::Graph& original, runtime::ExecutableOptions options,
                          const std::string& name, GraphReport* report) {
  if (has_unknown_sizes(original))
    return compile_in_pieces(
        original, [&](const graph::Graph& piece) { return compile_graph(piece, options, name, report); });
  auto start = std::chrono::steady_clock::now();
  graph::Graph g = original;
  std::optional<sym::ShapeEnv::Scope> scope;
  if (g.shape_env) scope.emplace(g.shape_env.get());
  // Without memory, or on several GPUs: the operators run one after the other.
  const std::optional<Device> device = loop::device_of(original);
  if (!device || (options.runner == runtime::KernelRunner::Interpreter && device->type != DeviceType::CPU)) {
    if (report) report->operators += original.call_count();
    return aot::interpreted(original);
  }
  graph::decompose(g);
  graph::run_passes(g, graph::simplification_passes(), name);
  if (g.shape_env) graph::simplify_symbols(g);
  Program program = loop::lower(g, {.name = name, .takes_channels_last = &runtime::takes_channels_last});
  auto prepared = std::make_shared<Prepared>();
  std::vector<int> tensor_number;  // by input
  int tensors = 0;
  for (int32_t id : g.inputs()) {
    prepared->is_number.push_back(g.node(id).is_number());
    tensor_number.push_back(g.node(id).is_number() ? -1 : tensors++);
  }
  std::vector<int> input_buffer(tensors, -1);
  for (size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].kind == ProgramBuffer::Kind::Input)
      input_buffer[program.buffers[b].index] = static_cast<int>(b);
  for (const auto& [output, input] : g.takes_place_of) {
    const int tensor = tensor_number[input];
    if (program.outputs[output].kind == loop::ProgramOutput::Kind::Tensor &&
        g.node(g.inputs()[input]).spec().device == *device &&
        may_take_place(program, input_buffer[tensor], program.outputs[output].buffer))
      prepared->in_place.emplace_back(output, tensor);
  }
  if (option_lists("FLAMBEAU_DUMP", "program")) fmt::print(stderr, "{}", program.str());
  const double lower_ms = milliseconds_since(start);
  start = std::chrono::steady_clock::now();
  const int operators = original.call_count();
  prepared->executable = std::make_unique<runtime::Executable>(std::move(program), options);
  if (report) {
    report->operators += operators;
    report->kernels += prepared->executable->kernel_count();
    report->library_calls +=
        static_cast<int>(prepared->executable->program().steps.size()) - prepared->executable->kernel_count();
    report->bytes_moved += prepared->executable->bytes_moved(
        [&](const sym::Expr& s) { return g.shape_env ? g.shape_env->hint(s).value_or(0) : 0; });
    report->times.lower += lower_ms;
    report->times.codegen += milliseconds_since(start);
  }
  return [prepared](const std::vector<Value>& inputs) {
    std::vector<Tensor> tensors;
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (prepared->is_number[i])
        numbers.push_back(inputs[i].to_int());
      else
        tensors.push_back(inputs[i].tensor());
    }
    std::vector<Tensor> targets;
    if (!prepared->in_place.empty()) {
      targets.resize(prepared->executable->program().outputs.size());
      for (const auto& [output, tensor] : prepared->in_place) targets[output] = tensors[tensor];
    }
    return prepared->executable->run(tensors, numbers, targets);
  };
}

}  // namespace fl
