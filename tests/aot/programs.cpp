#include "programs.h"

#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"
#include "tests/autograd/set_up.h"

namespace fl::testing {

Tensor ramp(std::vector<int64_t> sizes, double start, double step, DType dtype) {
  set_up();
  Sizes s;
  int64_t n = 1;
  for (int64_t i : sizes) {
    s.push_back(i);
    n *= i;
  }
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(start + step * static_cast<double>(i));
  const Tensor t = tensor_from(v, s);
  return dtype == DType::Float64 ? t : _to_copy(t, dtype);
}

namespace {
// The leaves that a run made, whose gradients are compared.
Tensors& made_leaves() {
  static Tensors leaves;
  return leaves;
}
}  // namespace

Tensor leaf(Tensor t) {
  t.set_requires_grad(true);
  made_leaves().push_back(t);
  return t;
}
Tensor interior(const Tensor& t) { return mul(t, 1.0); }

std::vector<double> elements(const Tensor& t) {
  return t.defined() ? t.to_vector<double>() : std::vector<double>();
}

namespace {

/// What one run did, as text and numbers.
struct Seen {
  std::vector<std::string> facts;
  std::vector<std::vector<double>> values;
};

std::string flags(const Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{}{} strides {} requires_grad {} leaf {}", name(t.dtype()), to_string(t.sizes()),
                     to_string(t.strides()), t.requires_grad(), t.is_leaf());
}

// Which of the earlier tensors a tensor is, or shares memory with.
std::string relation(const Tensor& t, const Tensors& others) {
  std::string text;
  for (size_t i = 0; i < others.size(); ++i) {
    if (!t.defined() || !others[i].defined()) continue;
    if (t.is_same(others[i]))
      text += fmt::format(" is {}", i);
    else if (t.storage() == others[i].storage())
      text += fmt::format(" shares {} at {}", i, t.offset() - others[i].offset());
  }
  return text;
}

void look_at(Seen& s, const Tensors& inputs, const Tensors& leaves, const Tensors& outputs) {
  Tensors known = inputs;
  for (const Tensor& t : outputs) {
    s.facts.push_back("output " + flags(t) + relation(t, known));
    s.values.push_back(elements(t));
    known.push_back(t);
  }
  for (const Tensor& t : inputs) {
    s.facts.push_back("input " + flags(t));
    s.values.push_back(elements(t));
  }
  Tensors heads, grads;
  for (const Tensor& t : outputs)
    if (t.defined() && t.requires_grad()) heads.push_back(t);
  for (const Tensor& t : inputs)
    if (t.requires_grad() && !t.is_leaf()) heads.push_back(t);
  for (const Tensor& t : heads) {
    Tensor g = full(t.sizes(), 1.0, t.dtype());
    grads.push_back(mul(g, 0.5 + static_cast<double>(grads.size())));
  }
  if (!heads.empty()) backward(heads, grads);
  for (const Tensor& t : leaves) {
    s.facts.push_back("grad " + flags(t.grad()));
    s.values.push_back(elements(t.grad()));
  }
}

Seen run(const trace::Callable& f, const std::function<Tensors()>& make) {
  Seen s;
  manual_seed(7);
  made_leaves().clear();
  const Tensors inputs = make();
  const Tensors leaves = made_leaves();
  const Tensors outputs = f(inputs);
  look_at(s, inputs, leaves, outputs);
  return s;
}

}  // namespace

bool eager_succeeds(const Program& p) {
  try {
    run(p.function, p.inputs);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void expect_same_as_eager(const Program& p) {
  set_up();
  SCOPED_TRACE(p.name);
  const auto& later = p.later_inputs ? p.later_inputs : p.inputs;
  const Seen eager = run(p.function, later);
  auto compiled = aot::CompiledFunction::make(p.function, p.inputs(), aot::interpreted, p.options);
  // The second run shows whether the first left anything behind.
  for (int round = 0; round < 2; ++round) {
    const Seen seen = run([&](const Tensors& args) { return (*compiled)(args); }, later);
    EXPECT_EQ(seen.facts, eager.facts) << graph::to_text(compiled->joint().program.graph);
    ASSERT_EQ(seen.values.size(), eager.values.size());
    for (size_t i = 0; i < seen.values.size(); ++i) {
      ASSERT_EQ(seen.values[i].size(), eager.values[i].size());
      for (size_t j = 0; j < seen.values[i].size(); ++j)
        EXPECT_NEAR(seen.values[i][j], eager.values[i][j], 1e-5) << "value " << i << ", element " << j;
    }
  }
}

}  // namespace fl::testing
