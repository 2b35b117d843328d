// TFLOP/s of the GPU libraries' matrix products and convolutions, by events around many calls, and the time
// that making a plan takes. Argument: only the cases whose names contain it.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "flambeau/library/cuda/attention.h"
#include "flambeau/library/cuda/convolution.h"
#include "flambeau/library/cuda/cublaslt.h"
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/library/cuda/driver.h"
#include "flambeau/library/cuda/matmul.h"

using namespace fl::library;
using namespace fl::library::cuda;

namespace {

using Clock = std::chrono::steady_clock;

const char* wanted = "";

/// Random numbers in (-0.5, 0.5): what a matrix unit's clock depends on.
class Memory final : public DeviceWorkspace {
 public:
  explicit Memory(int64_t elements, ScalarKind dtype) {
    const int64_t bytes = elements * scalar_bytes(dtype);
    FL_CUDA(cuMemAlloc, &address_, bytes);
    std::vector<uint16_t> host(bytes / 2);
    std::mt19937 random(1);
    for (uint16_t& x : host)
      x = static_cast<uint16_t>(0x3c00 + random() % 0x200) ^ (random() % 2 ? 0x8000 : 0);
    FL_CUDA(cuMemcpyAsync, address_, reinterpret_cast<CUdeviceptr>(host.data()), bytes, nullptr);
    FL_CUDA(cuStreamSynchronize, nullptr);
  }
  Memory() { FL_CUDA(cuMemAlloc, &address_, kBytes); }
  ~Memory() override { driver().cuMemFree(address_); }
  Memory(const Memory&) = delete;
  void* bytes(int64_t count) override {
    FL_CHECK(count <= kBytes, RuntimeError, "{} bytes of scratch", count);
    return data();
  }
  void* data() const { return reinterpret_cast<void*>(address_); }

