// Eager calls: kinds of calls and their kernels, against elements computed one by one.
#include <gtest/gtest.h>

#include "flambeau/ops/functions.h"

namespace fl {
namespace {

Tensor ramp(std::vector<int64_t> sizes, double start = -1, double step = 0.25, DType dtype = DType::Float32) {
  Sizes s;
  int64_t n = 1;
  for (int64_t i : sizes) s.push_back(i), n *= i;
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(start + step * static_cast<double>(i));
  return _to_copy(tensor_from(v, s), dtype);
}
std::vector<double> elements(const Tensor& t) { return t.to_vector<double>(); }

// Element (i0, i1, ...) of a tensor at an index that may be one of a larger, broadcast tensor.
double element(const Tensor& t, const std::vector<int64_t>& index) {
  int64_t flat = t.offset().expect_int();
  const int skip = static_cast<int>(index.size()) - t.dim();
  for (int d = 0; d < t.dim(); ++d)
    if (!t.sizes()[d].same_as(1)) flat += index[static_cast<size_t>(d + skip)] * t.strides()[d].expect_int();
  float value;
  std::memcpy(&value, static_cast<const float*>(t.storage()->data()) + flat, sizeof(value));
  return value;
}

// 3 * a + b by definition.
std::vector<double> scaled_sum(const Tensor& a, const Tensor& b, const std::vector<int64_t>& sizes) {
  std::vector<double> out;
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) index[d] = rest % sizes[d];
    out.push_back(static_cast<float>(3 * element(b, index) + element(a, index)));
  }
  return out;
}

struct Operands {
  std::string name;
  Tensor a, b;
  std::vector<int64_t> result;
};

TEST(Eager, EveryKindOfOperands) {
  const Tensor square = ramp({4, 4}), cube = ramp({3, 4, 5});
  const std::vector<Operands> cases = {
      {"equal sizes", ramp({3, 5}), ramp({3, 5}, 2), {3, 5}},
      {"other equal sizes", ramp({7, 6}), ramp({7, 6}, 2), {7, 6}},
      {"one row", ramp({3, 5}), ramp({5}), {3, 5}},
      {"one column", ramp({3, 5}), ramp({3, 1}), {3, 5}},
      {"row and column", ramp({1, 5}), ramp({3, 1}), {3, 5}},
      {"equal numbers that are not one size", ramp({4, 1, 4}), ramp({4, 4}), {4, 4, 4}},
      {"transposed", permute(square, {1, 0}), square, {4, 4}},
      {"both transposed", permute(square, {1, 0}), permute(square, {1, 0}), {4, 4}},
      {"steps", slice(cube, 2, 0, 5, 2), slice(cube, 2, 1, 4, 1), {3, 4, 3}},
      {"a column of a matrix", select(ramp({5, 3}), 1, 1), ramp({5}), {5}},
      {"overlapping", as_strided(ramp({6}), Sizes{3, 3}, Sizes{1, 1}), ramp({3, 3}), {3, 3}},
      {"expanded", expand(ramp({1, 5}), Sizes{4, 5}), ramp({4, 5}), {4, 5}},
      {"one element", ramp({1}), ramp({1}, 3), {1}},
      {"no dimensions", ramp({}), ramp({}, 3), {}},
      {"with no dimensions", ramp({2, 3}), ramp({}, 3), {2, 3}},
      {"no elements", ramp({0, 3}), ramp({3}), {0, 3}},
      {"no elements by broadcasting", ramp({1, 3}), ramp({0, 1}), {0, 3}},
      {"permuted", permute(cube, {2, 0, 1}), permute(ramp({4, 5, 3}), {1, 2, 0}), {5, 3, 4}},
      {"an offset", slice(ramp({9, 4}), 0, 5, 8), ramp({3, 4}), {3, 4}},
      {"many elements", ramp({300, 257}, 0, 1e-3), ramp({257}), {300, 257}},
  };
  for (const Operands& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor out = add(c.a, c.b, 3);
    std::vector<int64_t> sizes;
    for (SymInt s : out.sizes()) sizes.push_back(s.expect_int());
    EXPECT_EQ(sizes, c.result);
    EXPECT_EQ(elements(out), scaled_sum(c.a, c.b, c.result));
  }
}

TEST(Eager, NumbersInThePlaceOfTensors) {
  const Tensor x = ramp({4}, 1, 1);
  EXPECT_EQ(elements(mul(x, 2)), (std::vector<double>{2, 4, 6, 8}));
  EXPECT_EQ(elements(mul(x, 0.5)), (std::vector<double>{0.5, 1, 1.5, 2}));
  EXPECT_EQ(mul(x, 0.5).dtype(), DType::Float32);
  const Tensor whole = ramp({3}, 1, 1, DType::Int64);
  EXPECT_EQ(mul(whole, 2).dtype(), DType::Int64);
  EXPECT_EQ(mul(whole, 0.5).dtype(), DType::Float32);
  EXPECT_EQ(elements(mul(whole, 0.5)), (std::vector<double>{0.5, 1, 1.5}));
  EXPECT_EQ(add(whole, true).dtype(), DType::Int64);
  EXPECT_EQ(elements(sub(whole, 1, 2)), (std::vector<double>{-1, 0, 1}));
}

