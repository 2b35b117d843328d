// What becomes one kernel.
#include "flambeau/loop/fuse.h"

#include <gtest/gtest.h>

#include "flambeau/ops/functions.h"
#include "lowered.h"

namespace fl::loop {
namespace {

using testing::kernel_count;
using testing::lowered;
using testing::steps;

const Kernel& kernel(const Program& p, size_t step = 0) {
  return *std::get<KernelStep>(p.steps.at(step)).kernel;
}

int temporaries(const Program& p) {
  int n = 0;
  for (const ProgramBuffer& b : p.buffers) n += b.kind == ProgramBuffer::Kind::Temporary;
  return n;
}

Tensors chain(const Tensors& a) {
  const Tensor wave = sin(add(a[0], a[1]));
  return {mul(wave, sigmoid(a[0]))};
}

TEST(Fuse, ChainsOfElementwiseOperators) {
  const Program p = lowered(chain, {{40, 30}, {40, 30}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
  EXPECT_EQ(temporaries(p), 0);
  // All dimensions are walked as one.
  EXPECT_EQ(kernel(p).outer.size(), 1u) << kernel(p).str();
}

TEST(Fuse, OffMeansAKernelForEachOperator) {
  const Program p = lowered(chain, {{40, 30}, {40, 30}}, false);
  EXPECT_EQ(steps(p), "add, sin, sigmoid, mul");
  EXPECT_EQ(temporaries(p), 3);
}

TEST(Fuse, AValueOfSeveralReadersIsComputedOnce) {
  const Program p = lowered(
      [](const Tensors& a) {
        const Tensor x = exp(a[0]);
        return Tensors{add(x, a[1]), mul(x, a[1])};
      },
      {{64, 8}, {64, 8}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
  int heavy = 0;
  for (const Inst& i : kernel(p).insts) heavy += i.kind == InstKind::Operation && i.op == ScalarOp::Exp;
  EXPECT_EQ(heavy, 1) << kernel(p).str();
}

TEST(Fuse, SimpleValuesAreComputedByEachOfTheirReaders) {
  const auto program = [](bool heavy) {
    return lowered(
        [heavy](const Tensors& a) {
          const Tensor x = sub(a[0], a[1]), y = mul(heavy ? exp(x) : x, a[1]);
          return Tensors{sum(y, Sizes{0}, false), sum(y, Sizes{1}, false)};  // no kernel does both
        },
        {{640, 320}, {320}});
  };
  EXPECT_EQ(temporaries(program(false)), 0) << program(false).str();
  EXPECT_EQ(temporaries(program(true)), 1) << program(true).str();
  // From two values of its size: to read them is no less than to read it.
  const Program two = lowered(
      [](const Tensors& a) {
        const Tensor x = sub(a[0], a[1]);
        return Tensors{sum(x, Sizes{0}, false), sum(x, Sizes{1}, false)};
      },
      {{640, 320}, {640, 320}});
  EXPECT_EQ(temporaries(two), 1) << two.str();
}

TEST(Fuse, ViewsAreIndices) {
  const Program p = lowered(
      [](const Tensors& a) {
        return Tensors{add(permute(a[0], {1, 0}), slice(a[1], 1, 0, 40, 1))};
      },
      {{40, 30}, {30, 50}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
}

TEST(Fuse, Softmax) {
  const Program p = lowered([](const Tensors& a) { return Tensors{softmax(a[0], -1)}; }, {{256, 100}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
  EXPECT_EQ(kernel(p).vector, VectorAxis::Inner);
}

TEST(Fuse, LogSoftmaxAndWhatPrecedesIt) {
  const Program p =
      lowered([](const Tensors& a) { return Tensors{log_softmax(mul(add(a[0], a[1]), 0.125), -1)}; },
              {{256, 100}, {100}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
}

TEST(Fuse, LayerNorm) {
  const Program p =
      lowered([](const Tensors& a) { return Tensors{layer_norm(a[0], Sizes{a[0].size(-1)}, a[1], a[2])}; },
              {{256, 96}, {96}, {96}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
}

TEST(Fuse, GradientOfLayerNorm) {
  // Rows: one kernel for the input's gradient; columns: those of the weight and of the bias together.
  const Program p = lowered(
      [](const Tensors& a) {
        const Tensor &x = a[0], &g = a[1], &w = a[2];
        const Tensor centred = sub(x, mean(x, Sizes{1}, true));
        const Tensor scale = rsqrt(add(mean(square(centred), Sizes{1}, true), 1e-5));
        const Tensor normal = mul(centred, scale), gw = mul(g, w);
        const Tensor inner =
            sub(sub(gw, mean(gw, Sizes{1}, true)), mul(normal, mean(mul(gw, normal), Sizes{1}, true)));
        return Tensors{mul(inner, scale), sum(mul(g, normal), Sizes{0}, false), sum(g, Sizes{0}, false)};
      },
      {{256, 600}, {256, 600}, {600}});
  EXPECT_LE(kernel_count(p), 3) << p.str();
}

TEST(Fuse, TwoSumsOverTheSameRows) {
  const Program p = lowered(
      [](const Tensors& a) {
        return Tensors{sum(a[0], Sizes{1}, false), sum(square(a[0]), Sizes{1}, false)};
      },
      {{256, 100}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
}

TEST(Fuse, ColumnSumsRunAlongTheRows) {
  const Program p =
      lowered([](const Tensors& a) { return Tensors{sum(square(a[0]), Sizes{0}, false)}; }, {{100, 600}});
  EXPECT_EQ(kernel_count(p), 1) << p.str();
  EXPECT_EQ(kernel(p).vector, VectorAxis::Outer) << kernel(p).str();
}

TEST(Fuse, RowsAndColumnsApart) {
  const Program p = lowered(
      [](const Tensors& a) {
        return Tensors{sum(a[0], Sizes{1}, false), sum(a[0], Sizes{0}, false)};
      },
      {{700, 600}});
  EXPECT_EQ(kernel_count(p), 2) << p.str();
}

TEST(Fuse, LongReductionsInTwoParts) {
  const Program p =
      lowered([](const Tensors& a) { return Tensors{sum(exp(a[0]), Sizes{1}, false)}; }, {{4, 100000}});
  EXPECT_EQ(kernel_count(p), 2) << p.str();
  EXPECT_EQ(temporaries(p), 1);
  EXPECT_FALSE(kernel(p, 0).outer.empty());
}

TEST(Fuse, LibraryCallsStandAlone) {
  const Program p =
      lowered([](const Tensors& a) { return Tensors{relu(add(mm(mul(a[0], 2.0), a[1]), 1.0))}; },
              {{32, 16}, {16, 8}});
  EXPECT_EQ(p.steps.size(), 3u) << p.str();
  EXPECT_EQ(kernel_count(p), 2);
}

TEST(Fuse, TransposedOperandsOfAProductAreNotCopied) {
  const Program p = lowered(
      [](const Tensors& a) {
        return Tensors{mm(a[0], permute(a[1], {1, 0}))};
      },
      {{32, 16}, {8, 16}});
  EXPECT_EQ(kernel_count(p), 0) << p.str();
}

TEST(Fuse, NoCircles) {
  // exp -> library -> add: exp and add share a value, but the product is between them.
  const Program p = lowered(
      [](const Tensors& a) {
        const Tensor x = exp(a[0]);
        return Tensors{add(mm(x, x), x)};
      },
      {{24, 24}});
  EXPECT_EQ(p.steps.size(), 3u) << p.str();
}

}  // namespace
}  // namespace fl::loop
