// PTX of kernels: what the text must contain, and that NVIDIA's assembler takes it. Needs no GPU.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "assemble.h"
#include "flambeau/base/error.h"
#include "flambeau/codegen/gpu/compile.h"
#include "kernel_texts.h"
#include "random_kernel.h"

namespace fl::codegen {
namespace {

using loop::parse_kernel;

std::string elementwise(std::string_view in, std::string_view out) {
  return fmt::format(R"(kernel k(x: {0} in, y: {0} in, z: {1} out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load {0} x[i0]
    %1 = load {0} y[i0]
    %2 = cast f32 %0
    %3 = cast f32 %1
    %4 = add f32 %2, %3
    %5 = cast {1} %4
    store z[i0] = %5
)",
                     in, out);
}

const char* kSoftmax = R"(kernel softmax(x: f32 in, y: f32 out) sizes(s0, s1) vector inner lanes 256
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

std::string ptx_of(std::string_view text) { return make_kernel_ptx(parse_kernel(text), {}); }

void expect_assembles(const std::string& ptx, const std::string& what) {
  if (!has_assembler()) return;
  const std::string problem = assemble(ptx);
  EXPECT_EQ(problem, "") << what << "\n" << ptx;
}

TEST(Ptx, AssemblerIsThere) {
  if (!has_assembler()) GTEST_SKIP() << "no ptxas on the PATH: PTX is checked as text alone";
}

TEST(Ptx, ContiguousMemoryMovesSixteenBytesAtOnce) {
  const std::regex load("ld\\.global\\.v4\\.[bfu]32"), store("st\\.global\\.v4\\.[bfu]32");
  for (const char* d : {"f32", "bf16", "f16", "i32"}) {
    const std::string ptx = ptx_of(elementwise(d, d));
    EXPECT_TRUE(std::regex_search(ptx, load)) << d << "\n" << ptx;
    EXPECT_TRUE(std::regex_search(ptx, store)) << d << "\n" << ptx;
    expect_assembles(ptx, d);
  }
  const std::string wide = ptx_of(elementwise("f64", "f64"));
  EXPECT_TRUE(std::regex_search(wide, std::regex("ld\\.global\\.v2\\.[bfu]64"))) << wide;
  const std::string rows = ptx_of(kSoftmax);
  EXPECT_TRUE(std::regex_search(rows, load)) << rows;
  EXPECT_TRUE(std::regex_search(rows, store)) << rows;
  expect_assembles(rows, "softmax");
}

TEST(Ptx, ArithmeticIsNeverContractedOrFlushed) {
  const std::string ptx =
      ptx_of(R"(kernel k(x: f32 in, d: f64 in, y: f32 out, e: f64 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = mul f32 %0, %0
    %2 = add f32 %1, %0
    %3 = div f32 %2, %0
    %4 = sqrt f32 %3
    store y[i0] = %4
    %5 = load f64 d[i0]
    %6 = mul f64 %5, %5
    %7 = add f64 %6, %5
    %8 = div f64 %7, %5
    %9 = sqrt f64 %8
    store e[i0] = %9
)");
  EXPECT_FALSE(std::regex_search(ptx, std::regex("\\bfma\\."))) << ptx;
  EXPECT_FALSE(std::regex_search(ptx, std::regex("\\.(ftz|approx|full)\\."))) << ptx;
  EXPECT_FALSE(std::regex_search(ptx, std::regex("\\b(add|mul|sub)\\.f(32|64)"))) << ptx;
  for (const char* wanted : {"div.rn.f32", "sqrt.rn.f32", "div.rn.f64", "sqrt.rn.f64"})
    EXPECT_NE(ptx.find(wanted), std::string::npos) << wanted;
  expect_assembles(ptx, "arithmetic");
}

TEST(Ptx, ValuesAndParametersAreArguments) {
  const auto k = parse_kernel(
      R"(kernel k(x: f32 in, scale: f16 value, c: c64 value, y: f32 out) sizes(s0) params(b8, f64) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = load f16 scale[0]
    %2 = cast f32 %1
    %3 = mul f32 %0, %2
    %4 = load c64 c[0]
    %5 = real f32 %4
    %6 = add f32 %3, %5
    %7 = param b8 0
    %8 = select f32 %7, %6, %0
    store y[i0] = %8
)");
  EXPECT_EQ(parse_kernel(k.str()).str(), k.str());
  const std::string ptx = make_kernel_ptx(k, {});
  expect_assembles(ptx, "values");
  // The order of the parameters is what launches rely on.
  const std::regex parameter("\\.param ([^\\n]*)kernel_param_(\\d+)");
  std::vector<std::string> types;
  for (std::sregex_iterator it(ptx.begin(), ptx.end(), parameter), end; it != end; ++it)
    if (std::stoul((*it)[2]) == types.size()) types.push_back((*it)[1]);
  ASSERT_EQ(types.size(), 9u) << ptx;
  EXPECT_NE(types[1].find("16"), std::string::npos) << types[1];
  EXPECT_NE(types[2].find(".b8"), std::string::npos) << types[2];
  EXPECT_NE(types[5].find("8"), std::string::npos) << types[5];
}

TEST(Ptx, TooManyArgumentsAreRefused) {
  std::string buffers, body;
  for (int n = 0; n < 5000; ++n) buffers += fmt::format("{}x{}: f32 in", n ? ", " : "", n);
  const auto k =
      parse_kernel("kernel big(" + buffers + ", y: f32 out) sizes(s0) vector outer\nfor i0 < s0\n" +
                   "  stage\n    %0 = load f32 x0[i0]\n    store y[i0] = %0\n");
  try {
    make_kernel_ptx(k, {});
    ADD_FAILURE() << "nothing is refused";
  } catch (const ValueError& e) {
    EXPECT_NE(e.message().find("40032 bytes of arguments (5001 buffers, 1 sizes"), std::string::npos)
        << e.message();
  }
}

TEST(Ptx, OldGpusAreRefused) {
  EXPECT_THROW(make_kernel_ptx(parse_kernel(elementwise("f32", "f32")), {.capability = 75}), ValueError);
}

TEST(Ptx, CallsNothingUnknown) {
  const std::string ptx = ptx_of(R"(kernel k(x: i64 in, y: i64 out, h: bf16 out) sizes(s0, s1) vector outer
for i0 < s0
  stage
    %0 = load i64 x[i0]
    %1 = pow i64 %0, %0
    store add y[%0] = %1
    %2 = cast bf16 %1
    store max h[%0] = %2
    %3 = lt b8 %0, %1
    check %3, %0, "value {} is wrong"
)");
  EXPECT_EQ(ptx.find(".extern"), std::string::npos) << ptx;
  expect_assembles(ptx, "calls");
}

TEST(Ptx, RowsAndColumnsAssemble) {
  for (int lanes : {1, 8, 64, 256, 1024}) {
    for (const char* op : {"sum", "welford", "online_softmax", "argmax"})
      for (const char* d : {"f32", "bf16"}) expect_assembles(ptx_of(row_kernel(d, op, lanes)), op);
    expect_assembles(ptx_of(row_kernel("f64", "welford", lanes)), "welford of f64");
    for (const char* op : {"sum", "welford", "max"}) expect_assembles(ptx_of(column_kernel(op, lanes)), op);
  }
}

TEST(Ptx, BoolsAreCompared) {
  for (const char* op : {"eq", "ne", "lt", "le"})
    for (const char* axis : {"outer", "none"})
      expect_assembles(ptx_of(fmt::format(R"(kernel k(x: f32 in, y: b8 in, z: b8 out) sizes(s0) vector {}
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = cast b8 %0
    %2 = load b8 y[i0]
    %3 = {} b8 %1, %2
    store z[i0] = %3
)",
                                          axis, op)),
                       op);
}

