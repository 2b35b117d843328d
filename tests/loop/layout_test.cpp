// Which values are laid out with channels last, and what their loops become.
#include <gtest/gtest.h>

#include "flambeau/ops/functions.h"
#include "lowered.h"

namespace fl::loop {
namespace {

bool every(const graph::Graph&, const graph::Node&) { return true; }
bool none(const graph::Graph&, const graph::Node&) { return false; }

Program laid_out(const trace::Callable& f, const std::vector<std::vector<int64_t>>& sizes,
                 LayoutRule rule = &every) {
  return lower(testing::traced(f, sizes, false), {.name = "test", .takes_channels_last = rule});
}
int channels_last(const Program& p) {
  int n = 0;
  for (const ProgramBuffer& b : p.buffers)
    n += b.kind == ProgramBuffer::Kind::Temporary && b.sizes.size() == 4 && b.strides[1].is_const(1) &&
         !b.strides[3].is_const(1);
  return n;
}
Tensor same(const Tensor& x, const Tensor& w) { return conv2d(x, w, Tensor(), {1, 1}, {1, 1}); }

// Two convolutions with the mean of each channel between them.
Tensors chain(const Tensors& a) {
  const Tensor x = same(a[0], a[1]);
  const Tensor centred = relu(sub(x, mean(x, Sizes{0, 2, 3}, true)));
  return {same(centred, a[2])};
}
const std::vector<std::vector<int64_t>> kChain{{2, 3, 9, 8}, {32, 3, 3, 3}, {16, 32, 3, 3}};

TEST(Layout, ImagesBetweenConvolutionsHaveChannelsLast) {
  const Program p = laid_out(chain, kChain);
  EXPECT_EQ(channels_last(p), 2) << p.str();
  for (const ProgramOutput& o : p.outputs) EXPECT_TRUE(o.spec.strides[3] == SymInt(1));
}

TEST(Layout, TheirReductionsKeepTheOrderOfTheGraph) {
  int trees = 0;
  for (const Step& s : laid_out(chain, kChain).steps)
    if (const auto* k = std::get_if<KernelStep>(&s)) trees += k->kernel->vector == VectorAxis::OuterTree;
  EXPECT_EQ(trees, 1);
}

TEST(Layout, ValuesOfARowDoNotTurnItsReduction) {
  auto f = [](const Tensors& a) {
    const Tensor scaled = mul(add(mul(a[0], a[1]), a[2]), a[3]);
    return Tensors{sum(scaled, Sizes{1}, false)};
  };
  for (const Step& s : laid_out(f, {{64, 100}, {64, 1}, {64, 1}, {64, 1}}).steps) {
    ASSERT_TRUE(std::holds_alternative<KernelStep>(s));
    EXPECT_EQ(std::get<KernelStep>(s).kernel->vector, VectorAxis::Inner);
  }
}

TEST(Layout, TheRuleDecides) { EXPECT_EQ(channels_last(laid_out(chain, kChain, &none)), 0); }

TEST(Layout, ABorderToFixedStridesMayCostMoreThanReorders) {
  auto f = [](const Tensors& a) {
    const Tensor x = same(a[0], a[1]);
    return Tensors{mul(exp(x), a[2]), sigmoid(x)};
  };
  EXPECT_EQ(channels_last(laid_out(f, {{2, 3, 9, 8}, {32, 3, 3, 3}, {2, 32, 9, 8}})), 0);
}

TEST(Layout, WhatALibraryCallSeesThroughAViewStays) {
  auto f = [](const Tensors& a) {
    const Tensor x = same(a[0], a[1]);
    return Tensors{mm(reshape(x, {2, -1}), a[2])};
  };
  EXPECT_EQ(channels_last(laid_out(f, {{2, 3, 4, 4}, {32, 3, 3, 3}, {512, 5}})), 0);
}

}  // namespace
}  // namespace fl::loop
