#include "flambeau/compile/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/base/option.h"
#include "flambeau/compile/native_backend.h"
#include "flambeau/compile/quick_guard.h"
#include "flambeau/op/dispatch.h"

namespace fl {
namespace {

struct Backends {
  std::mutex mutex;
  std::map<std::string, GraphCompiler> by_name;
};
Backends& backends() {
  static Backends* b = new Backends;
  return *b;
}

}  // namespace

GraphCompiler graph_compiler(const CompileOptions& options, std::shared_ptr<GraphReport> report) {
  const bool record = options.mode == "reduce-overhead" || options.mode == "max-autotune";
  for (const auto& [backend, runner] : {std::pair("native", runtime::KernelRunner::Native),
                                        std::pair("inductor", runtime::KernelRunner::Native),
                                        std::pair("interpreter", runtime::KernelRunner::Interpreter)})
    if (options.backend == backend)
      return [name = options.name, report, kernels = runtime::ExecutableOptions{runner, record}](
                 const graph::Graph& g) { return compile_graph(g, kernels, name, report.get()); };
  if (options.backend == "aot_eager") return [](const graph::Graph& g) { return aot::interpreted(g); };
  {
    std::lock_guard lock(backends().mutex);
    if (auto it = backends().by_name.find(options.backend); it != backends().by_name.end()) return it->second;
  }
  std::string known;
  for (const std::string& n : list_backends()) known += (known.empty() ? "" : ", ") + n;
  FL_RAISE(ValueError, "there is no backend '{}'; known are {}", options.backend, known);
}

void check_options(const CompileOptions& options) {
  static constexpr std::string_view kModes[] = {"default", "reduce-overhead", "max-autotune",
                                                "max-autotune-no-cudagraphs"};
  FL_CHECK(
      std::ranges::find(kModes, options.mode) != std::end(kModes), ValueError,
      "there is no mode '{}'; expected default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
      options.mode);
  if (options.backend != "eager") graph_compiler(options, nullptr);
}

struct Compiled::State {
  struct Entry {
    std::shared_ptr<aot::CompiledFunction> function;
    std::shared_ptr<GraphReport> report = std::make_shared<GraphReport>();
    std::unique_ptr<QuickGuard> quick;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;

  Callable function;
  CompileOptions options;
  std::mutex mutex;  // captures
  std::atomic<std::shared_ptr<const Entries>> entries{std::make_shared<const Entries>()};
  std::map<int, std::set<int>> dynamic_dims;
  std::vector<std::string> fallbacks;
  std::atomic<bool> eager{false};
  std::atomic<int64_t> calls{0};

  Tensors run(const Tensors& inputs);
  static Entry* find(const Entries& list, const Tensors& inputs, std::string* reason);
  std::shared_ptr<Entry> capture(const Tensors& inputs, std::string reason);
  trace::TraceOptions trace_options(const Tensors& inputs);
  void note_changed_sizes(const Tensors& inputs);
  Tensors fall_back(const Tensors& inputs, std::string why);
  template <class E>
  Tensors give_up(const Tensors& inputs, const E& error) {
    if (options.fullgraph) throw error;
    eager = true;
    return fall_back(inputs, error.message());
  }
};

Compiled::State::Entry* Compiled::State::find(const Entries& list, const Tensors& inputs,
                                              std::string* reason) {
  for (const auto& e : list)
    if (e->quick->accepts(e->function->joint().program, inputs)) return e.get();
  for (const auto& e : list) {
    std::string why = trace::why_not(e->function->joint().program, inputs);
    if (why.empty()) return e.get();
    if (reason && reason->empty()) *reason = std::move(why);
  }
  return nullptr;
}

Tensors Compiled::State::run(const Tensors& inputs) {
  calls.fetch_add(1, std::memory_order_relaxed);
  // Inside another capture the function is a part of it.
  if (eager.load(std::memory_order_relaxed) || dispatch_state().tracer) return function(inputs);
  if (Entry* e = find(*entries.load(), inputs, nullptr)) return (*e->function)(inputs);
  std::shared_ptr<Entry> made;
  {
    std::lock_guard lock(mutex);
    const std::shared_ptr<const Entries> now = entries.load();
    std::string reason;
    if (Entry* e = find(*now, inputs, &reason)) return (*e->function)(inputs);
    if (static_cast<int>(now->size()) >= options.recompile_limit) {
      if (options.fullgraph)
        FL_RAISE(RuntimeError, "'{}' was compiled {} times, the limit; the last reason: {}", options.name,
                 now->size(), reason);
      return fall_back(inputs,
                       fmt::format("compiled {} times, the limit; the last reason: {}", now->size(), reason));
    }
    try {
      made = capture(inputs, reason.empty() ? "first call" : reason);
    } catch (const UnsupportedError& e) {
      return give_up(inputs, e);
    } catch (const NotImplementedError& e) {
      return give_up(inputs, e);
    } catch (const InternalError& e) {
      // A mistake of the compiler must not become the program's.
      return give_up(inputs, e);
    }
    auto next = std::make_shared<Entries>(*now);
    next->push_back(made);
    entries.store(next);
  }
  return (*made->function)(inputs);
}

Tensors Compiled::State::fall_back(const Tensors& inputs, std::string why) {
  if (std::find(fallbacks.begin(), fallbacks.end(), why) == fallbacks.end())
    fallbacks.push_back(std::move(why));
  return function(inputs);
}

// Dimensions whose size differs from that of an earlier capture are symbols from now on.
void Compiled::State::note_changed_sizes(const Tensors& inputs) {
  for (const auto& e : *entries.load()) {
    const auto& known = e->function->joint().program.inputs;
    if (known.size() != inputs.size()) continue;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined() || known[i].spec.dim() != inputs[i].dim()) continue;
      for (int d = 0; d < inputs[i].dim(); ++d) {
        const SymInt was = known[i].spec.sizes[d];
        if (!was.is_symbolic() && !was.same_as(inputs[i].sizes()[d]))
          dynamic_dims[static_cast<int>(i)].insert(d);
      }
    }
  }
}

