// Every reduction and scan, along every vector axis, at sizes around the vector widths.
#include <gtest/gtest.h>

#include "compare.h"
#include "flambeau/base/error.h"
#include "flambeau/loop/builder.h"

namespace fl::codegen {
namespace {

using loop::Builder;
using loop::Expr;
using loop::ReduceOp;
using loop::VectorAxis;

const int64_t kSizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 130, 1000};
const Expr i = Expr::symbol("i0"), r = Expr::symbol("r0"), n = Expr::symbol("s0"), m = Expr::symbol("s1");

// rows x columns reduced along columns (by_row), or along rows.
loop::Kernel reduction(ReduceOp op, DType d, VectorAxis axis, bool by_row, bool is_scan = false) {
  Builder b("reduction");
  const int x = b.add_buffer("x", d, false);
  b.add_size(n);
  b.add_size(m);
  const Expr at = by_row ? i * m + r : r * n + i;
  b.set_outer({{i, n}});
  b.begin_stage({{r, m}});
  std::vector<Val> operands{b.load(x, at)};
  if (loop::operand_count(op) == 2) operands.push_back(b.index(r));
  const std::vector<Val> results = is_scan ? b.scan(op, operands) : b.reduce(op, operands);
  if (!is_scan) b.begin_stage({});
  for (size_t k = 0; k < results.size(); ++k)
    b.store(b.add_buffer("out" + std::to_string(k), results[k].dtype, true), is_scan ? at : i, results[k]);
  return b.finish(axis);
}

bool is_defined(ReduceOp op, DType d) {
  try {
    reduction(op, d, VectorAxis::None, true);
    return true;
  } catch (const ValueError&) {
    return false;
  }
}

class Reductions : public testing::TestWithParam<ReduceOp> {};

void compare(const loop::Kernel& k, int64_t rows, int64_t columns, bool is_scan, std::mt19937_64& random) {
  const DType d = k.buffers[0].dtype;
  std::vector<Bytes> data{random() % 2 ? sample_data(d, rows * columns, random)
                                       : small_data(d, rows * columns, random)};
  for (size_t b = 1; b < k.buffers.size(); ++b)
    data.push_back(
        Bytes(static_cast<size_t>((is_scan ? rows * columns : rows) * size_of(k.buffers[b].dtype)), 0x5a));
  EXPECT_EQ(difference(k, data, {rows, columns}), "");
}

TEST_P(Reductions, OfEveryDType) {
  std::mt19937_64 random(7);
  for (DType d : kAllDTypes) {
    if (!is_defined(GetParam(), d)) continue;
    for (VectorAxis axis : {VectorAxis::Inner, VectorAxis::Outer, VectorAxis::OuterTree, VectorAxis::None})
      for (bool by_row : {true, false})
        compare(reduction(GetParam(), d, axis, by_row), 5, 203, false, random);
  }
}

TEST_P(Reductions, OfEverySize) {
  std::mt19937_64 random(8);
  const bool logical = GetParam() == ReduceOp::Any || GetParam() == ReduceOp::All;
  for (VectorAxis axis : {VectorAxis::Inner, VectorAxis::Outer, VectorAxis::OuterTree}) {
    const loop::Kernel k =
        reduction(GetParam(), logical ? DType::Bool : DType::Float32, axis, axis == VectorAxis::Inner);
    for (int64_t size : kSizes) {
      compare(k, 3, size, false, random);
      if (axis != VectorAxis::Inner) compare(k, size, 3, false, random);
    }
  }
}

TEST_P(Reductions, AsScans) {
  std::mt19937_64 random(9);
  for (DType d : {DType::Bool, DType::Int64, DType::Float32, DType::Complex64}) {
    if (!is_defined(GetParam(), d)) continue;
    for (VectorAxis axis : {VectorAxis::Inner, VectorAxis::Outer, VectorAxis::None})
      compare(reduction(GetParam(), d, axis, axis != VectorAxis::Outer, true), 37, 19, true, random);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reductions,
                         testing::Values(ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max,
                                         ReduceOp::Any, ReduceOp::All, ReduceOp::ArgMin, ReduceOp::ArgMax,
                                         ReduceOp::Welford, ReduceOp::OnlineSoftmax),
                         [](const auto& p) { return std::string(loop::name(p.param)); });

TEST(Reduction, OverTwoInnerLoopsAndSeveralStages) {
  std::mt19937_64 random(10);
  for (const char* axis : {"inner", "outer", "none"}) {
    const loop::Kernel k = loop::parse_kernel(
        fmt::format(R"(kernel k(x: f32 in, w: f32 in, y: f32 out, z: f32 out) sizes(s0, s1, s2) vector {}
for i0 < s0, i1 < 3
  stage
    %0 = load f32 w[i1]
    %1 = constant f32 0.5
    %2 = mul f32 %0, %1
  stage for r0 < s1, r1 < s2
    %3 = load f32 x[i0*s1*s2*3 + i1*s1*s2 + r0*s2 + r1]
    %4 = mul f32 %3, %2
    %5, %6, %7 = reduce welford %4
    %8 = reduce max %4
  stage for r0 < s1, r1 < s2
    %9 = load f32 x[i0*s1*s2*3 + i1*s1*s2 + r0*s2 + r1]
    %10 = sub f32 %9, %8
    %11 = exp f32 %10
    %12 = reduce sum %11
    store y[i0*s1*s2*3 + i1*s1*s2 + r0*s2 + r1] = %11
  stage
    %13 = div f32 %6, %7
    %14 = add f32 %13, %12
    %15 = add f32 %14, %5
    store z[i0*3 + i1] = %15
)",
                    axis));
    for (int64_t s2 : {0, 1, 5, 64, 70, 129})
      for (int64_t s0 : {1, 7})
        EXPECT_EQ(
            difference(k,
                       {small_data(DType::Float32, s0 * 3 * 3 * s2, random),
                        small_data(DType::Float32, 3, random), Bytes(s0 * 3 * 3 * s2 * 4), Bytes(s0 * 3 * 4)},
                       {s0, 3, s2}),
            "");
  }
}

}  // namespace
}  // namespace fl::codegen
