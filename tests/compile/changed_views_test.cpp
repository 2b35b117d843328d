// Views of what a compiled function changes in place.
#include <gtest/gtest.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/ops/functions.h"

namespace fl {
namespace {

Tensor ramp(IntList sizes) {
  std::vector<double> v(static_cast<size_t>(product(sizes).expect_int()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = -1 + 0.17 * static_cast<double>(i);
  return _to_copy(tensor_from(v, sizes), DType::Float32);
}

struct Seen {
  std::vector<double> out, input, gradient;
  bool operator==(const Seen&) const = default;
};

// The first result, the changed input and its leaf's gradient.
Seen seen(const Callable& f, IntList sizes) {
  Tensor leaf = ramp(sizes);
  leaf.set_requires_grad(true);
  const Tensor input = mul(leaf, 1.0);
  const Tensor out = f({input})[0];
  if (out.requires_grad()) backward({out}, {ramp(out.sizes())});
  return {out.to_vector<double>(), input.to_vector<double>(),
          leaf.grad().defined() ? leaf.grad().to_vector<double>() : std::vector<double>()};
}

void expect_as_eager(const Callable& f, std::initializer_list<Sizes> all_sizes) {
  const Compiled c = compile(f);
  for (const Sizes& sizes : all_sizes) EXPECT_EQ(seen(c, sizes), seen(f, sizes)) << to_string(sizes);
  EXPECT_TRUE(c.explain().fallbacks.empty()) << c.explain().fallbacks[0];
  EXPECT_EQ(c.explain().graphs.size(), 1u);
}

// tanh's backward reads the part as it was: a dense copy of what had gaps.
TEST(ChangedViews, ASavedPartIsReadInTheCopysLayout) {
  expect_as_eager(
      [](const Tensors& a) -> Tensors {
        const Tensor part = slice(a[0], 1, 2, -1), y = tanh(part);
        fill.in_place(part, 0.0);
        return {add(y, part)};
      },
      {{6, 7}, {9, 7}});
}

TEST(ChangedViews, ASavedViewOfAPartIsReadInTheCopysLayout) {
  expect_as_eager(
      [](const Tensors& a) -> Tensors {
        const Tensor rows = select(slice(a[0], 1, 1, 5), 0, 2), y = tanh(rows);
        mul.in_place(a[0], 3.0);
        return {y};
      },
      {{6, 7}, {9, 7}});
}

// The view's history is made again after the run of the function, where its sizes are still symbols.
TEST(ChangedViews, AResultIsAViewThatChangedWithItsBase) {
  expect_as_eager(
      [](const Tensors& a) -> Tensors {
        const Tensor part = slice(a[0], 0, 0, 4, 2);
        mul.in_place(a[0], 3.0);
        return {part};
      },
      {{6, 1}, {8, 1}});
}

TEST(ChangedViews, APartOfAnExpandedTensorIsItsOneElement) {
  const auto f = [](const Tensors& a) -> Tensors {
    const Tensor last = slice(expand(a[0], {SymInt(3)}), 0, 2, 3);
    add.in_place(last, -1.25);
    return {last};
  };
  const Compiled c = compile(f);
  EXPECT_EQ(seen(c, {1}), seen(f, {1}));
  ASSERT_EQ(c.explain().fallbacks.size(), 1u);
  EXPECT_NE(c.explain().fallbacks[0].find("whose elements share memory (sizes [3], strides [0])"),
            std::string::npos)
      << c.explain().fallbacks[0];
}

TEST(ChangedViews, ACopyRepeatedAsksNothingOfStrides) {
  const auto f = [](const Tensors& a) -> Tensors {
    return {repeat(slice(matmul(a[0], t(a[0])), 1, 0, INT64_MAX, 3), {SymInt(2), SymInt(1)})};
  };
  expect_as_eager(f, {{6, 2}, {9, 2}, {13, 2}});
}

}  // namespace
}  // namespace fl