trace::TraceOptions Compiled::State::trace_options(const Tensors& inputs) {
  trace::TraceOptions out;
  if (options.dynamic) {
    out.dynamic = *options.dynamic;
    return out;
  }
  note_changed_sizes(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && inputs[i].dim() > 0) dynamic_dims[static_cast<int>(i)].insert(0);
  // An input of fewer dimensions than before lacks some of them.
  for (const auto& [input, dims] : dynamic_dims)
    if (input < static_cast<int>(inputs.size()) && inputs[input].defined())
      out.dynamic_dims[input] = {dims.begin(), dims.lower_bound(inputs[input].dim())};
  return out;
}

std::shared_ptr<Compiled::State::Entry> Compiled::State::capture(const Tensors& inputs, std::string reason) {
  const auto start = std::chrono::steady_clock::now();
  auto entry = std::make_shared<Entry>();
  GraphReport* report = entry->report.get();
  report->reason = std::move(reason);
  aot::CompileOptions aot_options;
  aot_options.trace = trace_options(inputs);
  entry->function =
      aot::CompiledFunction::make(function, inputs, graph_compiler(options, entry->report), aot_options);
  entry->quick = std::make_unique<QuickGuard>(entry->function->joint().program);
  report->graph = graph::to_text(entry->function->forward_graph());
  const double total =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report->times.trace = total - report->times.lower - report->times.codegen;
  if (option("FLAMBEAU_TIMING") == "1")
    fmt::print(stderr,
               "flambeau: {}: capture {:.1f} ms, lowering {:.1f} ms, code generation {:.1f} ms ({})\n",
               options.name, report->times.trace, report->times.lower, report->times.codegen, report->reason);
  return entry;
}

Compiled::Compiled(Callable function, CompileOptions options) : state_(std::make_shared<State>()) {
  check_options(options);  // an unknown name is an error here, not at the first call
  state_->function = std::move(function);
  state_->eager = options.backend == "eager";
  state_->options = std::move(options);
}

Tensors Compiled::operator()(const Tensors& inputs) const { return state_->run(inputs); }

Explanation Compiled::explain() const {
  Explanation out;
  for (const auto& e : *state_->entries.load()) out.graphs.push_back(*e->report);
  std::lock_guard lock(state_->mutex);
  out.fallbacks = state_->fallbacks;
  out.calls = state_->calls.load();
  return out;
}

std::string Explanation::str() const {
  std::string out = fmt::format("{} calls, {} captures\n", calls, graphs.size());
  for (size_t k = 0; k < graphs.size(); ++k) {
    const GraphReport& g = graphs[k];
    out += fmt::format(
        "capture {}: {} operators, {} kernels, {} library calls, {:.3f} MB moved; capture {:.1f} ms, "
        "lowering {:.1f} ms, code "
        "generation "
        "{:.1f} ms; because: {}\n",
        k, g.operators, g.kernels, g.library_calls, static_cast<double>(g.bytes_moved) / 1e6, g.times.trace,
        g.times.lower, g.times.codegen, g.reason);
  }
  for (const std::string& f : fallbacks) out += "eager, because: " + f + "\n";
  return out;
}

Compiled compile(Callable function, CompileOptions options) {
  return Compiled(std::move(function), std::move(options));
}

void register_backend(const std::string& name, GraphCompiler compiler) {
  std::lock_guard lock(backends().mutex);
  backends().by_name[name] = std::move(compiler);
}

std::vector<std::string> list_backends() {
  std::vector<std::string> out = {"aot_eager", "eager", "interpreter", "native"};
  std::lock_guard lock(backends().mutex);
  for (const auto& [name, unused] : backends().by_name) out.push_back(name);
  return out;
}

}  // namespace fl
