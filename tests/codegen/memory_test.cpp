// Loads, stores, masks, checks and index arithmetic.
#include <gtest/gtest.h>

#include "compare.h"
#include "flambeau/base/error.h"
#include "flambeau/loop/interpret.h"

namespace fl::codegen {
namespace {

using loop::parse_kernel;

const int64_t kSizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 1000};

TEST(Memory, EveryDTypeAndSize) {
  std::mt19937_64 random(1);
  for (DType d : kAllDTypes) {
    const auto k =
        parse_kernel(fmt::format(R"(kernel copy(x: {0} in, y: {0} out, z: {0} out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load {0} x[i0]
    %1 = load {0} x[s0 - i0 - 1]
    %2 = load {0} x[0]
    store y[i0] = %0
    store z[3*i0 + 1] = %1
    store z[3*i0 + 2] = %2
)",
                                 info(d).short_name));
    for (int64_t n : kSizes)
      EXPECT_EQ(
          difference(k, {sample_data(d, n, random), Bytes(n * size_of(d)), sample_data(d, 3 * n + 1, random)},
                     {n}),
          "");
  }
}

TEST(Memory, LoopsOfSeveralSizesWithBroadcastAndTranspose) {
  std::mt19937_64 random(2);
  const auto k = parse_kernel(
      R"(kernel k(x: f32 in, row: f32 in, column: f32 in, one: f64 in, y: f32 out) sizes(s0, s1, s2) params(f32) vector outer
for i0 < s0, i1 < s1, i2 < s2
  stage
    %0 = load f32 x[i2*s0*s1 + i1*s0 + i0]
    %1 = load f32 row[i2]
    %2 = load f32 column[i0*s1 + i1]
    %3 = load f64 one[0]
    %4 = cast f32 %3
    %5 = param f32 0
    %6 = fma f32 %0, %1, %2
    %7 = mul f32 %4, %5
    %8 = add f32 %6, %7
    store y[i0*s1*s2 + i1*s2 + i2] = %8
)");
  for (int64_t a : {0, 1, 3})
    for (int64_t b : {1, 2, 5})
      for (int64_t c : {1, 7, 16, 33, 150})
        EXPECT_EQ(
            difference(k,
                       {sample_data(DType::Float32, a * b * c, random),
                        sample_data(DType::Float32, c, random), sample_data(DType::Float32, a * b, random),
                        small_data(DType::Float64, 1, random), Bytes(a * b * c * 4)},
                       {a, b, c}, {loop::ScalarBits::of(1.5f)}),
            "");
}

TEST(Memory, MasksOfLoadsAndStores) {
  std::mt19937_64 random(3);
  for (const char* axis : {"outer", "none"})
    for (DType d : {DType::Bool, DType::Int16, DType::BFloat16, DType::Float32, DType::Complex64}) {
      const auto k = parse_kernel(
          fmt::format(R"(kernel pad(x: {0} in, m: b8 in, y: {0} out, z: {0} out) sizes(s0) vector {1}
for i0 < s0 + 4
  stage
    %0 = index i64 [i0]
    %1 = index i64 [s0 + 1]
    %2 = constant i64 1
    %3 = lt b8 %0, %2
    %4 = not b8 %3
    %5 = lt b8 %0, %1
    %6 = and b8 %4, %5
    %7 = load {0} x[i0 - 1] if %6
    %8 = load b8 m[i0]
    %9 = load {0} x[0] if %8
    %10 = load b8 m[0]
    %11 = load {0} x[0] if %10
    store y[i0] = %7 if %8
    store y[i0 + s0 + 4] = %9 if %10
    store z[i0] = %11
)",
                      info(d).short_name, axis));
      for (int64_t n : {1, 5, 16, 40, 200})
        EXPECT_EQ(difference(k,
                             {sample_data(d, n, random), sample_data(DType::Bool, n + 4, random),
                              sample_data(d, 2 * n + 8, random), sample_data(d, n + 4, random)},
                             {n}),
                  "");
    }
}

