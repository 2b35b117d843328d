#include "flambeau/runtime/executable.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <unordered_set>

#include "flambeau/base/option.h"
#include "flambeau/loop/interpret.h"
#include "flambeau/runtime/executable_run.h"
#include "flambeau/runtime/recorded_runs.h"

namespace fl::runtime {

using loop::KernelStep;
using loop::LibraryStep;
using loop::ProgramBuffer;
using loop::SymbolSource;

namespace {
// Adds the time of one step of one run to its sum.
class StepTimer {
 public:
  StepTimer(std::vector<std::atomic<int64_t>>* sums, size_t step) : sums_(sums), step_(step) {
    if (sums_) start_ = std::chrono::steady_clock::now();
  }
  ~StepTimer() {
    if (sums_) (*sums_)[step_] += (std::chrono::steady_clock::now() - start_) / std::chrono::nanoseconds(1);
  }

 private:
  std::vector<std::atomic<int64_t>>* sums_;
  size_t step_;
  std::chrono::steady_clock::time_point start_;
};

constexpr int kKeptPlans = 64;
constexpr int64_t kAlignment = 64;

std::vector<sym::Expr> symbols_of(const loop::Program& p) {
  std::vector<sym::Expr> out;
  for (const SymbolSource& s : p.symbols) out.push_back(s.symbol);
  return out;
}

int64_t symbol_value(const SymbolSource& s, std::span<const Tensor> inputs,
                     std::span<const int64_t> numbers) {
  switch (s.kind) {
    case SymbolSource::Kind::Size:
      return inputs[s.input].sizes()[s.dim].expect_int();
    case SymbolSource::Kind::Stride:
      return inputs[s.input].strides()[s.dim].expect_int();
    case SymbolSource::Kind::Offset:
      return inputs[s.input].offset().expect_int();
    default:
      return numbers[s.input];
  }
}
}  // namespace

Executable::Executable(loop::Program program, ExecutableOptions options)
    : program_(std::move(program)),
      options_(options),
      runtime_(runtime_of(program_.device)),
      table_(symbols_of(program_)),
      loose_(symbols_of(program_)) {
  FL_CHECK(options.runner == KernelRunner::Native || program_.device == Device{}, ValueError,
           "the interpreter runs programs of the CPU, got one of {}", program_.device.str());
  auto entries = [&](const std::vector<sym::Expr>& list) {
    std::vector<int> out;
    for (const sym::Expr& e : list) out.push_back(table_.add(e));
    return out;
  };
  for (const ProgramBuffer& b : program_.buffers)
    buffers_.push_back({table_.add(b.elements), table_.add(b.offset), entries(b.sizes), entries(b.strides)});
  for (const loop::ProgramOutput& o : program_.outputs) {
    OutputEntries e;
    if (o.kind == loop::ProgramOutput::Kind::Tensor) {
      for (SymInt s : o.spec.sizes) e.sizes.push_back(table_.add(s.expr()));
      for (SymInt s : o.spec.strides) e.strides.push_back(table_.add(s.expr()));
      e.offset = table_.add(o.spec.offset.expr());
    } else {
      e.number = loose_.add(o.number);
    }
    outputs_.push_back(std::move(e));
  }
  std::vector<loop::Kernel> kernels;
  for (const loop::Step& s : program_.steps) {
    CompiledStep c;
    if (const auto* k = std::get_if<KernelStep>(&s)) {
      c.buffers = k->buffers;
      for (int b : c.buffers) c.is_variable = c.is_variable || program_.buffers[b].by_value;
      c.sizes = entries(k->kernel->sizes);
      kernels.push_back(*k->kernel);
    } else {
      const auto& l = std::get<LibraryStep>(s);
      for (const Value& v : l.args)
        c.args.push_back(graph::map_refs(v, [&](GraphRef r) {
          c.operands.push_back(r.node);
          return GraphRef{static_cast<int32_t>(c.operands.size()) - 1, 0};
        }));
      c.results = l.outs;
      for (const Value& v : l.args) {
        if (v.tag() == Value::Tag::Int) table_.add(v.sym_int().expr());
        if (v.tag() == Value::Tag::IntList)
          for (SymInt i : v.ints()) table_.add(i.expr());
      }
    }
    steps_.push_back(std::move(c));
  }
  find_layout_symbols();
  find_loose_sizes();
  if (option("FLAMBEAU_PROFILE") == "1")
    profile_ = std::make_unique<std::vector<std::atomic<int64_t>>>(steps_.size());
  if (options_.runner != KernelRunner::Native) return;
  auto compiled = runtime_.compile(kernels, program_.device);
  size_t at = 0;
  for (size_t k = 0; k < steps_.size(); ++k)
    if (std::holds_alternative<KernelStep>(program_.steps[k])) steps_[k].kernel = compiled[at++];
}

void Executable::find_layout_symbols() {
  std::unordered_set<sym::Expr> found;
  const auto note = [&](const sym::Expr& e) {
    for (const sym::Expr& s : sym::symbols_of(e)) found.insert(s);
  };
  const auto note_all = [&](const auto& list) {
    for (const auto& e : list) note(e);
  };
  for (const ProgramBuffer& b : program_.buffers) {
    note(b.elements);
    note(b.offset);
    note_all(b.sizes);
    note_all(b.strides);
  }
  for (const loop::ProgramOutput& o : program_.outputs) {
    if (o.kind != loop::ProgramOutput::Kind::Tensor) continue;
    for (SymInt s : o.spec.sizes) note(s.expr());
    for (SymInt s : o.spec.strides) note(s.expr());
    note(o.spec.offset.expr());
  }
  for (const loop::Step& s : program_.steps)
    if (const auto* l = std::get_if<LibraryStep>(&s))
      for (const Value& v : l->args) {
        if (v.tag() == Value::Tag::Int) note(v.sym_int().expr());
        if (v.tag() == Value::Tag::IntList)
          for (SymInt i : v.ints()) note(i.expr());
      }
  for (size_t k = 0; k < program_.symbols.size(); ++k)
    if (found.contains(program_.symbols[k].symbol)) layout_symbols_.push_back(static_cast<int>(k));
}

void Executable::find_loose_sizes() {
  std::unordered_set<sym::Expr> known;
  for (int k : layout_symbols_) known.insert(program_.symbols[static_cast<size_t>(k)].symbol);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const auto* k = std::get_if<KernelStep>(&program_.steps[s]);
    if (!k) continue;
    for (size_t n = 0; n < k->kernel->sizes.size(); ++n) {
      const sym::Expr& e = k->kernel->sizes[n];
      if (!std::ranges::all_of(sym::symbols_of(e), [&](const sym::Expr& x) { return known.contains(x); }))
        steps_[s].loose.emplace_back(static_cast<int>(n), loose_.add(e));
    }
    steps_[s].is_variable = steps_[s].is_variable || !steps_[s].loose.empty();
  }
}

