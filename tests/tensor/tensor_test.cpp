#include "flambeau/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "flambeau/sym/shape_env.h"
#include "flambeau/tensor/element.h"

namespace fl {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

/// The message of the error that f raises.
template <class E, class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.message();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

Tensor transposed(const Tensor& t) {
  TensorSpec s = t.spec();
  std::swap(s.sizes[0], s.sizes[1]);
  std::swap(s.strides[0], s.strides[1]);
  return Tensor(s, t.storage());
}

std::vector<int64_t> numbers(IntList list) {
  std::vector<int64_t> v;
  for (const SymInt i : list) v.push_back(i.expect_int());
  return v;
}

TEST(Tensor, SizeAndStrideWrapAndRaiseAsPyTorch) {
  const Tensor t = empty_tensor({2, 3}, DType::Float32);
  EXPECT_EQ(t.size(-1).expect_int(), 3);
  EXPECT_EQ(t.stride(-2).expect_int(), 3);
  EXPECT_EQ(message<IndexError>([&] { t.size(2); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  EXPECT_EQ(message<IndexError>([&] { t.stride(-3); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got -3)");
  EXPECT_EQ(message<IndexError>([&] { empty_tensor({}, DType::Bool).size(0); }),
            "Dimension specified as 0 but tensor has no dimensions");
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_EQ(message<IndexError>([&] { wrap_dim(1, 0); }),
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
}

TEST(Tensor, BadSizesRaise) {
  EXPECT_EQ(message<RuntimeError>([] {
              empty_tensor({-1, 2}, DType::Float32);
            }),
            "Trying to create tensor with negative dimension -1: [-1, 2]");
  EXPECT_EQ(message<RuntimeError>([] {
              empty_tensor({kHuge, 4}, DType::Float32);
            }),
            "Storage size calculation overflowed with sizes=[4611686018427387904, 4]");
  EXPECT_EQ(message<RuntimeError>([] { empty_tensor({kHuge}, DType::Float32); }),
            "Storage size calculation overflowed with sizes=[4611686018427387904]");
  EXPECT_THROW(product({kHuge, 4}), RuntimeError);
  EXPECT_EQ(product({kHuge, 4, 0}).expect_int(), 0);
  EXPECT_THROW(empty_tensor({int64_t{1} << 50}, DType::Float32), OutOfMemoryError);
}

TEST(Tensor, BadStridesRaise) {
  const auto make = [](Sizes sizes, Sizes strides, SymInt offset = 0) {
    empty_strided_tensor({std::move(sizes), std::move(strides), DType::Float32, {}, offset});
  };
  EXPECT_EQ(message<RuntimeError>([&] {
              make({2, 3}, {1});
            }),
            "dimensionality of sizes (2) must match dimensionality of strides (1)");
  EXPECT_THROW(make({2}, {-1}), RuntimeError);
  EXPECT_THROW(make({2}, {1}, -1), RuntimeError);
  EXPECT_THROW(make({3}, {kHuge}), RuntimeError);
  EXPECT_THROW(make({2, 2}, {kHuge, kHuge}), RuntimeError);
  EXPECT_THROW(make({-2}, {1}), RuntimeError);
}

TEST(Tensor, StridedStorageReachesTheLastElement) {
  const Tensor t = empty_strided_tensor({{2, 3}, {10, 2}, DType::Int16, {}, 5});
  EXPECT_EQ(t.storage()->bytes(), (5 + 10 + 4 + 1) * 2);
  EXPECT_EQ(static_cast<char*>(t.data()) - static_cast<char*>(t.storage()->data()), 10);
  EXPECT_EQ(empty_strided_tensor({{2, 0}, {10, 2}, DType::Int16, {}, 5}).storage()->bytes(), 0);
  EXPECT_EQ(empty_strided_tensor({{1000}, {0}, DType::Int64}).storage()->bytes(), 8);
}

TEST(Layout, RowMajorStrides) {
  EXPECT_EQ(numbers(contiguous_strides({2, 3, 4})), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(numbers(contiguous_strides({2, 0, 4, 5})), (std::vector<int64_t>{20, 20, 5, 1}));
  EXPECT_EQ(numbers(empty_tensor({2, 0, 4, 5}, DType::Bool).strides()), (std::vector<int64_t>{20, 20, 5, 1}));
  EXPECT_TRUE(contiguous_strides({}).empty());
}

TEST(Layout, ChannelsLastStrides) {
  const auto f = MemoryFormat::ChannelsLast;
  EXPECT_EQ(numbers(strides_for({2, 3, 4, 5}, f)), (std::vector<int64_t>{60, 1, 15, 3}));
  EXPECT_EQ(numbers(strides_for({2, 0, 4, 5}, f)), (std::vector<int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(numbers(strides_for({2, 3, 0, 5}, f)), (std::vector<int64_t>{0, 1, 15, 3}));
  EXPECT_EQ(numbers(strides_for({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d)),
            (std::vector<int64_t>{360, 1, 90, 18, 3}));
  EXPECT_THROW(strides_for({2, 3}, f), RuntimeError);
  EXPECT_THROW(strides_for({2, 3}, MemoryFormat::Preserve), RuntimeError);
}

TEST(Layout, Contiguity) {
  const auto spec = [](Sizes sizes, Sizes strides) {
    return TensorSpec{std::move(sizes), std::move(strides), DType::Float32};
  };
  EXPECT_TRUE(is_contiguous(spec({2, 3}, {3, 1})));
  EXPECT_FALSE(is_contiguous(spec({3, 2}, {1, 3})));
  EXPECT_TRUE(is_contiguous(spec({1, 3}, {77, 1})));  // The stride of a size of 1 says nothing.
  EXPECT_TRUE(is_contiguous(spec({2, 0}, {9, 9})));
  EXPECT_FALSE(is_contiguous(spec({4}, {2})));
  EXPECT_FALSE(is_contiguous(spec({4}, {0})));
  EXPECT_TRUE(is_contiguous(spec({}, {})));
  const auto cl = MemoryFormat::ChannelsLast;
  EXPECT_TRUE(is_contiguous(spec({2, 3, 4, 5}, {60, 1, 15, 3}), cl));
  EXPECT_FALSE(is_contiguous(spec({2, 3, 4, 5}, {60, 20, 5, 1}), cl));
  EXPECT_TRUE(is_contiguous(spec({2, 1, 4, 5}, {20, 20, 5, 1}), cl));
  EXPECT_FALSE(is_contiguous(spec({2, 3, 0, 5}, {15, 5, 5, 1}), cl));
  EXPECT_FALSE(is_contiguous(spec({2, 3}, {3, 1}), cl));
}

TEST(Layout, NonOverlappingAndDense) {
  const auto dense = [](Sizes sizes, Sizes strides) {
    return is_non_overlapping_and_dense({std::move(sizes), std::move(strides), DType::Float32});
  };
  EXPECT_TRUE(dense({2, 3, 4}, {12, 4, 1}));
  EXPECT_TRUE(dense({2, 3, 4}, {1, 2, 6}));
  EXPECT_TRUE(dense({3, 2, 4}, {4, 12, 1}));
  EXPECT_TRUE(dense({3, 1, 4}, {4, 99, 1}));
  EXPECT_TRUE(dense({0, 5}, {7, 9}));
  EXPECT_FALSE(dense({2, 3}, {4, 1}));
  EXPECT_FALSE(dense({2, 2}, {1, 1}));
  EXPECT_FALSE(dense({3, 4}, {0, 1}));
  EXPECT_FALSE(dense({4}, {2}));
}

TEST(Layout, SymbolicSizesNeedNoGuards) {
  sym::ShapeEnv env;
  const sym::ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(5), u = env.create_unbacked();
  const Tensor t = empty_tensor({n, m, 4}, DType::Float32);
  EXPECT_FALSE(t.has_data());
  EXPECT_EQ(to_string(t.strides()), to_string(Sizes{m * 4, SymInt(4), SymInt(1)}));
  EXPECT_TRUE(t.numel().same_as(n * m * 4));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(is_non_overlapping_and_dense(t.spec()));
  EXPECT_FALSE(transposed(t).is_contiguous());
  EXPECT_TRUE(is_non_overlapping_and_dense(transposed(t).spec()));
  EXPECT_TRUE(
      is_contiguous({{n, m, 4, 6}, strides_for({n, m, 4, 6}, MemoryFormat::ChannelsLast), DType::Float32},
                    MemoryFormat::ChannelsLast));
  EXPECT_FALSE(empty_tensor({u, 3}, DType::Float32).has_data());
  EXPECT_EQ(empty_tensor({3, u}, DType::Float32).dim(), 2);
  EXPECT_TRUE(env.guards().empty()) << env.guards()[0].str();
  EXPECT_THROW(t.data(), UnsupportedError);
  EXPECT_THROW(empty_tensor({1, 2}, DType::Float32, {DeviceType::Meta}).to_vector<float>(), UnsupportedError);
}

template <class T>
void round_trip(const std::vector<T>& values) {
  const Tensor t = tensor_from<T>(values, {SymInt(values.size())});
  const auto back = t.template to_vector<T>();
  ASSERT_EQ(back.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(T(back[i]), T(values[i]));
}

TEST(Tensor, ValuesRoundTripInEveryDtype) {
  round_trip<bool>({true, false});
  round_trip<uint8_t>({0, 255});
  round_trip<int8_t>({-128, 127});
  round_trip<int16_t>({-32768, 32767});
  round_trip<int32_t>({INT32_MIN, INT32_MAX});
  round_trip<int64_t>({INT64_MIN, INT64_MAX});
  round_trip<float>({1.5f, -0.1f});
  round_trip<double>({1.5, -0.1});
  round_trip<std::complex<float>>({{1, 2}, {3, -4}});
  round_trip<std::complex<double>>({{1, 2}, {3, -4}});
  EXPECT_EQ(tensor_from<Half>({to_half(1.5f)}, {1}).to_vector<float>()[0], 1.5f);
  EXPECT_EQ(tensor_from<BFloat16>({to_bfloat16(-2.5f)}, {1}).to_vector<double>()[0], -2.5);
  EXPECT_THROW(tensor_from<float>({1, 2, 3}, {2, 2}), RuntimeError);
}

TEST(Tensor, ToVectorFollowsStrides) {
  const Tensor t = tensor_from<int64_t>({0, 1, 2, 3, 4, 5}, {2, 3});
  EXPECT_EQ(transposed(t).to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  TensorSpec broadcast{{2, 2}, {0, 3}, DType::Int64, {}, 2};
  EXPECT_EQ(Tensor(broadcast, t.storage()).to_vector<double>(), (std::vector<double>{2, 5, 2, 5}));
  EXPECT_TRUE(empty_tensor({3, 0}, DType::Float32).to_vector<float>().empty());
}

TEST(Tensor, ConversionsAsPyTorch) {
  const float inf = INFINITY;
  const Tensor t = tensor_from<float>({300, -1, NAN, 1e20f, -inf, 2.9f}, {6});
  EXPECT_EQ(t.to_vector<uint8_t>(), (std::vector<uint8_t>{44, 255, 0, 0, 0, 2}));
  EXPECT_EQ(t.to_vector<int8_t>(), (std::vector<int8_t>{44, -1, 0, 0, 0, 2}));
  EXPECT_EQ(t.to_vector<int32_t>(), (std::vector<int32_t>{300, -1, INT32_MIN, INT32_MIN, INT32_MIN, 2}));
  EXPECT_EQ(t.to_vector<int64_t>(), (std::vector<int64_t>{300, -1, INT64_MIN, INT64_MIN, INT64_MIN, 2}));
  EXPECT_EQ(t.to_vector<bool>(), (std::vector<bool>{true, true, true, true, true, true}));
  EXPECT_EQ(tensor_from<std::complex<float>>({{2, 3}}, {1}).to_vector<float>()[0], 2.0f);
}

TEST(Tensor, Item) {
  EXPECT_EQ(tensor_from<int64_t>({INT64_MIN}, {1, 1}).item().to_int(), INT64_MIN);
  EXPECT_EQ(tensor_from<bool>({true}, {1}).item().kind(), Scalar::Kind::Bool);
  EXPECT_EQ(tensor_from<float>({2.5f}, {1}).item().to_double(), 2.5);
  EXPECT_EQ(tensor_from<std::complex<float>>({{1, 2}}, {1}).item().to_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(message<RuntimeError>([] {
              tensor_from<float>({1, 2, 3}, {3}).item();
            }),
            "a Tensor with 3 elements cannot be converted to Scalar");
  EXPECT_THROW(empty_tensor({}, DType::Float32, {DeviceType::Meta}).item(), UnsupportedError);
  EXPECT_THROW(Tensor().item(), RuntimeError);
}

TEST(Tensor, NumbersBecomeTensors) {
  const Tensor w = wrapped_number(2.5, DType::Float64);
  EXPECT_TRUE(w.impl()->wrapped_number);
  EXPECT_EQ(w.dim(), 0);
  EXPECT_EQ(w.item().to_double(), 2.5);
  EXPECT_FALSE(scalar_tensor(3, DType::BFloat16).impl()->wrapped_number);
  EXPECT_EQ(scalar_tensor(3, DType::BFloat16).item().to_double(), 3);
  EXPECT_EQ(scalar_tensor(int64_t{1} << 53 | 1, DType::Int64).item().to_int(), int64_t{1} << 53 | 1);
  EXPECT_FALSE(wrapped_number(1, DType::Int64, {DeviceType::Meta}).has_data());
}

TEST(Tensor, HandlesShareTheTensor) {
  const Tensor a = empty_tensor({2}, DType::Float32), b = a;
  EXPECT_TRUE(a.is_same(b));
  EXPECT_EQ(a.impl()->use_count(), 2);
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, VisitReachesEveryDtype) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    visit_dtype(dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      EXPECT_EQ(dtype_of<T>(), dtype);
      EXPECT_EQ(static_cast<int64_t>(sizeof(T)), size_of(dtype));
    });
  }
}

}  // namespace
}  // namespace fl
