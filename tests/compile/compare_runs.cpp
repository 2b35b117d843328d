#include "compare_runs.h"

#include <cmath>
#include <limits>

#include "flambeau/autograd/autograd.h"
#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/graph/pipeline.h"
#include "flambeau/loop/program_file.h"
#include "flambeau/ops/functions.h"
#include "flambeau/runtime/executable.h"

namespace fl::testing {
namespace {

std::string describe(const Tensor& t) {
  if (!t.defined()) return "undefined";
  // Strides of dimensions that have no second element mean nothing.
  std::string strides;
  const bool empty = t.numel().same_as(0);
  for (int d = 0; d < t.dim(); ++d)
    strides += empty || t.sizes()[d].same_as(1) ? " ." : fmt::format(" {}", t.strides()[d]);
  return fmt::format("{}{} strides{} requires_grad {}", name(t.dtype()), to_string(t.sizes()), strides,
                     t.requires_grad());
}

std::string relation(const Tensor& t, const std::vector<Tensor>& others) {
  std::string text;
  for (size_t i = 0; i < others.size(); ++i) {
    if (t.is_same(others[i]))
      text += fmt::format(" is {}", i);
    else if (t.storage() == others[i].storage())
      text += fmt::format(" shares {} at {}", i, t.offset() - others[i].offset());
  }
  return text;
}

double tolerance_of(DType d) {
  switch (d) {
    case DType::BFloat16:
      return 3e-2;
    case DType::Float16:
      return 4e-3;
    case DType::Float64:
      return 1e-11;
    default:
      return 2e-5;
  }
}

void add_value(Run& r, std::string name, const Tensor& t, bool exact, double least = 0) {
  r.names.push_back(std::move(name));
  r.values.push_back(t.defined() ? t.to_vector<double>() : std::vector<double>());
  r.exact.push_back(exact);
  r.tolerance.push_back(std::max(least, t.defined() ? tolerance_of(t.dtype()) : 0.0));
  r.rounding.push_back(0);
}

// Weights of a linear function, not symmetric.
Tensor weights(const Tensor& like) {
  std::vector<double> w(static_cast<size_t>(like.numel().expect_int()));
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.25 + 0.125 * static_cast<double>(i % 7);
  return _to_copy(tensor_from(w, like.sizes()), like.dtype());
}

bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// Losses of precision in one value show in all that is computed from it.
double loosest(const RandomProgram& p, const std::vector<Tensor>& outputs) {
  double out = 0;
  for (const ProgramInput& i : p.inputs)
    out = std::max(
        out, tolerance_of(i.dtype) *
                 (i.dtype == DType::Int64 || i.dtype == DType::Bool || i.dtype == DType::Int32 ? 0 : 1));
  for (const ProgramStep& s : p.steps)
    for (const Value& v : s.args)
      if (v.tag() == Value::Tag::DType && is_floating(v.dtype()))
        out = std::max(out, tolerance_of(v.dtype()));
  for (const Tensor& t : outputs)
    if (is_floating(t.dtype())) out = std::max(out, tolerance_of(t.dtype()));
  return out;
}

}  // namespace

Run observe(const RandomProgram& p, const Callable& f, int64_t n) {
  Run r;
  manual_seed(3);
  std::vector<Tensor> leaves;
  const std::vector<Tensor> inputs = make_inputs(p, n, &leaves);
  std::vector<Tensor> outputs;
  try {
    outputs = f(inputs);
    const double least = loosest(p, outputs);
    std::vector<Tensor> known = inputs;
    for (size_t k = 0; k < outputs.size(); ++k) {
      r.facts.push_back(fmt::format("output {}: {}{}", k, describe(outputs[k]), relation(outputs[k], known)));
      add_value(r, fmt::format("output {}", k), outputs[k], p.exact_outputs[k], least);
      known.push_back(outputs[k]);
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
      r.facts.push_back(fmt::format("input {}: {}", k, describe(inputs[k])));
      add_value(r, fmt::format("input {}", k), inputs[k], false, least);
    }
    if (!p.gradients) return r;
    std::vector<Tensor> heads, grads;
    for (const Tensor& t : outputs)
      if (t.requires_grad()) heads.push_back(t), grads.push_back(weights(t));
    if (heads.empty()) return r;
    backward(heads, grads);
    for (size_t k = 0; k < leaves.size(); ++k) {
      r.facts.push_back(fmt::format("gradient {}: {}", k, describe(leaves[k].grad())));
      add_value(r, fmt::format("gradient {}", k), leaves[k].grad(), false, least);
    }
  } catch (const Error& e) {
    r.error = typeid(e).name();
    r.message = e.message();
  }
  return r;
}

namespace {
bool all_zero(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double e) { return e == 0; });
}
}  // namespace