// The slowest steps, on standard error.
void Executable::print_profile() const {
  std::vector<std::pair<int64_t, size_t>> order;
  int64_t total = 0;
  for (size_t s = 0; s < steps_.size(); ++s) {
    order.emplace_back((*profile_)[s].load(), s);
    total += order.back().first;
  }
  std::sort(order.rbegin(), order.rend());
  fmt::print(stderr, "flambeau: {}: {:.3f} ms in {} steps\n", program_.name, static_cast<double>(total) / 1e6,
             steps_.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const auto& [time, s] = order[k];
    const auto* kernel = std::get_if<KernelStep>(&program_.steps[s]);
    fmt::print(stderr, "  {:10.3f} ms  step {:4} {}\n", static_cast<double>(time) / 1e6, s,
               kernel ? kernel->kernel->name : std::get<LibraryStep>(program_.steps[s]).op->name());
  }
}

Executable::~Executable() {
  if (profile_) print_profile();
  for (SizePlan* p = plans_.load(); p;) {
    SizePlan* next = p->next;
    delete p;
    p = next;
  }
}

int Executable::kernel_count() const {
  return static_cast<int>(
      std::count_if(program_.steps.begin(), program_.steps.end(),
                    [](const loop::Step& s) { return std::holds_alternative<KernelStep>(s); }));
}

