// Functionalisation from text to text.
#include "flambeau/aot/functionalise.h"

#include <gtest/gtest.h>

#include "flambeau/base/error.h"
#include "flambeau/graph/analysis/purity.h"
#include "flambeau/graph/pass/eliminate_dead_code.h"
#include "flambeau/op/op.h"
#include "tests/autograd/set_up.h"

namespace fl::aot {
namespace {

FunctionalInfo expect_functional(const std::string& before, const std::string& after) {
  testing::set_up();
  graph::Graph g = graph::parse_graph(before);
  FunctionalInfo info = functionalise(g);
  graph::eliminate_dead_code(g);
  graph::verify(g);
  EXPECT_TRUE(graph::is_functional(g));
  EXPECT_EQ(graph::to_text(g), after);
  return info;
}

TEST(Functionalise, ChangedInputBecomesAnOutput) {
  const FunctionalInfo info = expect_functional(
      "graph(%x: f32[2], %y: f32[2]):\n"
      "  %add_: f32[2] = add_.Tensor(%x, %y, 1)\n"
      "  %sin: f32[2] = sin(%x)\n"
      "  return %sin\n",
      "graph(%x: f32[2], %y: f32[2]):\n"
      "  %add: f32[2] = add.Tensor(%x, %y, 1)\n"
      "  %sin: f32[2] = sin(%add)\n"
      "  return %sin, %add\n");
  ASSERT_EQ(info.mutations.size(), 1u);
  EXPECT_EQ(info.mutations[0].output, 1);
}

TEST(Functionalise, ChangeOfViewIsWrittenThrough) {
  expect_functional(
      "graph(%x: f32[2, 3], %y: f32[3]):\n"
      "  %clone: f32[2, 3] = clone(%x, None)\n"
      "  %select: f32[3](offset=3) = select.int(%clone, 0, 1)\n"
      "  %add_: f32[3](offset=3) = add_.Tensor(%select, %y, 1)\n"
      "  %sin: f32[2, 3] = sin(%clone)\n"
      "  %cos: f32[3] = cos(%select)\n"
      "  return %sin, %cos\n",
      "graph(%x: f32[2, 3], %y: f32[3]):\n"
      "  %clone: f32[2, 3] = clone(%x, None)\n"
      "  %select: f32[3](offset=3) = select.int(%clone, 0, 1)\n"
      "  %add: f32[3] = add.Tensor(%select, %y, 1)\n"
      "  %select_scatter: f32[2, 3] = select_scatter(%clone, %add, 0, 1)\n"
      "  %sin: f32[2, 3] = sin(%select_scatter)\n"
      "  %cos: f32[3] = cos(%add)\n"
      "  return %sin, %cos\n");
}

TEST(Functionalise, ViewsAreMadeAgainWhereRead) {
  expect_functional(
      "graph(%x: f32[2, 3]):\n"
      "  %clone: f32[2, 3] = clone(%x, None)\n"
      "  %permute: f32[3, 2](strides=[1, 3]) = permute(%clone, [1, 0])\n"
      "  %select: f32[2](strides=[3]) = select.int(%permute, 0, 0)\n"
      "  %mul_: f32[2, 3] = mul_.Tensor(%clone, 2)\n"
      "  %sin: f32[2] = sin(%select)\n"
      "  return %sin\n",
      "graph(%x: f32[2, 3]):\n"
      "  %clone: f32[2, 3] = clone(%x, None)\n"
      "  %mul: f32[2, 3] = mul.Tensor(%clone, 2)\n"
      "  %permute_1: f32[3, 2](strides=[1, 3]) = permute(%mul, [1, 0])\n"
      "  %select_1: f32[2](strides=[3]) = select.int(%permute_1, 0, 0)\n"
      "  %sin: f32[2] = sin(%select_1)\n"
      "  return %sin\n");
}

// The changed input is a value without gaps: so are all views of it, at every step.
TEST(Functionalise, ViewsOfAChangedInputHaveTheLayoutOfItsNewValue) {
  expect_functional(
      "graph(%x: f32[2, 3](strides=[6, 2])):\n"
      "  %mul_: f32[2, 3](strides=[6, 2]) = mul_.Tensor(%x, 2)\n"
      "  %permute: f32[3, 2](strides=[2, 6]) = permute(%x, [1, 0])\n"
      "  %expand: f32[3, 2](strides=[2, 6]) = expand(%permute, [3, 2], False)\n"
      "  %view: f32[3, 1, 2](strides=[2, 6, 6]) = view(%expand, [3, 1, 2])\n"
      "  %sin: f32[3, 1, 2](strides=[1, 3, 3]) = sin(%view)\n"
      "  return %sin\n",
      "graph(%x: f32[2, 3](strides=[6, 2])):\n"
      "  %mul: f32[2, 3] = mul.Tensor(%x, 2)\n"
      "  %copy: f32[2, 3] = copy(%x, %mul, False)\n"
      "  %permute: f32[3, 2](strides=[1, 3]) = permute(%copy, [1, 0])\n"
      "  %expand: f32[3, 2](strides=[1, 3]) = expand(%permute, [3, 2], False)\n"
      "  %view: f32[3, 1, 2](strides=[1, 6, 3]) = view(%expand, [3, 1, 2])\n"
      "  %sin: f32[3, 1, 2](strides=[1, 6, 3]) = sin(%view)\n"
      "  return %sin, %copy\n");
}

TEST(Functionalise, OutputsOnOneMemoryAreReplayed) {
  const FunctionalInfo info = expect_functional(
      "graph(%x: f32[2, 3]):\n"
      "  %sin: f32[2, 3] = sin(%x)\n"
      "  %select: f32[3] = select.int(%sin, 0, 0)\n"
      "  %select_1: f32[3](offset=3) = select.int(%sin, 0, 1)\n"
      "  %alias: f32[2, 3] = alias(%x)\n"
      "  return %select, %select_1, %alias\n",
      "graph(%x: f32[2, 3]):\n"
      "  %sin: f32[2, 3] = sin(%x)\n"
      "  return None, None, None, %sin\n");
  EXPECT_EQ(info.outputs[0].kind, OutputRecipe::Kind::Output);
  EXPECT_EQ(info.outputs[1].output, 3);
  EXPECT_EQ(info.outputs[1].steps.size(), 1u);
  EXPECT_EQ(info.outputs[2].kind, OutputRecipe::Kind::Input);
}

TEST(Functionalise, OutFormWritesItsTargets) {
  expect_functional(
      "graph(%x: f32[2], %y: f32[2]):\n"
      "  %sin: f32[2] = sin.out(%x, %y)\n"
      "  %cos: f32[2] = cos(%y)\n"
      "  return %cos\n",
      "graph(%x: f32[2], %y: f32[2]):\n"
      "  %sin_1: f32[2] = sin(%x)\n"
      "  %cos: f32[2] = cos(%sin_1)\n"
      "  return %cos, %sin_1\n");
}

TEST(Functionalise, ResultTakesTheTargetsDType) {
  expect_functional(
      "graph(%x: f32[2], %y: f64[2]):\n"
      "  %add_: f32[2] = add_.Tensor(%x, %y, 1)\n"
      "  return %x\n",
      "graph(%x: f32[2], %y: f64[2]):\n"
      "  %add: f64[2] = add.Tensor(%x, %y, 1)\n"
      "  %copy: f32[2] = copy(%x, %add, False)\n"
      "  return None, %copy\n");
}

}  // namespace
}  // namespace fl::aot
