// Capture of C++ functions.
#include "flambeau/trace/trace.h"

#include <gtest/gtest.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/base/error.h"
#include "flambeau/ops/functions.h"
#include "tests/autograd/set_up.h"

namespace fl::trace {
namespace {

Tensor ones(std::vector<int64_t> sizes) {
  testing::set_up();
  Sizes s(sizes.begin(), sizes.end());
  return full(s, 1.0);
}

std::string traced(const Callable& f, const Tensors& inputs, const TraceOptions& options = {}) {
  testing::set_up();
  TracedProgram p = trace(f, inputs, options);
  graph::verify(p.graph);
  return graph::to_text(p.graph);
}

TEST(Trace, RecordsBelowAutogradAndComposites) {
  EXPECT_EQ(traced([](const Tensors& a) { return Tensors{mul(sin(a[0]), 2.0)}; }, {ones({2, 3})}),
            "graph(%arg0: f32[2, 3]):\n"
            "  %sin: f32[2, 3] = sin(%arg0)\n"
            "  %mul: f32[2, 3] = mul.Tensor(%sin, 2.0)\n"
            "  return %mul\n");
}

TEST(Trace, SizesBecomeSymbolsExceptOne) {
  EXPECT_EQ(traced(
                [](const Tensors& a) {
                  return Tensors{view(a[0], {a[0].size(0) * a[0].size(1), 1})};
                },
                {ones({4, 6, 1})}, {.dynamic = true}),
            "graph(%arg0: f32[s0, s1, 1]) where s0=4, s1=6:\n"
            "  %view: f32[s0*s1, 1] = view(%arg0, [s0*s1, 1])\n"
            "  return %view\n");
}

TEST(Trace, BranchOnSizeIsAGuard) {
  testing::set_up();
  TracedProgram p =
      trace([](const Tensors& a) { return Tensors{a[0].size(0) > SymInt(3) ? sin(a[0]) : cos(a[0])}; },
            {ones({5})}, {.dynamic = true});
  ASSERT_EQ(p.guards().size(), 1u);
  EXPECT_EQ(p.guards()[0].str(), "3 < s0");
  EXPECT_EQ(why_not(p, {ones({9})}), "");
  EXPECT_NE(why_not(p, {ones({2})}).find("3 < s0"), std::string::npos) << why_not(p, {ones({2})});
}

TEST(Trace, AnEqualityOfAnExpressionIsAsked) {
  testing::set_up();
  TracedProgram p =
      trace([](const Tensors& a) { return Tensors{a[0].size(0) % 2 == SymInt(0) ? sin(a[0]) : cos(a[0])}; },
            {ones({6})}, {.dynamic = true});
  EXPECT_EQ(why_not(p, {ones({8})}), "");
  EXPECT_NE(why_not(p, {ones({9})}).find("(s0 % 2) == 0"), std::string::npos) << why_not(p, {ones({9})});
}

TEST(Trace, SizesOfOneBecomeNumbers) {
  EXPECT_EQ(traced([](const Tensors& a) { return Tensors{slice(a[0], 0, 0, a[0].size(0) / SymInt(3), 1)}; },
                   {ones({4})}, {.dynamic = true}),
            "graph(%arg0: f32[s0]) where s0=4:\n"
            "  %slice: f32[1] = slice.Tensor(%arg0, 0, 0, 1, 1)\n"
            "  return %slice\n");
}

TEST(Trace, GuardsNameTheInput) {
  testing::set_up();
  const Tensor x = ones({5}), y = ones({5});
  TracedProgram p = trace([](const Tensors& a) { return Tensors{mul(a[0], a[1])}; }, {x, y});
  EXPECT_EQ(why_not(p, {x, y}), "");
  EXPECT_NE(why_not(p, {x, ones({6})}).find("arg1"), std::string::npos);
  EXPECT_NE(why_not(p, {x, _to_copy(y, DType::Float64)}).find("float64"), std::string::npos);
  EXPECT_NE(why_not(p, {x, x}).find("arg1"), std::string::npos);
  Tensor z = ones({5});
  z.set_requires_grad(true);
  EXPECT_NE(why_not(p, {z, y}).find("requires_grad"), std::string::npos);
  NoGradGuard no_grad;
  EXPECT_NE(why_not(p, {x, y}), "");
}

TEST(Trace, MutationIsRecordedAsItIs) {
  EXPECT_EQ(traced(
                [](const Tensors& a) {
                  add.in_place(select(a[0], 0, 1), a[1]);
                  return Tensors{a[0]};
                },
                {ones({2, 3}), ones({3})}),
            "graph(%arg0: f32[2, 3], %arg1: f32[3]):\n"
            "  %select: f32[3](offset=3) = select.int(%arg0, 0, 1)\n"
            "  %add_: f32[3](offset=3) = add_.Tensor(%select, %arg1, 1)\n"
            "  return %arg0\n");
}

TEST(Trace, RealTensorsAreCaptured) {
  testing::set_up();
  const Tensor w = ones({3}), unused = ones({3});
  TracedProgram p = trace([&](const Tensors& a) { return Tensors{mul(a[0], w), add(w, 1.0)}; }, {ones({3})});
  ASSERT_EQ(p.captured.size(), 1u);
  EXPECT_TRUE(p.captured[0].tensor.is_same(w));
  EXPECT_EQ(graph::to_text(p.graph).substr(0, 46), "graph(%arg0: f32[3], %captured0: f32[3] captur");
}

TEST(Trace, ReadingElementsSaysWhatToDo) {
  testing::set_up();
  try {
    trace([](const Tensors& a) { return Tensors{mul(a[0], a[0].item().to_double())}; }, {ones({1})});
    FAIL();
  } catch (const UnsupportedError&) {
  }
}

TEST(Trace, WholeStepLeavesRealGradientsAlone) {
  testing::set_up();
  Tensor w = ones({3});
  w.set_requires_grad(true);
  const Tensor old_grad = ones({3});
  auto step = [&](const Tensors& a) {
    w.set_grad({});
    backward(mul(w, a[0]), full({3}, 1.0));
    NoGradGuard no_grad;
    add.in_place(w, w.grad(), -0.5);
    return Tensors{};
  };
  w.set_grad(old_grad);
  TracedProgram p = trace(step, {ones({3})});
  EXPECT_TRUE(w.grad().is_same(old_grad));
  EXPECT_EQ(w.to_vector<double>(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(w.storage()->version(), 0);
  ASSERT_EQ(p.grad_effects.size(), 1u);
  EXPECT_EQ(p.grad_effects[0].target.kind, Outer::Kind::Captured);
  EXPECT_GE(p.grad_effects[0].output, 0);
  EXPECT_TRUE(p.grad_assumptions.empty());
  EXPECT_TRUE(p.captured[0].written);
}

TEST(Trace, RandomNumbersHaveASymbolicOffset) {
  testing::set_up();
  TracedProgram p = trace([](const Tensors&) { return Tensors{rand({2, 3}), rand({4})}; }, {});
  ASSERT_EQ(p.graph.random.size(), 1u);
  EXPECT_EQ(p.graph.random[0].increment.guard_int(), 10);
  manual_seed(3);
  const Tensors eager{rand({2, 3}), rand({4})};
  manual_seed(3);
  const std::vector<Value> got = graph::interpret(p.graph, InputPlan(p).values(p, {}));
  EXPECT_EQ(got[0].tensor().to_vector<double>(), eager[0].to_vector<double>());
  EXPECT_EQ(got[1].tensor().to_vector<double>(), eager[1].to_vector<double>());
}

}  // namespace
}  // namespace fl::trace