// Temporaries that live at different times share memory: each takes the lowest gap among those that live with
// it.
void Executable::place_temporaries(SizePlan& p) const {
  const size_t count = program_.buffers.size();
  std::vector<int> first(count, -1), last(count, -1);
  for (size_t s = 0; s < steps_.size(); ++s) {
    auto touch = [&](int b) {
      if (program_.buffers[b].kind == ProgramBuffer::Kind::View) b = program_.buffers[b].index;
      if (first[b] < 0) first[b] = static_cast<int>(s);
      last[b] = static_cast<int>(s);
    };
    for (int b : steps_[s].buffers) touch(b);
    for (int b : steps_[s].operands) touch(b);
    for (int b : steps_[s].results) touch(b);
  }
  p.temporary_offset.assign(count, -1);
  struct Block {
    int64_t begin, end;
    int last;
  };
  std::vector<Block> live;  // by begin
  std::vector<int> order;
  for (size_t b = 0; b < count; ++b)
    if (program_.buffers[b].kind == ProgramBuffer::Kind::Temporary && first[b] >= 0)
      order.push_back(static_cast<int>(b));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return first[a] < first[b]; });
  for (int b : order) {
    std::erase_if(live, [&](const Block& x) { return x.last < first[b]; });
    const int64_t bytes = p.values[buffers_[b].elements] * size_of(program_.buffers[b].dtype);
    const int64_t size = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    // The tightest gap that fits.
    int64_t at = 0, best = -1, best_gap = 0;
    size_t where = live.size(), best_where = 0;
    for (size_t k = 0; k < live.size(); ++k) {
      const int64_t gap = live[k].begin - at;
      if (gap >= size && (best < 0 || gap < best_gap)) best = at, best_gap = gap, best_where = k;
      at = std::max(at, live[k].end);
    }
    if (best < 0) best = at, best_where = where;
    live.insert(live.begin() + static_cast<std::ptrdiff_t>(best_where), {best, best + size, last[b]});
    p.temporary_offset[b] = best;
    p.arena_bytes = std::max(p.arena_bytes, best + size);
  }
}

void Executable::prepare_library(SizePlan& p) const {
  p.calls.resize(steps_.size());
  auto layout = [&](int b) {
    OperandLayout l;
    l.dtype = program_.buffers[b].dtype;
    for (int e : buffers_[b].sizes) l.sizes.push_back(p.values[e]);
    for (int e : buffers_[b].strides) l.strides.push_back(p.values[e]);
    return l;
  };
  auto number = [&](SymInt s) {
    // add() is a look-up here: the entry exists since the program was compiled.
    return s.is_symbolic() ? SymInt(p.values[const_cast<ExpressionTable&>(table_).add(s.expr())]) : s;
  };
  for (size_t s = 0; s < steps_.size(); ++s) {
    const auto* l = std::get_if<LibraryStep>(&program_.steps[s]);
    if (!l) continue;
    std::vector<OperandLayout> operands, results;
    for (int b : steps_[s].operands) operands.push_back(layout(b));
    for (int b : steps_[s].results) results.push_back(layout(b));
    std::vector<Value> args;
    for (const Value& v : steps_[s].args) {
      if (v.tag() == Value::Tag::Int) {
        args.push_back(number(v.sym_int()));
      } else if (v.tag() == Value::Tag::IntList) {
        Sizes list;
        for (SymInt i : v.ints()) list.push_back(number(i));
        args.push_back(list);
      } else {
        args.push_back(v);
      }
    }
    p.calls[s] = runtime_.prepare({*l->op, args, operands, results}, program_.device);
  }
}

// Raises where the bytes of a buffer leave int64: its elements have been counted without a check.
void Executable::check_bytes(const SizePlan& p) const {
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const BufferEntries& e = buffers_[b];
    __int128 last = 0;
    bool empty = false;
    for (size_t d = 0; d < e.sizes.size(); ++d) {
      empty |= p.values[e.sizes[d]] == 0;
      last += static_cast<__int128>(p.values[e.sizes[d]] - 1) * p.values[e.strides[d]];
    }
    const __int128 bytes = (last + 1) * size_of(program_.buffers[b].dtype);
    if (empty || bytes <= std::numeric_limits<int64_t>::max()) continue;
    Sizes sizes, strides;
    for (int k : e.sizes) sizes.push_back(p.values[k]);
    for (int k : e.strides) strides.push_back(p.values[k]);
    FL_RAISE(RuntimeError, "Storage size calculation overflowed with sizes={} and strides={}",
             to_string(sizes), to_string(strides));
  }
}

