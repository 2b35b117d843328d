#include "flambeau/base/parallel.h"
#include "flambeau/library/library.h"
#include "tests/runtime/call_operands.h"

namespace fl::runtime {
namespace {

using test::contiguous;
using test::Operand;
using test::strides_in_order;
using Sizes = std::vector<int64_t>;

const Value kLeft = GraphRef{0, 0}, kRight = GraphRef{1, 0};

OpInfo product_operator(size_t rank) {
  return test::operator_of(
      rank == 2 ? "mm(Tensor self, Tensor mat2) -> Tensor" : "bmm(Tensor self, Tensor mat2) -> Tensor",
      LibraryCall::Matmul);
}

/// a @ b by the call and by loops; c must keep what lies between its elements.
void expect_product(Operand a, Operand b, Operand c) {
  const DType dtype = c.layout().dtype;
  SCOPED_TRACE(fmt::format("{} [{}]({}) [{}]({}) -> ({})", name(dtype), fmt::join(a.sizes(), ","),
                           fmt::join(a.layout().strides, ","), fmt::join(b.sizes(), ","),
                           fmt::join(b.layout().strides, ","), fmt::join(c.layout().strides, ",")));
  a.fill(1);
  b.fill(2);
  Operand expected = c;
  const size_t rank = a.sizes().size();
  test::for_each_index(c.sizes(), [&](const Sizes& i) {
    double sum = 0;
    Sizes left = i, right = i;
    for (int64_t k = 0; k < a.sizes()[rank - 1]; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += a.get(left) * b.get(right);
    }
    expected.set(i, sum);
  });
  test::run(product_operator(rank), {kLeft, kRight}, {&a, &b}, {&c});
  EXPECT_EQ(c.bytes(), expected.bytes());
}

class RuntimeMatmul : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library::available()) GTEST_SKIP() << "without the library, loops multiply";
  }
};

TEST_F(RuntimeMatmul, EveryDtypeAndLayout) {
  const Sizes m = {7, 5}, n = {5, 9}, r = {7, 9};
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16})
    for (const Sizes& a : {contiguous(m), Sizes{1, 7}, Sizes{10, 2}, Sizes{2, 20}, Sizes{1, 1}, Sizes{0, 1}})
      for (const Sizes& b : {contiguous(n), Sizes{1, 5}, Sizes{27, 3}, Sizes{0, 1}, Sizes{1, 0}})
        for (const Sizes& c : {contiguous(r), Sizes{1, 7}, Sizes{20, 2}, Sizes{12, 1}})
          expect_product({dtype, m, a}, {dtype, n, b}, {dtype, r, c});
}

TEST_F(RuntimeMatmul, Batches) {
  const Sizes m = {3, 4, 6}, n = {3, 6, 5}, r = {3, 4, 5};
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16})
    for (const Sizes& a : {contiguous(m), strides_in_order(m, {1, 0, 2}), strides_in_order(m, {2, 1, 0}),
                           strides_in_order(m, {0, 2, 1}), Sizes{0, 6, 1}})
      for (const Sizes& b : {contiguous(n), strides_in_order(n, {1, 2, 0}), Sizes{0, 5, 1}, Sizes{0, 1, 6}})
        for (const Sizes& c : {contiguous(r), strides_in_order(r, {1, 0, 2}), strides_in_order(r, {1, 2, 0})})
          expect_product({dtype, m, a}, {dtype, n, b}, {dtype, r, c});
}

TEST_F(RuntimeMatmul, SizesZeroAndOne) {
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16})
    for (const int64_t m : {0, 1, 3})
      for (const int64_t k : {0, 1, 4})
        for (const int64_t n : {0, 1, 2}) {
          expect_product({dtype, {m, k}}, {dtype, {k, n}}, {dtype, {m, n}});
          expect_product({dtype, {m, k}, {1, std::max<int64_t>(1, m)}}, {dtype, {k, n}}, {dtype, {m, n}});
          for (const int64_t batch : {0, 1, 2})
            expect_product({dtype, {batch, m, k}}, {dtype, {batch, k, n}}, {dtype, {batch, m, n}});
        }
}

TEST_F(RuntimeMatmul, LargeWithStagedOperands) {
  const Sizes m = {130, 70}, n = {70, 90}, r = {130, 90};
  expect_product({DType::Float32, m, Sizes{140, 2}}, {DType::Float32, n, Sizes{2, 140}}, {DType::Float32, r});
}

TEST_F(RuntimeMatmul, CallsRepeatToTheBit) {
  Operand a(DType::Float32, {64, 300}, {2, 128}), b(DType::Float32, {300, 64}), c(DType::Float32, {64, 64});
  a.fill(5);
  b.fill(6);
  a.set({3, 4}, 0.1);
  b.set({4, 5}, 0.3);
  Operand again = c;
  test::run(product_operator(2), {kLeft, kRight}, {&a, &b}, {&c});
  test::run(product_operator(2), {kLeft, kRight}, {&a, &b}, {&again});
  EXPECT_EQ(c.bytes(), again.bytes());
}

/// A call prepared for many threads runs inside a parallel region, where there is one, with staged operands
/// of several calls at a time.
TEST_F(RuntimeMatmul, PreparedCallsRunInParallelRegions) {
  Operand a(DType::Float32, {96, 80}, {160, 2}), b(DType::Float32, {80, 64});
  a.fill(3);
  b.fill(4);
  Operand expected(DType::Float32, {96, 64});
  test::run(product_operator(2), {kLeft, kRight}, {&a, &b}, {&expected});
  const PreparedCall call = prepare_library_call(
      {product_operator(2), {kLeft, kRight}, {a.layout(), b.layout()}, {expected.layout()}});
  std::vector<Operand> made(8, Operand(DType::Float32, {96, 64}));
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      void* const operands[] = {a.data(), b.data()};
      void* const results[] = {made[i].data()};
      call(operands, results);
    }
  });
  for (const Operand& c : made) EXPECT_EQ(c.bytes(), expected.bytes());
}

TEST(RuntimeDirectMatmul, OtherDtypesByDefinition) {
  for (const DType dtype : {DType::Float64, DType::Int32, DType::UInt8, DType::Int64}) {
    expect_product({dtype, {7, 5}, {2, 20}}, {dtype, {5, 3}}, {dtype, {7, 3}, {1, 7}});
    expect_product({dtype, {3, 4, 6}}, {dtype, {3, 6, 5}, {0, 1, 6}}, {dtype, {3, 4, 5}});
    expect_product({dtype, {2, 3, 0}}, {dtype, {2, 0, 5}}, {dtype, {2, 3, 5}});
    expect_product({dtype, {0, 3}}, {dtype, {3, 5}}, {dtype, {0, 5}});
  }
}

TEST_F(RuntimeMatmul, Refusals) {
  Operand d(DType::Float32, {2, 3}), e(DType::Float32, {4, 2}), f(DType::Float32, {2, 2});
  EXPECT_THROW(test::run(product_operator(2), {kLeft, kRight}, {&d, &e}, {&f}), RuntimeError);
}

}  // namespace
}  // namespace fl::runtime
