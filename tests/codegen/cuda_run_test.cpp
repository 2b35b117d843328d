// Kernels on a GPU against the interpreter, to the bit. All other tests of this folder run there, too, with
// FLAMBEAU_TEST_DEVICE=cuda.
#include <gtest/gtest.h>

#include "cuda_compare.h"
#include "flambeau/base/error.h"
#include "flambeau/loop/interpret.h"
#include "kernel_texts.h"
#include "random_kernel.h"

namespace fl::codegen {
namespace {

using loop::parse_kernel;

class GpuKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!use_gpu()) GTEST_SKIP() << "no GPU: " << library::cuda::why_no_driver();
  }
  std::mt19937_64 random_{11};
};

std::string compared(const loop::Kernel& k, const std::vector<Bytes>& buffers,
                     const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params = {}) {
  const Outcome expected =
      run_on(buffers, [&](std::span<void* const> p) { loop::interpret(k, p, sizes, params); });
  return gpu_difference(k, expected, buffers, sizes, params);
}

TEST_F(GpuKernels, RandomOnesMatchTheInterpreter) {
  const int64_t count = number_from("FLAMBEAU_FUZZ_COUNT", 60), seed = number_from("FLAMBEAU_FUZZ_SEED", 1);
  int failures = 0;
  for (int64_t n = 0; n < count && failures < 6; ++n) {
    const RandomKernel r = random_kernel(static_cast<uint64_t>(seed + n), (seed + n) % 2 == 1);
    std::string what;
    try {
      what = compared(r.kernel, r.data, r.sizes, r.params);
    } catch (const Error& e) {
      what = e.message();
    }
    if (what.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed + n << "\n" << what;
  }
}

TEST_F(GpuKernels, RowsOfEveryLengthAndNumberOfLanes) {
  for (const char* d : {"f32", "bf16", "f64"})
    for (int lanes : {1, 8, 64, 256, 1024})
      for (const char* op : {"sum", "welford", "online_softmax", "argmax"}) {
        // Of float64, exponentials have no GPU code.
        if (std::string_view(d) == "f64" && std::string_view(op) == "online_softmax") continue;
        const auto k = parse_kernel(row_kernel(d, op, lanes));
        const DType dtype = k.buffers[0].dtype;
        for (int64_t columns : {1, 3, 8, 64, 100, 256, 1000, 4096}) {
          const int64_t rows = columns > 1000 ? 2 : 5;
          EXPECT_EQ(
              compared(k,
                       {sample_data(dtype, rows * columns, random_),
                        Bytes(rows * size_of(k.buffers[1].dtype)), Bytes(rows * columns * size_of(dtype))},
                       {rows, columns}),
              "");
        }
      }
}

TEST_F(GpuKernels, ColumnsOfEveryLength) {
  for (int lanes : {8, 64, 256})
    for (const char* op : {"sum", "welford", "max"}) {
      const auto k = parse_kernel(column_kernel(op, lanes));
      for (int64_t rows : {0, 1, 7, 64, 1000})
        for (int64_t columns : {1, 5, 16, 33, 200})
          EXPECT_EQ(
              compared(k, {sample_data(DType::Float32, 2 * rows * columns, random_), Bytes(2 * columns * 4)},
                       {2, rows, columns}),
              "");
    }
}

// Whole numbers: sums are exact whatever the order.
TEST_F(GpuKernels, StoresThatMeetAreCombined) {
  for (const char* mode : {"add", "mul", "min", "max"})
    for (DType d : kAllDTypes) {
      if (is_complex(d) && std::string_view(mode) != "add" && std::string_view(mode) != "mul") continue;
      if (d == DType::Complex128 && std::string_view(mode) == "mul") continue;
      const auto k =
          parse_kernel(fmt::format(R"(kernel k(x: {0} in, index: i64 in, y: {0} out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load i64 index[i0]
    %1 = load {0} x[i0]
    store {1} y[%0] = %1
)",
                                   info(d).short_name, mode));
      const GpuKernel kernel(compile_for_gpu(k));
      const bool product = std::string_view(mode) == "mul";
      const int64_t count = product ? 60 : 3000, slots = 37;
      Bytes index;
      for (int64_t n = 0; n < count; ++n) {
        const auto bits = loop::ScalarBits::of(static_cast<int64_t>(random_() % slots));
        index.insert(index.end(), bits.bytes, bits.bytes + 8);
      }
      Bytes x = small_data(d, count, random_);
      if (product) {  // of 1 and 2 alone
        x.clear();
        for (int64_t n = 0; n < count; ++n) {
          const auto bits = loop::ScalarBits::of(d, Literal(static_cast<int64_t>(1 + random_() % 2)));
          x.insert(x.end(), bits.bytes, bits.bytes + size_of(d));
        }
      }
      const std::vector<Bytes> buffers{x, index, small_data(d, slots, random_)};
      const Outcome expected = run_on(
          buffers, [&](std::span<void* const> p) { loop::interpret(k, p, std::vector<int64_t>{count}); });
      const Outcome got = run_on_gpu(kernel, k, buffers, {count}, {});
      // Sums of thousands leave the whole numbers of half types.
      if (std::string_view(mode) == "add" && (d == DType::Float16 || d == DType::BFloat16)) continue;
      EXPECT_EQ(first_difference(k, expected.buffers, got.buffers), "") << name(d) << " " << mode;
    }
}