std::unique_ptr<Executable::SizePlan> Executable::make_plan(std::vector<int64_t> symbols) const {
  auto p = std::make_unique<SizePlan>();
  table_.evaluate(symbols, p->values);
  check_bytes(*p);
  for (int k : layout_symbols_) p->key.push_back(symbols[static_cast<size_t>(k)]);
  for (const CompiledStep& s : steps_) {
    std::vector<int64_t> sizes;
    for (int e : s.sizes) sizes.push_back(p->values[e]);
    p->kernel_sizes.push_back(std::move(sizes));
  }
  place_temporaries(*p);
  prepare_library(*p);
  if (options_.record) p->recorded = std::make_unique<RecordedRuns>(*this);
  return p;
}

const Executable::SizePlan& Executable::plan(std::span<const int64_t> symbols,
                                             std::unique_ptr<SizePlan>& unshared) const {
  const auto fits = [&](const SizePlan& p) {
    for (size_t k = 0; k < layout_symbols_.size(); ++k)
      if (symbols[static_cast<size_t>(layout_symbols_[k])] != p.key[k]) return false;
    return true;
  };
  for (SizePlan* p = plans_.load(std::memory_order_acquire); p; p = p->next)
    if (fits(*p)) return *p;
  auto made = make_plan({symbols.begin(), symbols.end()});
  if (plan_count_.fetch_add(1) >= kKeptPlans) {
    unshared = std::move(made);
    return *unshared;
  }
  SizePlan* p = made.release();
  p->next = plans_.load(std::memory_order_relaxed);
  while (!plans_.compare_exchange_weak(p->next, p, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return *p;
}

std::vector<Value> Executable::run(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                                   std::span<const Tensor> targets) const {
  runtime_.enter(program_.device);
  std::unique_ptr<SizePlan> unshared;
  SmallVector<int64_t, 16> symbols;
  for (const SymbolSource& s : program_.symbols) symbols.push_back(symbol_value(s, inputs, numbers));
  const SizePlan& p = plan({symbols.data(), symbols.size()}, unshared);
  Run run(p, inputs, targets, program_.buffers.size(), static_cast<size_t>(loose_.size()));
  loose_.evaluate({symbols.data(), symbols.size()}, run.loose.data());
  if (p.recorded && !unshared)
    if (auto out = p.recorded->run(run)) return std::move(*out);
  place(run);
  launch(run);
  return results(run);
}

// Addresses of buffers that have none yet.
void Executable::place(Run& run) const {
  const SizePlan& p = run.plan;
  if (p.arena_bytes > 0 && !run.arena) run.arena = make_ref<Storage>(p.arena_bytes, program_.device);
  // Outputs that the caller gives, then everything else.
  for (size_t o = 0; o < run.targets.size(); ++o)
    if (const int b = program_.outputs[o].buffer;
        run.targets[o].defined() && program_.buffers[b].kind == ProgramBuffer::Kind::Output)
      run.address[b] = static_cast<char*>(run.targets[o].data());
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program_.buffers[b];
    const int64_t size = size_of(buffer.dtype);
    char*& address = run.address[b];
    if (address) continue;
    switch (buffer.kind) {
      case ProgramBuffer::Kind::Input: {
        const Tensor& input = run.inputs[buffer.index];
        if (buffer.by_value || input.device() == program_.device) {
          address = static_cast<char*>(input.data());
        } else {
          run.brought.push_back(moved(input, input.dtype(), program_.device));
          address = static_cast<char*>(run.brought.back().data());
        }
        break;
      }
      case ProgramBuffer::Kind::Output:
        run.made[b] = make_ref<Storage>(p.values[buffers_[b].elements] * size, program_.device);
        address = static_cast<char*>(run.made[b]->data());
        break;
      case ProgramBuffer::Kind::Temporary:
        if (p.temporary_offset[b] >= 0)
          address = static_cast<char*>(run.arena->data()) + p.temporary_offset[b];
        break;
      case ProgramBuffer::Kind::View:
        address = run.address[buffer.index] + p.values[buffers_[b].offset] * size;
        break;
    }
  }
}

// Calls f with the arguments of a kernel.
template <class F>
void Executable::with_arguments(const Run& run, size_t number, F&& f) const {
  const CompiledStep& step = steps_[number];
  SmallVector<void*, 16> pointers;
  for (int b : step.buffers) pointers.push_back(run.address[b]);
  std::span<const int64_t> sizes = run.plan.kernel_sizes[number];
  SmallVector<int64_t, 16> own;
  if (!step.loose.empty()) {
    own.assign(sizes.begin(), sizes.end());
    for (const auto& [n, entry] : step.loose)
      own[static_cast<size_t>(n)] = run.loose[static_cast<size_t>(entry)];
    sizes = {own.data(), own.size()};
  }
  f(std::span<void* const>(pointers.data(), pointers.size()), sizes);
}

void Executable::launch(const Run& run, const Recording* recording,
                        std::vector<VariableLaunch>* variable) const {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const CompiledStep& step = steps_[s];
    const StepTimer timer(profile_.get(), s);
    if (std::holds_alternative<KernelStep>(program_.steps[s])) {
      const int number = recording ? recording->launch_count() : 0;
      with_arguments(run, s, [&](std::span<void* const> pointers, std::span<const int64_t> sizes) {
        if (step.kernel)
          step.kernel->launch({pointers.data(), sizes.data(), nullptr});
        else
          loop::interpret(*std::get<KernelStep>(program_.steps[s]).kernel, pointers, sizes, {});
      });
      if (recording && step.is_variable && recording->launch_count() > number)
        variable->push_back({number, s});
      continue;
    }
    SmallVector<void*, 8> operands, results;
    for (int b : step.operands) operands.push_back(run.address[b]);
    for (int b : step.results) results.push_back(run.address[b]);
    run.plan.calls[s](operands.data(), results.data());
  }
}

