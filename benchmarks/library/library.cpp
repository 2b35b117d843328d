// GFLOP/s of the library's matrix products and convolutions, by the median and by the best of several runs.
// Argument: only the cases whose names contain it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "flambeau/library/convolution.h"
#include "flambeau/library/matmul.h"

using namespace fl::library;

namespace {

struct Seconds {
  double median, best;
};

Seconds measure(const std::function<void()>& call, double budget) {
  using Clock = std::chrono::steady_clock;
  const auto once = [&] {
    const auto start = Clock::now();
    call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  call();
  const double first = once();
  const int rounds = std::clamp(static_cast<int>(budget / std::max(first, 1e-7)), 7, 2000);
  std::vector<double> times(rounds);
  for (double& t : times) t = once();
  std::ranges::sort(times);
  return {times[rounds / 2], times[0]};
}

const char* wanted = "";  // only cases whose name contains it

void report(const std::string& name, double operations, const std::string& kernel,
            const std::function<void()>& call) {
  if (name.find(wanted) == std::string::npos) return;
  const Seconds s = measure(call, 0.05);
  fmt::print("{:<50} {:>9.1f} us {:>6.1f} GFLOP/s, best {:>6.1f}  {}\n", name, s.median * 1e6,
             operations / s.median * 1e-9, operations / s.best * 1e-9, kernel);
  std::fflush(stdout);
}

using Floats = std::vector<float>;

void bench_matmul(const std::string& name, const MatmulDesc& d) {
  const auto plan = plan_matmul(d);
  if (!plan) return fmt::print("{:<50} not taken\n", name);
  const int64_t batch = d.batch[0] * d.batch[1];
  Floats a(batch * d.m * d.k, 1), b(batch * d.k * d.n, 1), c(batch * d.m * d.n), bias(d.n, 1);
  report(name, 2.0 * batch * d.m * d.n * d.k, plan->implementation(),
         [&] { plan->run(a.data(), b.data(), bias.data(), c.data(), thread_workspace()); });
}

void bench_matmuls() {
  const int64_t sizes[][3] = {{2048, 1024, 1024}, {1024, 1024, 256}, {256, 256, 1024},
                              {1024, 256, 1024},  {64, 64, 64},      {16, 16, 16},
                              {4, 4, 4},          {1, 1024, 1024},   {1024, 1, 1024}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool transposed_b : {false, true}) {
      MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, m, n, k);
      if (transposed_b) d.b = {{0, 0}, 1, k};
      bench_matmul(fmt::format("matmul {}x{}x{}{}", m, n, k, transposed_b ? " b transposed" : ""), d);
    }
  }
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 2048, 1024, 1024);
  d.bias = true;
  d.bias_strides = {{0, 0}, 0, 1};
  bench_matmul("matmul 2048x1024x1024 bias", d);
  d.relu = true;
  bench_matmul("matmul 2048x1024x1024 bias relu", d);
}

void bench_convolution(const std::string& name, ConvolutionDesc d) {
  using Layout = ConvolutionDesc::Layout;
  const auto out = d.output();
  int64_t inputs = d.batch * d.in_channels, outputs = d.batch * d.out_channels;
  int64_t weights = d.out_channels * d.in_channels / d.groups;
  for (int i = 0; i < d.spatial; ++i) {
    inputs *= d.input[i];
    outputs *= out[i];
    weights *= d.kernel[i];
  }
  Floats input(inputs, 1), output(outputs, 1), weight(weights, 1);
  const double operations = 2.0 * outputs / d.out_channels * weights;
  for (const Layout layout : {Layout::ChannelsLast, Layout::Contiguous}) {
    const char* passes[] = {"forward", "data", "weights"};
    for (const auto pass :
         {ConvolutionPass::Forward, ConvolutionPass::BackwardData, ConvolutionPass::BackwardWeights}) {
      d.pass = pass;
      d.set_layout(layout, layout);
      const auto plan = plan_convolution(d);
      const std::string label = fmt::format("{} {} {}", name, layout == Layout::Contiguous ? "nchw" : "nhwc",
                                            passes[static_cast<int>(pass)]);
      if (!plan) {
        fmt::print("{:<50} not taken\n", label);
        continue;
      }
      report(label, operations, plan->implementation(), [&] {
        plan->run({input.data(), weight.data(), nullptr, output.data()}, thread_workspace());
      });
    }
  }
}

void bench_convolutions() {
  struct Shape {
    int64_t batch, in, size, out, kernel, stride, padding, groups;
  };
  const Shape shapes[] = {
      {4, 64, 56, 64, 3, 1, 1, 1},  {4, 128, 28, 128, 3, 1, 1, 1}, {4, 256, 14, 256, 3, 1, 1, 1},
      {4, 512, 7, 512, 3, 1, 1, 1}, {4, 64, 56, 128, 3, 2, 1, 1},  {4, 256, 14, 512, 3, 2, 1, 1},
      {4, 64, 56, 128, 1, 2, 0, 1}, {4, 3, 224, 64, 7, 2, 3, 1},   {4, 256, 56, 64, 1, 1, 0, 1},
      {4, 64, 56, 256, 1, 1, 0, 1}, {4, 64, 56, 64, 3, 1, 1, 64},  {16, 16, 8, 32, 3, 1, 1, 1}};
  for (const Shape& s : shapes) {
    ConvolutionDesc d;
    d.batch = s.batch;
    d.in_channels = s.in;
    d.out_channels = s.out;
    d.groups = s.groups;
    d.input = {s.size, s.size, 1};
    d.kernel = {s.kernel, s.kernel, 1};
    d.stride = {s.stride, s.stride, 1};
    d.padding_begin = d.padding_end = {s.padding, s.padding, 0};
    bench_convolution(fmt::format("conv {}x{}x{}x{} to {} {}x{}/{}{}", s.batch, s.in, s.size, s.size, s.out,
                                  s.kernel, s.kernel, s.stride, s.groups > 1 ? " depthwise" : ""),
                      d);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) wanted = arguments[1];
  fmt::print("{}, {} threads, f32\n", version(), usable_threads());
  bench_matmuls();
  bench_convolutions();
}