namespace {
// `most`: what is more, relative to the largest element, is another decision and no rounding.
void add_rounding(Run& eager, const Run& narrow, const Run& wide, double most) {
  if (!narrow.error.empty() || !wide.error.empty() || narrow.values.size() != eager.values.size() ||
      wide.values.size() != eager.values.size())
    return;
  for (size_t k = 0; k < eager.values.size(); ++k) {
    const auto &x = narrow.values[k], &y = wide.values[k];
    if (x.size() != y.size()) continue;
    double largest = 1;
    for (double e : y)
      if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
    for (size_t i = 0; i < x.size(); ++i)
      if (const double d = 4 * std::abs(x[i] - y[i]); std::isfinite(d) && d <= most * largest)
        eager.rounding[k] = std::max(eager.rounding[k], d);
  }
}

Run eager_run(const RandomProgram& p, int64_t n) {
  return observe(
      p, [&p](const Tensors& inputs) { return run_program(p, inputs); }, n);
}

// The largest total of absolute values that a reduction goes over: sums of them are as exact as these allow.
double largest_total(const RandomProgram& p, int64_t n) {
  std::vector<Tensor> values = make_inputs(p, n);
  double largest = 0;
  for (const ProgramStep& s : p.steps) {
    if (s.op->is(Tag::Reduction) && s.args[0].tag() == Value::Tag::GraphRef)
      if (const Tensor& x = values[s.args[0].graph_ref().node]; is_floating(x.dtype())) {
        double total = 0;
        for (double e : x.to_vector<double>()) total += std::isfinite(e) ? std::abs(e) : 0;
        largest = std::max(largest, total);
      }
    run_step(s, values, n);
  }
  return largest;
}
}  // namespace

void measure_rounding(Run& eager, RandomProgram p, int64_t n) {
  add_rounding(eager, eager, eager_run(in_float64(p), n), std::numeric_limits<double>::infinity());
  const double total = eager.error.empty() ? largest_total(p, n) : 0;
  for (size_t k = 0; k < eager.values.size(); ++k)
    eager.rounding[k] = std::max(eager.rounding[k], eager.tolerance[k] / 20 * total);
  // One run may have been lucky.
  for (int other = 1; other <= 6; ++other) {
    for (ProgramInput& i : p.inputs) i.seed += 0x9e3779b97f4a7c15u;
    add_rounding(eager, eager_run(p, n), eager_run(in_float64(p), n), 1e-2);
  }
}

std::string difference(const Run& eager, const Run& compiled, bool* bits) {
  if (eager.error.empty() != compiled.error.empty())
    return fmt::format("raises '{}', eager '{}'", compiled.message, eager.message);
  if (!eager.error.empty()) return {};
  if (eager.facts.size() != compiled.facts.size()) return "other numbers of facts";
  // A changed input hands zero gradients on where eager mode has no path at all.
  auto zero_for_none = [&](size_t k) {
    return eager.facts[k] == eager.names[k] + ": undefined" && all_zero(compiled.values[k]);
  };
  for (size_t k = 0; k < eager.facts.size(); ++k)
    if (eager.facts[k] != compiled.facts[k] && !zero_for_none(k))
      return fmt::format("{}\n  eager {}", compiled.facts[k], eager.facts[k]);
  for (size_t k = 0; k < eager.values.size(); ++k) {
    const auto &x = eager.values[k], &y = compiled.values[k];
    if (zero_for_none(k)) continue;
    if (x.size() != y.size()) return eager.names[k] + " has another number of elements";
    double scale = 0;
    for (double e : x)
      if (std::isfinite(e)) scale = std::max(scale, std::abs(e));
    const double allowed = eager.tolerance[k] * std::max(1e-3, scale) + eager.rounding[k];
    for (size_t i = 0; i < x.size(); ++i) {
      if (same_bits(x[i], y[i])) continue;
      const bool close = x[i] == y[i] || std::abs(x[i] - y[i]) <= allowed;
      if (eager.exact[k] || !close)
        return fmt::format("{}: element {} is {}, eager {}", eager.names[k], i, y[i], x[i]);
      if (bits) *bits = true;
    }
  }
  return {};
}

void register_unfused_backend() {
  register_backend("unfused", [](const graph::Graph& original) -> GraphRunner {
    graph::Graph g = original;
    std::optional<sym::ShapeEnv::Scope> scope;
    if (g.shape_env) scope.emplace(g.shape_env.get());
    graph::decompose(g);
    graph::run_passes(g, graph::simplification_passes(), "unfused");
    if (g.shape_env) graph::simplify_symbols(g);
    // By way of a file.
    auto executable = std::make_shared<runtime::Executable>(
        loop::load_program(loop::save_program(loop::lower(g, {.fuse = false}))));
    std::vector<bool> numbers;
    for (int32_t id : g.inputs()) numbers.push_back(g.node(id).is_number());
    return [executable, numbers](const std::vector<Value>& inputs) {
      std::vector<Tensor> tensors;
      std::vector<int64_t> integers;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (numbers[i])
          integers.push_back(inputs[i].to_int());
        else
          tensors.push_back(inputs[i].tensor());
      }
      return executable->run(tensors, integers);
    };
  });
}

}  // namespace fl::testing