void Executable::change(const Run& run, const VariableLaunch& v, Recording& recording) const {
  with_arguments(run, v.step, [&](std::span<void* const> pointers, std::span<const int64_t> sizes) {
    recording.change(v.number, {pointers.data(), sizes.data(), nullptr});
  });
}

std::vector<Value> Executable::results(const Run& run) const {
  const SizePlan& p = run.plan;
  std::vector<Value> out;
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    const loop::ProgramOutput& output = program_.outputs[o];
    const OutputEntries& e = outputs_[o];
    if (output.kind == loop::ProgramOutput::Kind::None) {
      out.emplace_back();
    } else if (output.kind == loop::ProgramOutput::Kind::Number) {
      out.emplace_back(run.loose[static_cast<size_t>(e.number)]);
    } else if (o < run.targets.size() && run.targets[o].defined()) {
      out.emplace_back(run.targets[o]);
    } else {
      TensorSpec spec;
      spec.dtype = output.spec.dtype;
      spec.device = program_.device;
      for (int k : e.sizes) spec.sizes.push_back(p.values[k]);
      for (int k : e.strides) spec.strides.push_back(p.values[k]);
      spec.offset = p.values[e.offset];
      const ProgramBuffer& buffer = program_.buffers[output.buffer];
      if (buffer.kind == ProgramBuffer::Kind::Input) {
        const Tensor& input = run.inputs[buffer.index];
        spec.offset += input.offset();
        spec.device = input.device();
        out.emplace_back(Tensor(spec, input.storage()));
      } else {
        const Tensor result(spec, run.made[output.buffer]);
        out.emplace_back(output.spec.device == spec.device ? result
                                                           : moved(result, spec.dtype, output.spec.device));
      }
    }
  }
  return out;
}

int64_t Executable::bytes_moved(const std::function<int64_t(const sym::Expr&)>& size) const {
  std::vector<int64_t> symbols, values;
  for (const SymbolSource& s : program_.symbols) symbols.push_back(size(s.symbol));
  table_.evaluate(symbols, values);
  int64_t bytes = 0;
  for (const CompiledStep& s : steps_)
    for (const auto* list : {&s.buffers, &s.operands, &s.results})
      for (int b : *list) bytes += values[buffers_[b].elements] * size_of(program_.buffers[b].dtype);
  return bytes;
}

}  // namespace fl::runtime
