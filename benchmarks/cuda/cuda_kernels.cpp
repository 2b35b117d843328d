// Memory-bound kernels of the loop IR on a GPU: times from events, beside a copy of as many bytes.
//   bench_cuda [names...]
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "flambeau/base/error.h"
#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/library/cuda/driver.h"

namespace {

using namespace fl;
using codegen::GpuCode;
using library::cuda::driver;

struct Case {
  std::string name, kernel;
  std::vector<int64_t> sizes;
  std::vector<int64_t> elements;  ///< of each buffer
  double megabytes;               ///< that have to move
};

constexpr int64_t kRows = 8192, kColumns = 4096, kCount = kRows * kColumns;

std::string pointwise(std::string_view d) {
  const bool half = d != "f32";
  const auto load = [&](int id, std::string_view buffer) {
    return half ? fmt::format("    %{} = load {} {}[i0]\n    %{} = cast f32 %{}\n", id + 100, d, buffer, id,
                              id + 100)
                : fmt::format("    %{} = load f32 {}[i0]\n", id, buffer);
  };
  return fmt::format(
             "kernel chain(x: {0} in, y: {0} in, z: {0} out) sizes(s0) vector outer\nfor i0 < s0\n  stage\n",
             d) +
         load(0, "x") + load(1, "y") + R"(    %2 = mul f32 %0, %1
    %3 = constant f32 1
    %4 = add f32 %2, %3
    %5 = mul f32 %4, %4
    %6 = mul f32 %5, %4
    %7 = constant f32 0.044715
    %8 = fma f32 %6, %7, %4
    %9 = constant f32 0.7978845608028654
    %10 = mul f32 %8, %9
    %11 = tanh f32 %10
    %12 = add f32 %11, %3
    %13 = constant f32 0.5
    %14 = mul f32 %13, %4
    %15 = mul f32 %14, %12
    %16 = neg f32 %1
    %17 = exp f32 %16
    %18 = add f32 %17, %3
    %19 = div f32 %3, %18
    %20 = mul f32 %15, %19
)" + (half ? fmt::format("    %21 = cast {} %20\n    store z[i0] = %21\n", d) : "    store z[i0] = %20\n");
}

const char* kCopy = R"(kernel copy(x: f32 in, y: f32 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    store y[i0] = %0
)";

std::string lanes_text(int lanes) { return lanes == 64 ? "" : fmt::format(" lanes {}", lanes); }

std::string softmax(int lanes) {
  return fmt::format(R"(kernel softmax(x: f32 in, y: f32 out) sizes(s0, s1) vector inner{}
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
)",
                     lanes_text(lanes));
}

// The maximum, the sum of exponentials and the quotients, one after the other.
std::string softmax_of_stages(int lanes) {
  return fmt::format(R"(kernel softmax(x: f32 in, y: f32 out) sizes(s0, s1) vector inner{}
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1 = reduce max %0
  stage for r0 < s1
    %2 = load f32 x[i0*s1 + r0]
    %3 = sub f32 %2, %1
    %4 = exp f32 %3
    %5 = reduce sum %4
  stage for r0 < s1
    %6 = load f32 x[i0*s1 + r0]
    %7 = sub f32 %6, %1
    %8 = exp f32 %7
    %9 = div f32 %8, %5
    store y[i0*s1 + r0] = %9
)",
                     lanes_text(lanes));
}

std::string layer_norm(int lanes) {
  return fmt::format(
      R"(kernel layer_norm(x: f32 in, r: f32 in, w: f32 in, b: f32 in, y: f32 out) sizes(s0, s1) vector inner{}
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1 = load f32 r[i0*s1 + r0]
    %2 = add f32 %0, %1
    %3, %4, %5 = reduce welford %2
  stage
    %6 = div f32 %4, %5
    %7 = constant f32 1e-05
    %8 = add f32 %6, %7
    %9 = sqrt f32 %8
    %10 = constant f32 1
    %11 = div f32 %10, %9
  stage for r0 < s1
    %12 = load f32 x[i0*s1 + r0]
    %13 = load f32 r[i0*s1 + r0]
    %14 = add f32 %12, %13
    %15 = sub f32 %14, %3
    %16 = mul f32 %15, %11
    %17 = load f32 w[r0]
    %18 = load f32 b[r0]
    %19 = fma f32 %16, %17, %18
    store y[i0*s1 + r0] = %19
)",
      lanes_text(lanes));
}

std::string rms_norm(int lanes) {
  return fmt::format(R"(kernel rms_norm(x: f32 in, w: f32 in, y: f32 out) sizes(s0, s1) vector inner{}
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1 = mul f32 %0, %0
    %2 = reduce sum %1
  stage
    %3 = index i64 [s1]
    %4 = cast f32 %3
    %5 = div f32 %2, %4
    %6 = constant f32 1e-06
    %7 = add f32 %5, %6
    %8 = sqrt f32 %7
    %9 = constant f32 1
    %10 = div f32 %9, %8
  stage for r0 < s1
    %11 = load f32 x[i0*s1 + r0]
    %12 = mul f32 %11, %10
    %13 = load f32 w[r0]
    %14 = mul f32 %12, %13
    store y[i0*s1 + r0] = %14
)",
                     lanes_text(lanes));
}