TEST(Memory, IndexDivisionAndModulo) {
  std::mt19937_64 random(4);
  const auto k = parse_kernel(R"(kernel k(x: f32 in, y: i64 out) sizes(s0, s1) vector outer
for i0 < s0
  stage
    %0 = index i64 [(i0 // 3)*2 + (i0 % 7)]
    %1 = index i64 [(i0 - 20) // 3]
    %2 = index i64 [(i0 - 20) % 6]
    %3 = index i64 [(i0 // s1) + min(i0, s1) - max(i0, 5)]
    %4 = index i64 [(i0 - 9) % s1]
    %5 = add i64 %0, %1
    %6 = mul i64 %5, %2
    %7 = add i64 %6, %3
    %8 = add i64 %7, %4
    %9 = load f32 x[(i0 % 13)]
    %10 = cast i64 %9
    %11 = add i64 %8, %10
    store y[i0] = %11
)");
  for (int64_t n : kSizes)
    EXPECT_EQ(difference(k, {small_data(DType::Float32, 13, random), Bytes(n * 8)}, {n, 6}), "");
}

TEST(Memory, GathersAndChecksIndices) {
  std::mt19937_64 random(5);
  for (const char* axis : {"outer", "none", "inner"}) {
    const auto k = parse_kernel(
        fmt::format(R"(kernel gather(x: f32 in, index: i64 in, y: f32 out) sizes(s0, s1) vector {}
for i0 < s0
  stage
    %0 = load i64 index[i0]
    %1 = constant i64 10
    %2 = lt b8 %0, %1
    %3 = constant i64 -1
    %4 = lt b8 %3, %0
    %5 = and b8 %2, %4
    %6 = load f32 x[%0*3 + 1] if %5
    check %5, %0, "index {{}} is out of bounds for dimension 0 with size 10"
    store y[i0] = %6
)",
                    axis));
    for (bool bad : {false, true})
      for (int64_t n : {1, 17, 100}) {
        std::vector<int64_t> index(n);
        for (auto& v : index) v = static_cast<int64_t>(random() % 10);
        if (bad) index[n / 2] = 10 + n, index[n - 1] = -5;
        Bytes bytes(n * 8);
        std::memcpy(bytes.data(), index.data(), bytes.size());
        EXPECT_EQ(difference(k, {sample_data(DType::Float32, 30, random), bytes, Bytes(n * 4)}, {n, 1}), "");
      }
  }
}

TEST(Memory, LoopsWithoutIterationsReadNothing) {
  for (const char* axis : {"outer", "outer_tree", "inner", "none"}) {
    const auto k = parse_kernel(fmt::format(R"(kernel total(x: f32 in, y: f32 out) sizes(s0, s1, s2) vector {}
for i0 < s0
  stage for r0 < s1, r1 < s2
    %0 = load f32 x[i0]
    %1 = exp f32 %0
    %2 = reduce sum %1
  stage
    store y[i0] = %2
)",
                                            axis));
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{24, 6, 0}, {24, 0, 6}, {1, 1, 0}})
      EXPECT_EQ(difference(k, {Bytes(), Bytes(sizes[0] * sizeof(float))}, sizes), "") << axis;
  }
}

TEST(Memory, MessagesKnowNoSignOfANan) {
  const auto k = parse_kernel(R"(kernel refuse(x: f32 in, y: f32 out) sizes(s0, s1) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = neg f32 %0
    %2 = lt b8 %1, %0
    check %2, %1, "value {} is wrong"
    store y[i0] = %1
)");
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u}) {
    Bytes x(sizeof bits), y(sizeof bits);
    std::memcpy(x.data(), &bits, sizeof bits);
    EXPECT_EQ(difference(k, {x, y}, {1, 1}), "");
    void* buffers[] = {x.data(), y.data()};
    const int64_t sizes[] = {1, 1};
    try {
      loop::interpret(k, buffers, sizes);
      ADD_FAILURE() << "nothing is refused";
    } catch (const IndexError& e) {
      EXPECT_EQ(e.message(), "value nan is wrong");
    }
  }
}

