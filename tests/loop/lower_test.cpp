// From graphs to programs: buffers, symbols, outputs and their text.
#include <gtest/gtest.h>

#include "flambeau/ops/functions.h"
#include "lowered.h"

namespace fl::loop {
namespace {

using testing::lowered;

TEST(Lower, Text) {
  const Program p = lowered([](const Tensors& a) { return Tensors{exp(mul(a[0], 2.0))}; }, {{6, 5}});
  EXPECT_EQ(p.str(),
            "program test\n"
            "  b0: f32[s0, s1] strides [s1, 1] in 0  # arg0\n"
            "  b1: f32[s0, s1] strides [s1, 1] out  # exp\n"
            "  kernel exp(b0, b1)\n"
            "  return b1\n");
}

TEST(Lower, SymbolsComeFromInputs) {
  const Program p = lowered([](const Tensors& a) { return Tensors{add(a[0], a[1])}; }, {{6, 5}, {5}});
  ASSERT_EQ(p.symbols.size(), 2u);
  EXPECT_EQ(p.symbols[0].symbol.str(), "s0");
  EXPECT_EQ(p.symbols[0].input, 0);
  EXPECT_EQ(p.symbols[0].dim, 0);
  EXPECT_EQ(p.symbols[1].dim, 1);
}

TEST(Lower, OutputsThatAreViewsOfOneBuffer) {
  const Program p = lowered(
      [](const Tensors& a) {
        const Tensor x = exp(a[0]);
        return Tensors{x, permute(x, {1, 0}), select(x, 0, 1)};
      },
      {{6, 5}});
  ASSERT_EQ(p.outputs.size(), 3u);
  EXPECT_EQ(p.outputs[0].buffer, p.outputs[1].buffer);
  EXPECT_EQ(p.outputs[0].buffer, p.outputs[2].buffer);
  EXPECT_EQ(p.outputs[2].spec.offset.str(), "s1");
}

TEST(Lower, ViewsOfInputsNeedNoKernel) {
  const Program p = lowered([](const Tensors& a) { return Tensors{permute(a[0], {1, 0})}; }, {{6, 5}});
  EXPECT_TRUE(p.steps.empty());
  EXPECT_EQ(p.buffers[static_cast<size_t>(p.outputs[0].buffer)].kind, ProgramBuffer::Kind::Input);
}

TEST(Lower, ScattersAreACopyAndStores) {
  const Program p = lowered(
      [](const Tensors& a) {
        return Tensors{scatter_add(a[0], 0, zeros({3, 5}, DType::Int64), a[1])};
      },
      {{6, 5}, {3, 5}});
  EXPECT_EQ(testing::kernel_count(p), 2) << p.str();
}

TEST(Lower, ManyTensorsAreJoinedByARoutine) {
  const auto joined = [](int count) {
    return lowered(
        [count](const Tensors& a) { return Tensors{exp(cat(Tensors(static_cast<size_t>(count), a[0])))}; },
        {{6, 5}});
  };
  EXPECT_EQ(testing::steps(joined(8)), "exp");
  EXPECT_EQ(testing::steps(joined(9)), "cat, exp");
}

TEST(Lower, LoopsOverTwoDimensionsOfMemoryAreTwoLoops) {
  // Heads side by side: the result's last dimension is two of each part's.
  const auto heads = [](const Tensors& a) {
    const auto beside = [](const Tensor& x) {
      const Sizes& s = x.sizes();
      return reshape(permute(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
    };
    return Tensors{cat({beside(a[0]), beside(mul(a[0], 2.0))}, 2)};
  };
  for (const bool fixed : {true, false}) {
    const graph::Graph g = testing::traced(heads, {{2, 4, 6, 16}}, !fixed);
    sym::ShapeEnv::Scope scope(g.shape_env.get());
    const Program p = lower(g, {.name = "test"});
    ASSERT_EQ(testing::kernel_count(p), 1) << p.str();
    const Kernel& k = *std::get<KernelStep>(p.steps[0]).kernel;
    EXPECT_EQ(k.str().find("//"), std::string::npos) << k.str();
    EXPECT_EQ(k.outer.back().size.str(), fixed ? "16" : "s3") << k.str();
  }
}

TEST(Lower, EqualGraphsGiveEqualPrograms) {
  auto f = [](const Tensors& a) { return Tensors{softmax(mul(a[0], 2.0), -1), sum_all(a[0])}; };
  EXPECT_EQ(lowered(f, {{6, 5}}).str(), lowered(f, {{6, 5}}).str());
}

}  // namespace
}  // namespace fl::loop
