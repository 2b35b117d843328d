// What the forward graph saves for the backward graph.
#include "flambeau/aot/partition.h"

#include <gtest/gtest.h>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/ops/functions.h"
#include "programs.h"
#include "tests/autograd/set_up.h"

namespace fl::aot {
namespace {

using fl::testing::leaf;
using fl::testing::ramp;

std::shared_ptr<CompiledFunction> compiled(trace::Callable f, const Tensors& inputs,
                                           CompileOptions options = {}) {
  fl::testing::set_up();
  auto c = CompiledFunction::make(std::move(f), inputs, interpreted, std::move(options));
  graph::verify(c->forward_graph());
  graph::verify(c->backward_graph());
  return c;
}

TEST(Partition, PointwiseChainIsComputedAgainFromItsInput) {
  auto c = compiled([](const Tensors& a) { return Tensors{sin(exp(cos(tanh(a[0]))))}; }, {leaf(ramp({16}))});
  EXPECT_EQ(c->partition().saved_bytes, 0);
  ASSERT_EQ(c->partition().saved.size(), 1u);
  EXPECT_EQ(c->partition().saved[0].output, -1);
}

TEST(Partition, WithoutRecomputationEverythingReadIsSaved) {
  CompileOptions o;
  o.partition.recompute = false;
  auto c =
      compiled([](const Tensors& a) { return Tensors{sin(exp(cos(tanh(a[0]))))}; }, {leaf(ramp({16}))}, o);
  EXPECT_GT(c->partition().saved_bytes, 0);
}

TEST(Partition, ChangedInputIsCopied) {
  auto c = compiled(
      [](const Tensors& a) {
        const Tensor y = exp(add(a[0], a[1]));
        add.in_place(a[1], 1.0);
        return Tensors{y};
      },
      {leaf(ramp({16})), ramp({16})});
  for (const SavedValue& s : c->partition().saved)
    EXPECT_TRUE(s.output >= 0 || c->forward_graph().node(s.input).name != "arg1");
}

TEST(Partition, SizesOfTheBackwardGraphAreItsInputs) {
  CompileOptions o;
  o.trace.dynamic = true;
  auto c = compiled([](const Tensors& a) { return Tensors{view(sin(a[0]), {a[0].size(0) * a[0].size(1)})}; },
                    {leaf(ramp({4, 5}))}, o);
  EXPECT_GT(c->partition().saved_numbers, 0);
}

TEST(Partition, FunctionWithoutGradientsHasForwardOnly) {
  auto c = compiled([](const Tensors& a) { return Tensors{sin(a[0])}; }, {ramp({4})});
  EXPECT_FALSE(c->joint().differentiable());
  EXPECT_EQ(c->backward_graph().call_count(), 0);
}

}  // namespace
}  // namespace fl::aot