 private:
  static constexpr int64_t kBytes = int64_t{1} << 32;
  CUdeviceptr address_ = 0;
};

Memory& workspace() {
  static Memory memory;
  return memory;
}

struct Times {
  double device_ms, host_us;  // of a call
};

Times measure(const std::function<void()>& call) {
  CUevent from, to;
  FL_CUDA(cuEventCreate, &from, 0);
  FL_CUDA(cuEventCreate, &to, 0);
  for (int i = 0; i < 5; ++i) call();
  constexpr int kCalls = 50;
  FL_CUDA(cuStreamSynchronize, nullptr);
  FL_CUDA(cuEventRecord, from, nullptr);
  const auto start = Clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const double host = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  FL_CUDA(cuEventRecord, to, nullptr);
  FL_CUDA(cuEventSynchronize, to);
  float ms = 0;
  FL_CUDA(cuEventElapsedTime, &ms, from, to);
  return {ms / kCalls, host / kCalls};
}

template <class MakePlan, class Run>
void report(const std::string& name, double operations, const MakePlan& make_plan, const Run& run) {
  if (name.find(wanted) == std::string::npos) return;
  const auto start = Clock::now();
  const auto plan = make_plan();
  const double plan_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (!plan) return fmt::print("{:<44} not taken\n", name);
  const Times t = measure([&] { run(*plan); });
  fmt::print("{:<44} {:>9.4f} ms {:>6.1f} TFLOP/s  host {:>5.1f} us  plan {:>6.1f} ms  {}\n", name,
             t.device_ms, operations / t.device_ms * 1e-9, t.host_us, plan_ms, plan->implementation());
  std::fflush(stdout);
}

void bench_matmul(int64_t n, ScalarKind dtype, bool tf32, bool b_columns) {
  MatmulDesc d = MatmulDesc::dense(dtype, n, n, n);
  if (b_columns) d.b = {{0, 0}, 1, n};
  const Memory a(n * n, dtype), b(n * n, dtype), c(n * n, dtype);
  report(
      fmt::format("matmul {}{} {}{}", scalar_name(dtype), tf32 ? " tf32" : "", n, b_columns ? " b^T" : ""),
      2.0 * n * n * n, [&] { return plan_matmul(d, 0, {.tf32 = tf32}); },
      [&](const DeviceMatmul& plan) {
        plan.run(a.data(), b.data(), nullptr, c.data(), nullptr, workspace());
      });
}

void bench_convolution(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel, int64_t stride,
                       ScalarKind dtype, ConvolutionDesc::Layout layout) {
  ConvolutionDesc d;
  d.dtype = dtype;
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  d.input = {size, size, 1};
  d.kernel = {kernel, kernel, 1};
  d.stride = {stride, stride, 1};
  d.padding_begin = d.padding_end = {kernel / 2, kernel / 2, 0};
  d.set_layout(layout, layout);
  const int64_t outputs = batch * out * d.output()[0] * d.output()[1];
  const Memory x(batch * in * size * size, dtype), w(out * in * kernel * kernel, dtype), y(outputs, dtype);
  const char* passes[] = {"forward", "by input", "by weight"};
  for (const ConvolutionPass pass :
       {ConvolutionPass::Forward, ConvolutionPass::BackwardData, ConvolutionPass::BackwardWeights}) {
    d.pass = pass;
    report(
        fmt::format("conv {} {} {}x{}x{}x{} to {} k{} s{} {}", scalar_name(dtype),
                    layout == ConvolutionDesc::Layout::ChannelsLast ? "last" : "first", batch, in, size, size,
                    out, kernel, stride, passes[static_cast<int>(pass)]),
        2.0 * outputs * in * kernel * kernel, [&] { return plan_convolution(d, 0); },
        [&](const DeviceConvolution& plan) {
          plan.run({x.data(), w.data(), nullptr, y.data()}, nullptr, workspace());
        });
  }
}

void bench_attention(int64_t batch, int64_t heads, int64_t tokens, int64_t width, bool causal) {
  AttentionDesc d;
  d.batch = batch;
  d.heads = d.key_heads = heads;
  d.queries = d.keys = tokens;
  d.width = d.value_width = width;
  d.causal = causal;
  d.scale = 0.125f;
  d.set_layout(false);
  const int64_t elements = batch * heads * tokens * width;
  const Memory q(elements, d.dtype), k(elements, d.dtype), v(elements, d.dtype), o(elements, d.dtype);
  const Memory g(elements, d.dtype), dq(elements, d.dtype), dk(elements, d.dtype), dv(elements, d.dtype);
  const Memory stats(batch * heads * tokens, ScalarKind::F32);
  const AttentionData data{.query = q.data(),
                           .key = k.data(),
                           .value = v.data(),
                           .output = o.data(),
                           .stats = stats.data(),
                           .output_gradient = g.data(),
                           .query_gradient = dq.data(),
                           .key_gradient = dk.data(),
                           .value_gradient = dv.data()};
  for (const AttentionPass pass : {AttentionPass::ForwardWithStats, AttentionPass::Backward}) {
    d.pass = pass;
    const double products = pass == AttentionPass::Backward ? 5 : 2;
    report(
        fmt::format("attention bf16 {}x{}x{}x{}{} {}", batch, heads, tokens, width, causal ? " causal" : "",
                    pass == AttentionPass::Backward ? "backward" : "forward"),
        products * 2 * elements * tokens / (causal ? 2 : 1), [&] { return plan_attention(d, 0); },
        [&](const DeviceAttention& plan) { plan.run(data, nullptr, workspace()); });
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) wanted = arguments[1];
  if (!find_driver() || !find_cublaslt() || !find_cudnn()) {
    fmt::print("no GPU, or no libraries: {} {} {}\n", why_no_driver(), why_no_cublaslt(), why_no_cudnn());
    return 0;
  }
  CUdevice device;
  CUcontext context;
  FL_CUDA(cuDeviceGet, &device, 0);
  FL_CUDA(cuDevicePrimaryCtxRetain, &context, device);
  FL_CUDA(cuCtxSetCurrent, context);
  fmt::print("{}, {}\n", cublaslt_version(), cudnn_version());
  using Layout = ConvolutionDesc::Layout;
  for (const bool transposed : {false, true}) bench_matmul(4096, ScalarKind::BF16, false, transposed);
  bench_matmul(1024, ScalarKind::BF16, false, false);
  bench_matmul(64, ScalarKind::BF16, false, false);
  bench_matmul(4096, ScalarKind::F32, true, false);
  bench_matmul(4096, ScalarKind::F32, false, false);
  bench_convolution(64, 64, 56, 64, 3, 1, ScalarKind::BF16, Layout::ChannelsLast);
  bench_convolution(64, 64, 56, 256, 1, 1, ScalarKind::BF16, Layout::ChannelsLast);
  bench_convolution(64, 128, 56, 128, 3, 2, ScalarKind::BF16, Layout::ChannelsLast);
  bench_convolution(64, 3, 224, 64, 7, 2, ScalarKind::BF16, Layout::ChannelsLast);
  bench_convolution(64, 64, 56, 64, 3, 1, ScalarKind::BF16, Layout::Contiguous);
  bench_convolution(64, 64, 56, 64, 3, 1, ScalarKind::F32, Layout::Contiguous);
  bench_convolution(64, 64, 56, 64, 3, 1, ScalarKind::F32, Layout::ChannelsLast);
  for (const bool causal : {false, true}) bench_attention(8, 12, 512, 64, causal);
  bench_attention(2, 16, 4096, 128, true);
  return 0;
}
