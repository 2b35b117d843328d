#include <gtest/gtest.h>

#include <cmath>

#include "flambeau/base/error.h"
#include "flambeau/loop/builder.h"
#include "flambeau/loop/interpret.h"

namespace fl::loop {
namespace {

const char* const kSoftmax = R"(kernel softmax(x: f32 in, y: f32 out) sizes(s0, s1) vector inner
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
)";

const char* const kEverything =
    R"(kernel everything(x: f32 in, index: i64 in, c: c64 in, y: f32 out, z: c64 out) sizes(s0, s1>=2) params(f32, i64) vector none
for i0 < s0, i1 < s1
  stage
    %0 = load i64 index[i0]
    %1 = constant i64 -3
    %2 = lt b8 %1, %0
    %3 = param f32 0
    %4 = index i64 [2*i1 + (i0 // s1)]
    %5 = constant c64 (1.5, -0)
    check %2, %0, "index {} is \"out\" of \\ bounds"
    store z[i0] = %5 if %2
  stage for r0 < s1
    %6 = load f32 x[%0*s1 + r0] if %2
    %7, %8 = scan argmax %6, %4
    %9 = cast f32 %8
    %10 = constant f32 inf
    %11 = fma f32 %9, %10, %7
    %12 = reduce sum %11
    store add y[r0 + i0*s1] = %7 if %2
  stage
    store y[i0] = %12
)";

TEST(KernelText, PrintsWhatItReads) {
  EXPECT_EQ(parse_kernel(kSoftmax).str(), kSoftmax);
  const std::string once = parse_kernel(kEverything).str();
  EXPECT_EQ(parse_kernel(once).str(), once);
  EXPECT_NE(once.find("check %2, %0, \"index {} is \\\"out\\\" of \\\\ bounds\""), std::string::npos);
  EXPECT_NE(once.find("store add y["), std::string::npos);
  EXPECT_NE(once.find("s1>=2"), std::string::npos);
}

TEST(KernelText, SaysWhichLineIsWrong) {
  const auto message = [](std::string_view text) {
    try {
      parse_kernel(text);
    } catch (const ValueError& e) {
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("kernel k(x: f33 in) vector none"),
            "line 1 of the kernel: expected a dtype such as f32, got 'f33 in) vector none'");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage\n%0 = frob f32 %0"),
            "line 3 of the kernel: expected an operation, got 'frob f32 %0'");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage\n%0 = constant f32 1\n%1 = add f32 %0"),
            "line 4 of the kernel: expected 2 operands of add, got ''");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage\n%0 = constant i64 1\nstore x[0] = %0"),
            "kernel k: store x[0] = %0: the value is int64, the buffer float32");
  EXPECT_EQ(message("kernel k(x: f32 in) vector inner lanes 48\nstage\n%0 = load f32 x[0]"),
            "kernel k: vector: expected a power of two up to 1024 as the number of lanes, got 48");
  EXPECT_EQ(message("kernel k(x: f32 value) sizes(s0) vector none\nfor i0 < s0\nstage\n%0 = load f32 x[i0]"),
            "kernel k: %0 = load x[i0]: a buffer that is given by value is read at index 0");
  EXPECT_EQ(message("kernel k(x: f32 in) vector none\nstage\n%0 = constant f32 1\nstore x[0] = %0"),
            "kernel k: store x[0] = %0: x is declared as read only");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage\n%0 = load f32 x[i0]"),
            "kernel k: %0 = load x[i0]: i0 is neither a size nor a variable of an enclosing loop");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage for r0 < 4\n%0 = load f32 x[r0]\nstage\n"
                    "store x[0] = %0"),
            "kernel k: store x[0] = %0: %0 is not visible here");
  EXPECT_EQ(message("kernel k(x: f16 out) vector none\nstage\n%0 = load f16 x[0]\n%1 = add f16 %0, %0"),
            "kernel k: %1 = add: not defined for float16");
  EXPECT_EQ(message("kernel k(x: f32 out) vector none\nstage\n%0 = constant f32 1\n%1 = scan sum %0"),
            "kernel k: scan: a stage with a scan has one inner loop, got 0");
}

TEST(Builder, SharesFoldsAndDropsInstructions) {
  Builder b("k");
  const Expr n = Expr::symbol("s0"), i = Expr::symbol("i0");
  const int x = b.add_buffer("x", DType::Float32, false), y = b.add_buffer("y", DType::Float32, true);
  b.set_outer({{i, n}});
  b.begin_stage({});
  const Val v = b.load(x, i);
  EXPECT_EQ(b.load(x, i).id, v.id);
  b.load(x, i + 1);
  const Val two = b.add(b.constant(DType::Float32, 1.5), b.constant(DType::Float32, 0.5));
  EXPECT_EQ(b.add(v, two).id, b.add(v, b.constant(DType::Float32, 2.0)).id);
  b.store(y, i, b.add(v, two));
  EXPECT_EQ(b.finish(VectorAxis::Outer).str(), R"(kernel k(x: f32 in, y: f32 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = constant f32 2
    %2 = add f32 %0, %1
    store y[i0] = %2
)");
}

TEST(Interpreter, ComputesSoftmax) {
  const Kernel k = parse_kernel(kSoftmax);
  const int64_t sizes[] = {3, 70};
  std::vector<float> x(210), y(210);
  for (int n = 0; n < 210; ++n) x[n] = std::sin(static_cast<float>(n)) * 5;
  void* const buffers[] = {x.data(), y.data()};
  interpret(k, buffers, sizes);
  for (int row = 0; row < 3; ++row) {
    double sum = 0;
    for (int n = 0; n < 70; ++n) sum += std::exp(static_cast<double>(x[row * 70 + n]));
    for (int n = 0; n < 70; ++n)
      EXPECT_NEAR(y[row * 70 + n], std::exp(static_cast<double>(x[row * 70 + n])) / sum, 1e-6);
  }
}

TEST(Interpreter, RaisesTheFirstFailedCheck) {
  const Kernel k = parse_kernel(R"(kernel k(x: i64 in) sizes(s0) vector none
for i0 < s0
  stage
    %0 = load i64 x[i0]
    %1 = constant i64 3
    %2 = lt b8 %0, %1
    check %2, %0, "index {} is out of bounds for dimension 0 with size 3"
)");
  const int64_t sizes[] = {4};
  int64_t x[] = {0, 5, 1, 7};
  void* const buffers[] = {x};
  try {
    interpret(k, buffers, sizes);
    FAIL() << "no error";
  } catch (const IndexError& e) {
    EXPECT_EQ(e.message(), "index 5 is out of bounds for dimension 0 with size 3");
  }
}

}  // namespace
}  // namespace fl::loop