std::string cross_entropy(int lanes) {
  return fmt::format(
      R"(kernel cross_entropy(x: f32 in, target: i64 in, y: f32 out) sizes(s0, s1) vector inner{}
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1, %2 = reduce online_softmax %0
  stage
    %3 = load i64 target[i0]
    %4 = load f32 x[i0*s1 + %3]
    %5 = log f32 %2
    %6 = add f32 %5, %1
    %7 = sub f32 %6, %4
    store y[i0] = %7
)",
      lanes_text(lanes));
}

std::string column_sum(std::string_view axis, int lanes) {
  return fmt::format(R"(kernel column_sum(x: f32 in, y: f32 out) sizes(s0, s1) vector {}{}
for i0 < s1
  stage for r0 < s0
    %0 = load f32 x[r0*s1 + i0]
    %1 = reduce sum %0
  stage
    store y[i0] = %1
)",
                     axis, lanes_text(lanes));
}

std::string column_sum_in_pieces(int lanes) {
  return fmt::format(R"(kernel column_sum(x: f32 in, y: f32 out) sizes(s0, s1, s2) vector outer_tree{}
for i0 < s0, i1 < s2
  stage for r0 < s1
    %0 = load f32 x[i0*s1*s2 + r0*s2 + i1]
    %1 = reduce sum %0
  stage
    store y[i0*s2 + i1] = %1
)",
                     lanes_text(lanes));
}

std::vector<Case> cases() {
  const double mb = kCount * 4e-6;
  std::vector<Case> out{
      {"copy", kCopy, {kCount}, {kCount, kCount}, 2 * mb},
      {"pointwise_chain", pointwise("f32"), {kCount}, {kCount, kCount, kCount}, 3 * mb},
      {"pointwise_chain_bf16", pointwise("bf16"), {kCount}, {kCount, kCount, kCount}, 1.5 * mb},
      {"pointwise_chain_odd", pointwise("f32"), {kCount - 1}, {kCount, kCount, kCount}, 3 * mb},
  };
  for (int lanes : {256, 512, 1024}) {
    const std::string suffix = fmt::format("_{}", lanes);
    out.push_back({"layer_norm" + suffix,
                   layer_norm(lanes),
                   {kRows, kColumns},
                   {kCount, kCount, kColumns, kColumns, kCount},
                   3 * mb});
    out.push_back({"softmax" + suffix, softmax(lanes), {kRows, kColumns}, {kCount, kCount}, 2 * mb});
    out.push_back({"softmax_of_stages" + suffix,
                   softmax_of_stages(lanes),
                   {kRows, kColumns},
                   {kCount, kCount},
                   2 * mb});
    out.push_back(
        {"rms_norm" + suffix, rms_norm(lanes), {kRows, kColumns}, {kCount, kColumns, kCount}, 2 * mb});
    out.push_back({"cross_entropy" + suffix,
                   cross_entropy(lanes),
                   {4096, 50304},
                   {int64_t{4096} * 50304, 4096, 4096},
                   4096 * 50304 * 4e-6});
  }
  out.push_back({"softmax_rows_of_2048_512", softmax(512), {2 * kRows, 2048}, {kCount, kCount}, 2 * mb});
  out.push_back({"softmax_of_stages_rows_of_2048_512",
                 softmax_of_stages(512),
                 {2 * kRows, 2048},
                 {kCount, kCount},
                 2 * mb});
  out.push_back({"softmax_of_stages_rows_of_1024_256",
                 softmax_of_stages(256),
                 {4 * kRows, 1024},
                 {kCount, kCount},
                 2 * mb});
  out.push_back({"layer_norm_rows_of_2048_512",
                 layer_norm(512),
                 {2 * kRows, 2048},
                 {kCount, kCount, 2048, 2048, kCount},
                 3 * mb});
  for (int lanes : {256, 1024}) {
    const std::string suffix = fmt::format("_{}", lanes);
    out.push_back(
        {"softmax_rows_of_1024" + suffix, softmax(lanes), {4 * kRows, 1024}, {kCount, kCount}, 2 * mb});
    out.push_back({"layer_norm_rows_of_1024" + suffix,
                   layer_norm(lanes),
                   {4 * kRows, 1024},
                   {kCount, kCount, 1024, 1024, kCount},
                   3 * mb});
    out.push_back({"layer_norm_rows_of_768" + suffix,
                   layer_norm(lanes),
                   {kCount / 768, 768},
                   {kCount, kCount, 768, 768, kCount},
                   3 * mb});
    out.push_back(
        {"softmax_odd_rows" + suffix, softmax(lanes), {kRows, kColumns - 1}, {kCount, kCount}, 2 * mb});
  }
  out.push_back({"column_sum_outer", column_sum("outer", 64), {kRows, kColumns}, {kCount, kColumns}, mb});
  for (int lanes : {64, 512})
    out.push_back({fmt::format("column_sum_tree_{}", lanes),
                   column_sum("outer_tree", lanes),
                   {kRows, kColumns},
                   {kCount, kColumns},
                   mb});
  // As a reduction in pieces has it.
  out.push_back({"column_sum_pieces_512",
                 column_sum_in_pieces(512),
                 {16, kRows / 16, kColumns},
                 {kCount, 16 * kColumns},
                 mb});
  out.push_back({"column_sum_pieces_768_512",
                 column_sum_in_pieces(512),
                 {64, kCount / 768 / 64, 768},
                 {kCount, 64 * 768},
                 mb});
  out.push_back(
      {"column_sum_tree_768_64", column_sum("outer_tree", 64), {kCount / 768, 768}, {kCount, 768}, mb});
  return out;
}

