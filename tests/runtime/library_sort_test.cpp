#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/runtime/call_operands.h"

namespace fl::runtime {
namespace {

using test::contiguous;
using test::Operand;
using Sizes = std::vector<int64_t>;

const OpInfo& sort_operator() {
  static const OpInfo op = test::operator_of(
      "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
      "Tensor indices)",
      LibraryCall::Sort);
  return op;
}

/// By std::stable_sort along dim, nan largest.
void expect_sorted(Operand& self, int64_t dim, bool descending, Sizes values_strides, Sizes index_strides) {
  SCOPED_TRACE(fmt::format("{} [{}] along {}, descending {}", name(self.layout().dtype),
                           fmt::join(self.sizes(), ","), dim, descending));
  Operand values(self.layout().dtype, self.sizes(), values_strides);
  Operand indices(DType::Int64, self.sizes(), index_strides);
  Operand expected_values = values, expected_indices = indices;
  Sizes rows = self.sizes();
  if (!rows.empty()) rows[dim] = std::min<int64_t>(1, rows[dim]);
  const int64_t n = rows.empty() ? 1 : self.sizes()[dim];
  test::for_each_index(rows, [&](const Sizes& row) {
    const auto at = [&](int64_t i) {
      Sizes index = row;
      if (!index.empty()) index[dim] = i;
      return index;
    };
    const auto before = [&](int64_t i, int64_t j) {
      const double a = self.get(at(i)), b = self.get(at(j));
      if (descending) return std::isnan(a) ? !std::isnan(b) : a > b;
      return std::isnan(b) ? !std::isnan(a) : a < b;
    };
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), before);
    for (int64_t i = 0; i < n; ++i) {
      expected_values.set(at(i), self.get(at(order[i])));
      expected_indices.set(at(i), static_cast<double>(order[i]));
    }
  });
  test::run(sort_operator(), {GraphRef{0, 0}, Value(true), Value(dim), Value(descending)}, {&self},
            {&values, &indices});
  EXPECT_EQ(indices.bytes(), expected_indices.bytes());
  test::for_each_index(values.sizes(), [&](const Sizes& i) {
    const double a = values.get(i), b = expected_values.get(i);
    if (std::isnan(b) ? !std::isnan(a) : a != b || std::signbit(a) != std::signbit(b))
      ADD_FAILURE() << fmt::format("[{}]: {} for {}", fmt::join(i, ", "), a, b);
  });
}

constexpr DType kTypes[] = {DType::Bool,  DType::UInt8,   DType::Int8,     DType::Int16,   DType::Int32,
                            DType::Int64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

TEST(RuntimeSort, EveryDtypeDimensionAndDirection) {
  for (const DType dtype : kTypes)
    for (const bool descending : {false, true})
      for (const int64_t dim : {0, 1, 2}) {
        const Sizes sizes = {4, 7, 5};
        Operand self(dtype, sizes, test::strides_in_order(sizes, {2, 0, 1}, 2));
        self.fill(static_cast<uint32_t>(dim));
        expect_sorted(self, dim, descending, contiguous(sizes), test::strides_in_order(sizes, {1, 0, 2}));
      }
}

/// Rows long enough for the sort by digits, with values over the dtype's whole range.
TEST(RuntimeSort, LongRows) {
  std::mt19937_64 random(7);
  for (const DType dtype : kTypes)
    for (const bool descending : {false, true}) {
      Operand self(dtype, {3, 1500});
      test::for_each_index(self.sizes(), [&](const Sizes& i) {
        const int64_t bits = static_cast<int64_t>(random());
        if (is_floating(dtype)) return self.set(i, std::ldexp(static_cast<double>(bits % 1024), bits >> 60));
        const int64_t whole = dtype == DType::Int64 ? bits >> 11 : bits;  // exact in a double
        self.set(i, static_cast<double>(dtype == DType::Bool    ? whole & 1
                                        : dtype == DType::UInt8 ? whole & 0xff
                                        : dtype == DType::Int8  ? static_cast<int8_t>(whole)
                                        : dtype == DType::Int16 ? static_cast<int16_t>(whole)
                                        : dtype == DType::Int32 ? static_cast<int32_t>(whole)
                                                                : whole));
      });
      expect_sorted(self, 1, descending, contiguous(self.sizes()), contiguous(self.sizes()));
    }
}

TEST(RuntimeSort, NanIsLargestAndZerosAreEqual) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> some = {0.0, kNan, -0.0, kInfinity, -1, 0.0, -kInfinity, -kNan, 2, -0.0};
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64})
    for (const bool descending : {false, true})
      for (const int64_t count : {10, 400}) {
        Operand self(dtype, {count});
        for (int64_t i = 0; i < count; ++i) self.set({i}, some[i % 10]);
        expect_sorted(self, 0, descending, {1}, {1});
      }
}

TEST(RuntimeSort, SizesZeroAndScalars) {
  for (const Sizes& sizes : {Sizes{}, Sizes{0}, Sizes{3, 0}, Sizes{0, 3}, Sizes{1}}) {
    Operand self(DType::Float32, sizes);
    self.fill(1);
    expect_sorted(self, 0, false, contiguous(sizes), contiguous(sizes));
  }
}

TEST(RuntimeSort, ComplexNumbersHaveNoOrder) {
  Operand self(DType::Complex64, {2}), values = self, indices(DType::Int64, {2});
  EXPECT_THROW(test::run(sort_operator(), {GraphRef{0, 0}, Value(true), Value(0), Value(false)}, {&self},
                         {&values, &indices}),
               NotImplementedError);
}

/// A tensor of the elements in row-major order, with the dimensions of memory turned around.
Tensor turned_around(DType dtype, const Sizes& sizes, uint32_t zero_every) {
  TensorSpec spec;
  Sizes strides(sizes.size());
  int64_t step = 1, count = 0;
  for (size_t i = 0; i < sizes.size(); step *= sizes[i++]) strides[i] = step;
  for (const int64_t s : sizes) spec.sizes.push_back(s);
  for (const int64_t s : strides) spec.strides.push_back(s);
  spec.dtype = dtype;
  Tensor t = empty_strided_tensor(spec);
  test::for_each_index(sizes, [&](const Sizes& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
    store_scalar(static_cast<char*>(t.data()) + at * size_of(dtype), dtype,
                 Scalar(count++ % zero_every == 0 ? 0 : 1));
  });
  return t;
}

TEST(RuntimeNonzero, PositionsInRowMajorOrder) {
  for (const DType dtype : {DType::Bool, DType::Int16, DType::BFloat16, DType::Float32, DType::Complex128})
    for (const Sizes& sizes : {Sizes{}, Sizes{5}, Sizes{3, 4}, Sizes{70, 3, 201}, Sizes{4, 0}, Sizes{0}}) {
      const Tensor found = nonzero_positions(turned_around(dtype, sizes, 3));
      std::vector<int64_t> expected;
      int64_t count = 0, rows = 0;
      test::for_each_index(sizes, [&](const Sizes& index) {
        if (count++ % 3 == 0) return;
        ++rows;
        expected.insert(expected.end(), index.begin(), index.end());
      });
      EXPECT_EQ(found.dtype(), DType::Int64);
      EXPECT_EQ(to_string(found.sizes()), fmt::format("[{}, {}]", rows, sizes.size()));
      EXPECT_EQ(to_string(found.strides()), fmt::format("[1, {}]", rows));
      EXPECT_EQ(found.to_vector<int64_t>(), expected);
    }
}

}  // namespace
}  // namespace fl::runtime