TEST(Eager, ANumberKeepsItsKindWithATensorWithoutDimensions) {
  const Tensor x = ramp({}, 1.5);
  const Tensor condition = gt(x, 0.0);
  EXPECT_EQ(where(condition, x, 0.0).dtype(), DType::Float32);
  EXPECT_EQ(nan_to_num(x).dtype(), DType::Float32);
  EXPECT_EQ(mul(x, 2.0).dtype(), DType::Float32);
}

TEST(Eager, OneKernelServesSeveralSizes) {
  for (int64_t rows : {2, 3, 5, 64, 257})
    for (int64_t columns : {2, 7, 33}) {
      const Tensor x = ramp({rows, columns}, 0, 1e-2);
      const std::vector<double> all = elements(x), sums = elements(sum(x, Sizes{1}, false));
      for (int64_t i = 0; i < rows; ++i) {
        double expected = 0;
        for (int64_t j = 0; j < columns; ++j) expected += all[static_cast<size_t>(i * columns + j)];
        EXPECT_NEAR(sums[static_cast<size_t>(i)], expected, 1e-5 * std::max(1.0, std::abs(expected)));
      }
    }
}

TEST(Eager, CopyOfOwnTranspose) {
  const Tensor x = ramp({5, 5}, 0, 1);
  const std::vector<double> expected = elements(clone(permute(x, {1, 0})));
  copy.in_place(x, permute(x, {1, 0}));
  EXPECT_EQ(elements(x), expected);
}

TEST(Eager, ChangesThroughOverlappingViews) {
  const Tensor x = ramp({6}, 0, 1);
  EXPECT_THROW(add.in_place(slice(x, 0, 1, 6), slice(x, 0, 0, 5)), RuntimeError);
  add.in_place(slice(x, 0, 3, 6), slice(x, 0, 0, 3));
  EXPECT_EQ(elements(x), (std::vector<double>{0, 1, 2, 3, 5, 7}));
  const Tensor y = ramp({6}, 0, 1);
  copy.in_place(y, flip(y, Sizes{0}));
  EXPECT_EQ(elements(y), (std::vector<double>{5, 4, 3, 2, 1, 0}));
}

TEST(Eager, ATargetWhoseElementsMeetIsRefused) {
  EXPECT_THROW(add.in_place(expand(ramp({1, 3}), Sizes{2, 3}), 1.0), RuntimeError);
}

TEST(Eager, InPlaceOnViewsOfEveryLayout) {
  const Tensor whole = ramp({4, 6}, 0, 1);
  mul.in_place(slice(whole, 1, 1, 6, 2), -1.0);
  mul.in_place(select(permute(whole, {1, 0}), 0, 2), 10.0);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 6; ++j) {
      const double base = static_cast<double>(i * 6 + j);
      EXPECT_EQ(elements(whole)[static_cast<size_t>(i * 6 + j)], j % 2 ? -base : j == 2 ? 10 * base : base);
    }
  // The strides of the target are no strides of an operand.
  const Tensor target = ramp({3, 4, 2}, 0, 0), one = ramp({}, 7);
  copy.in_place(permute(slice(target, 1, 0, 4, 3), {2, 0, 1}), one);
  double total = 0;
  for (double e : elements(target)) total += e;
  EXPECT_EQ(total, 7 * 3 * 2 * 2);
}

TEST(Eager, InPlaceConvertsToTheTargetsDType) {
  const Tensor half = ramp({3}, 1, 1, DType::BFloat16);
  add.in_place(half, ramp({3}, 0.125, 0));
  EXPECT_EQ(half.dtype(), DType::BFloat16);
  EXPECT_EQ(elements(half), (std::vector<double>{1.125, 2.125, 3.125}));
  const Tensor whole = ramp({3}, 1, 1, DType::Int64);
  copy.in_place(whole, ramp({3}, 1.75, 1));
  EXPECT_EQ(elements(whole), (std::vector<double>{1, 2, 3}));
  EXPECT_THROW(add.in_place(whole, 0.5), RuntimeError);
  const Tensor flags = ramp({2}, 0, 1, DType::Bool);
  copy.in_place(flags, ramp({2}, 0, 0.5));
  EXPECT_EQ(elements(flags), (std::vector<double>{0, 1}));
}

TEST(Eager, ResultsIntoGivenTensors) {
  const OpInfo& out_form = *add.info().out;
  const Tensor a = ramp({2, 3}), b = ramp({2, 3}, 1);
  auto write = [&](const Tensor& target) {
    call(out_form, {Value(a), Value(b), Value(1), Value(target)});
    return elements(target);
  };
  const std::vector<double> expected = elements(add(a, b));
  EXPECT_EQ(write(ramp({2, 3})), expected);
  EXPECT_EQ(write(permute(ramp({3, 2}), {1, 0})), expected);
  EXPECT_EQ(write(slice(ramp({2, 6}), 1, 0, 6, 2)), expected);
  const Tensor wide = ramp({2, 3}, 0, 0, DType::Float64);
  EXPECT_EQ(write(wide), expected);
  EXPECT_EQ(wide.dtype(), DType::Float64);
  EXPECT_EQ(write(a), expected);
}

TEST(Eager, ResultsThatAreAnOperand) {
  const OpInfo& out_form = *mm.info().out;
  const Tensor a = ramp({3, 3}), b = ramp({3, 3}, 1);
  const std::vector<double> expected = elements(mm(a, b));
  call(out_form, {Value(a), Value(b), Value(a)});
  EXPECT_EQ(elements(a), expected);
}

}  // namespace
}  // namespace fl