TEST(Memory, StoreModesWithAndWithoutCollisions) {
  std::mt19937_64 random(6);
  for (const char* mode : {"", "add ", "mul ", "min ", "max "})
    for (DType d :
         {DType::Bool, DType::UInt8, DType::Int64, DType::BFloat16, DType::Float32, DType::Complex64}) {
      if (is_complex(d) && (mode[0] == 'm' && mode[1] != 'u')) continue;
      const auto k = parse_kernel(fmt::format(
          R"(kernel scatter(x: {0} in, index: i64 in, m: b8 in, y: {0} out, z: {0} out, w: {0} out) sizes(s0, s1) vector outer
for i0 < s0, i1 < s1
  stage
    %0 = load i64 index[i0]
    %1 = load {0} x[i0*s1 + i1]
    store {1}y[%0*s1 + i1] = %1
  stage
    %2 = load b8 m[i1]
    store {1}z[i0*s1 + i1] = %1 if %2
    store {1}w[i0*s1*2 + i1*2] = %1
)",
          info(d).short_name, mode));
      const int64_t rows = 9, columns = 35;
      std::vector<int64_t> index(rows);
      for (auto& v : index) v = static_cast<int64_t>(random() % 4);
      Bytes bytes(rows * 8);
      std::memcpy(bytes.data(), index.data(), bytes.size());
      EXPECT_EQ(difference(k,
                           {small_data(d, rows * columns, random), bytes,
                            sample_data(DType::Bool, columns, random), small_data(d, 4 * columns, random),
                            small_data(d, rows * columns, random), small_data(d, 2 * rows * columns, random)},
                           {rows, columns}),
                "");
    }
}

TEST(Memory, ScattersAlongAnInnerLoop) {
  std::mt19937_64 random(7);
  const auto k =
      parse_kernel(R"(kernel k(x: f32 in, index: i64 in, y: f32 out, z: f32 out) sizes(s0, s1) vector inner
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1 = load i64 index[r0]
    store add y[%1] = %0
    %2 = reduce sum %0
  stage for r0 < s1
    %3 = load f32 z[i0*s1 + r0]
    %4 = add f32 %3, %2
    store z[i0*s1 + r0] = %4
)");
  for (int64_t n : {1, 64, 100}) {
    std::vector<int64_t> index(n);
    for (auto& v : index) v = static_cast<int64_t>(random() % 4);
    Bytes bytes(n * 8);
    std::memcpy(bytes.data(), index.data(), bytes.size());
    EXPECT_EQ(difference(k,
                         {small_data(DType::Float32, 5 * n, random), bytes,
                          small_data(DType::Float32, 4, random), small_data(DType::Float32, 5 * n, random)},
                         {5, n}),
              "");
  }
}

TEST(Memory, RaggedInnerLoops) {
  std::mt19937_64 random(8);
  for (const char* axis : {"outer", "none", "inner"}) {
    const auto k =
        parse_kernel(fmt::format(R"(kernel k(x: f32 in, offsets: i64 in, y: f32 out) sizes(s0) vector {}
for i0 < s0
  stage
    %0 = load i64 offsets[i0]
    %1 = load i64 offsets[i0 + 1]
    %2 = sub i64 %1, %0
  stage for r0 < %2
    %3 = load f32 x[r0 + %0]
    %4 = reduce sum %3
  stage
    store y[i0] = %4
)",
                                 axis));
    std::vector<int64_t> offsets{0, 3, 3, 80, 150, 151, 200};
    Bytes bytes(offsets.size() * 8);
    std::memcpy(bytes.data(), offsets.data(), bytes.size());
    EXPECT_EQ(difference(k, {small_data(DType::Float32, 200, random), bytes, Bytes(6 * 4)}, {6}), "");
  }
}

TEST(Launch, ThreadsGiveWhatOneThreadGives) {
  std::mt19937_64 random(9);
  const auto k = parse_kernel(R"(kernel k(x: f32 in, y: f32 out) sizes(s0, s1) vector inner
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1, %2 = reduce online_softmax %0
  stage for r0 < s1
    %3 = load f32 x[i0*s1 + r0]
    %4 = sub f32 %3, %1
    %5 = exp f32 %4
    %6 = div f32 %5, %2
    store y[i0*s1 + r0] = %6
)");
  EXPECT_EQ(difference(k, {small_data(DType::Float32, 64 * 301, random), Bytes(64 * 301 * 4)}, {64, 301}),
            "");
}

TEST(Launch, CountsTasks) {
  const auto k = compile_kernel(parse_kernel(R"(kernel k(y: f32 out) sizes(s0, s1) vector outer
for i0 < s0, i1 < s1
  stage
    %0 = constant f32 1
    store y[i0*s1 + i1] = %0
)"),
                                {.cached = false});
  const int64_t sizes[] = {6, 7};
  EXPECT_EQ(k->task_count(sizes), 42);
}

}  // namespace
}  // namespace fl::codegen