TEST_F(GpuKernels, ReportTheCheckThatFails) {
  const auto k = parse_kernel(R"(kernel k(x: i64 in, y: i64 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load i64 x[i0]
    %1 = constant i64 1000
    %2 = lt b8 %0, %1
    check %2, %0, "value {} is wrong"
    %3 = constant i64 -1000
    %4 = lt b8 %3, %0
    check %4, %0, "value {} is too small"
    store y[i0] = %0
)");
  const GpuKernel kernel(compile_for_gpu(k));
  for (const int64_t bad : {0, 1234, -5678})
    for (const int64_t count : {5, 100000}) {
      Bytes x(static_cast<size_t>(count) * 8);
      std::memcpy(x.data() + x.size() / 16 * 8, &bad, 8);
      const Outcome got = run_on_gpu(kernel, k, {x, Bytes(x.size())}, {count}, {});
      EXPECT_EQ(got.error, bad == 0 ? "" : bad > 0 ? "value 1234 is wrong" : "value -5678 is too small");
      EXPECT_EQ(got.buffers[1], x);
    }
}

TEST_F(GpuKernels, ValuesComeWithTheLaunch) {
  const auto k = parse_kernel(
      R"(kernel k(x: f32 in, scale: f16 value, c: c64 value, flag: b8 value, y: f32 out) sizes(s0) params(b8, c128, i8) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = load f16 scale[0]
    %2 = cast f32 %1
    %3 = mul f32 %0, %2
    %4 = load c64 c[0]
    %5 = imag f32 %4
    %6 = add f32 %3, %5
    %7 = param b8 0
    %8 = select f32 %7, %6, %0
    %9 = load b8 flag[0]
    %10 = param c128 1
    %11 = imag f64 %10
    %12 = cast f32 %11
    %13 = select f32 %9, %12, %8
    %14 = add f32 %13, %8
    %15 = param i8 2
    %16 = cast f32 %15
    %17 = mul f32 %14, %16
    store y[i0] = %17
)");
  for (bool flag : {false, true})
    EXPECT_EQ(compared(k,
                       {small_data(DType::Float32, 1000, random_), small_data(DType::Float16, 1, random_),
                        small_data(DType::Complex64, 1, random_), Bytes{flag}, Bytes(4000)},
                       {1000},
                       {loop::ScalarBits::of(!flag), loop::ScalarBits::of(std::complex<double>(1.5, 2.5)),
                        loop::ScalarBits::of(int8_t{-3})}),
              "");
}

}  // namespace
}  // namespace fl::codegen