// PTX does not say what the absolute value of the smallest integer is.
TEST(Ptx, AbsoluteValuesWrap) {
  for (const char* type : {"i8", "i16", "i32", "i64"}) {
    const auto k = parse_kernel(fmt::format(R"(kernel k(x: {0} in, y: {0} out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load {0} x[i0]
    %1 = abs {0} %0
    store y[i0] = %1
)",
                                            type));
    EXPECT_EQ(make_kernel_ptx(k, {}).find("abs.s"), std::string::npos) << type;
  }
}

TEST(Ptx, RandomKernelsAssemble) {
  const int64_t count = number_from("FLAMBEAU_FUZZ_COUNT", 60), seed = number_from("FLAMBEAU_FUZZ_SEED", 1);
  int failures = 0;
  for (int64_t n = 0; n < count && failures < 5; ++n) {
    const RandomKernel random = random_kernel(static_cast<uint64_t>(seed + n));
    std::string problem;
    try {
      const std::string ptx = make_kernel_ptx(random.kernel, {.deterministic = (seed + n) % 2 == 1});
      if (has_assembler()) problem = assemble(ptx);
      if (!problem.empty()) problem += "\n" + ptx;
    } catch (const NotImplementedError&) {
    } catch (const Error& e) {
      problem = e.message();
    }
    if (problem.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed + n << "\n" << problem << "\n" << random.kernel.str();
  }
}

TEST(LaunchShape, ShapesFollowTheSizes) {
  const auto pointwise = compile_for_gpu(parse_kernel(elementwise("f32", "f32")));
  const int64_t none[] = {0}, many[] = {1 << 20};
  EXPECT_EQ(pointwise->shape(none).blocks, 0u);
  EXPECT_EQ(pointwise->shape(many).blocks, 1024u);
  EXPECT_EQ(pointwise->shape(many).threads, 256u);
  const auto rows = compile_for_gpu(parse_kernel(kSoftmax));
  const int64_t sizes[] = {1000, 1024}, empty[] = {0, 1024};
  EXPECT_EQ(rows->shape(sizes).blocks, 1000u);
  EXPECT_EQ(rows->shape(sizes).threads, 64u);
  EXPECT_EQ(rows->shape(empty).blocks, 0u);
}

}  // namespace
}  // namespace fl::codegen