CUdeviceptr allocate(int64_t bytes) {
  CUdeviceptr out;
  FL_CUDA(cuMemAlloc, &out, static_cast<size_t>(bytes));
  return out;
}

class Timer {
 public:
  Timer() {
    FL_CUDA(cuEventCreate, &start_, 0);
    FL_CUDA(cuEventCreate, &end_, 0);
  }
  /// Median milliseconds of f's work on the device, the cache of the last run aside.
  template <class F>
  double run(F&& f) {
    std::vector<float> times;
    for (int n = 0; n < 25; ++n) {
      FL_CUDA(cuMemsetD8Async, flush_, 0, kFlush, nullptr);
      FL_CUDA(cuEventRecord, start_, nullptr);
      f();
      FL_CUDA(cuEventRecord, end_, nullptr);
      FL_CUDA(cuEventSynchronize, end_);
      float ms;
      FL_CUDA(cuEventElapsedTime, &ms, start_, end_);
      if (n >= 5) times.push_back(ms);
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

 private:
  static constexpr size_t kFlush = size_t{256} << 20;
  CUevent start_, end_;
  CUdeviceptr flush_ = allocate(kFlush);
};

void measure(const Case& c, Timer& timer, double copy_rate) {
  const auto k = loop::parse_kernel(c.kernel);
  const auto code = codegen::compile_for_gpu(k);
  CUmodule module;
  CUfunction function;
  FL_CUDA(cuModuleLoadDataEx, &module, code->ptx().c_str(), 0, nullptr, nullptr);
  FL_CUDA(cuModuleGetFunction, &function, module, "kernel");
  std::vector<CUdeviceptr> buffers;
  for (size_t n = 0; n < k.buffers.size(); ++n) {
    const int64_t bytes = c.elements[n] * size_of(k.buffers[n].dtype);
    buffers.push_back(allocate(bytes));
    // Bytes of small numbers of every floating dtype; indices are 0.
    FL_CUDA(cuMemsetD8Async, buffers[n], k.buffers[n].dtype == DType::Int64 ? 0 : 0x3c, bytes, nullptr);
  }
  std::vector<void*> arguments;
  for (CUdeviceptr& b : buffers) arguments.push_back(&b);
  for (const int64_t& s : c.sizes) arguments.push_back(const_cast<int64_t*>(&s));
  CUdeviceptr errors = 0;
  int64_t id = 0;
  arguments.push_back(&errors);
  arguments.push_back(&id);
  const codegen::LaunchShape shape = code->shape(c.sizes.data());
  const double ms = timer.run([&] {
    FL_CUDA(cuLaunchKernel, function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, nullptr, arguments.data(),
            nullptr);
  });
  int registers = 0, spilled = 0;
  FL_CUDA(cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  FL_CUDA(cuFuncGetAttribute, &spilled, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  const double rate = c.megabytes / ms / 1e3;
  std::printf("%-32s %8.4f ms %7.3f TB/s %5.1f%%  %u x %u, %d registers, %d local\n", c.name.c_str(), ms,
              rate, copy_rate > 0 ? 100 * rate / copy_rate : 100.0, shape.blocks, shape.threads, registers,
              spilled);
  std::fflush(stdout);
  for (CUdeviceptr b : buffers) FL_CUDA(cuMemFree, b);
  FL_CUDA(cuModuleUnload, module);
}

double copy_rate(Timer& timer) {
  const CUdeviceptr a = allocate(kCount * 4), b = allocate(kCount * 4);
  const double ms = timer.run([&] { FL_CUDA(cuMemcpyAsync, b, a, kCount * 4, nullptr); });
  FL_CUDA(cuMemFree, a);
  FL_CUDA(cuMemFree, b);
  const double rate = kCount * 8e-9 / ms;
  std::printf("%-32s %8.4f ms %7.3f TB/s\n", "copy by the driver", ms, rate);
  return rate;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CUdevice device;
    FL_CUDA(cuDeviceGet, &device, 0);
    CUcontext context;
    FL_CUDA(cuDevicePrimaryCtxRetain, &context, device);
    FL_CUDA(cuCtxSetCurrent, context);
    Timer timer;
    const double rate = copy_rate(timer);
    for (const Case& c : cases()) {
      const bool named =
          std::any_of(argv + 1, argv + argc, [&](const char* a) { return c.name.starts_with(a); });
      if (argc == 1 || named) measure(c, timer, rate);
    }
  } catch (const fl::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
