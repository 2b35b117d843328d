// Kernels written by hand: time, bandwidth and compile time. Usage: codegen [repetitions]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "flambeau/codegen/cpu/compile.h"
#include "flambeau/loop/builder.h"

namespace {

using namespace fl;
using loop::Builder;
using loop::Expr;
using loop::ReduceOp;
using loop::VectorAxis;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

const Expr i = Expr::symbol("i0"), r = Expr::symbol("r0"), q = Expr::symbol("r1"), n = Expr::symbol("s0"),
           m = Expr::symbol("s1");
constexpr DType kFloat = DType::Float32;

Val sigmoid(Builder& b, Val x) {
  const Val one = b.like(x, 1.0);
  return b.div(one, b.add(one, b.exp(b.neg(x))));
}

// gelu(x * y + 1) * sigmoid(y), gelu in the tanh form.
loop::Kernel chain() {
  Builder b("chain");
  const int x = b.add_buffer("x", kFloat, false), y = b.add_buffer("y", kFloat, false),
            out = b.add_buffer("out", kFloat, true);
  b.set_outer({{i, n}});
  b.begin_stage({});
  const Val v = b.load(y, i), t = b.add(b.mul(b.load(x, i), v), b.constant(kFloat, 1.0));
  const Val cube = b.mul(b.mul(t, t), t);
  const Val inner =
      b.mul(b.constant(kFloat, 0.7978845608028654), b.add(t, b.mul(b.constant(kFloat, 0.044715), cube)));
  const Val half = b.mul(b.constant(kFloat, 0.5), t);
  const Val gelu = b.mul(half, b.add(b.constant(kFloat, 1.0), b.tanh(inner)));
  b.store(out, i, b.mul(gelu, sigmoid(b, v)));
  return b.finish(VectorAxis::Outer);
}

loop::Kernel softmax() {
  Builder b("softmax");
  const int x = b.add_buffer("x", kFloat, false), y = b.add_buffer("y", kFloat, true);
  b.set_outer({{i, n}});
  b.begin_stage({{r, m}});
  const auto s = b.reduce(ReduceOp::OnlineSoftmax, {b.load(x, i * m + r)});
  b.begin_stage({});
  const Val scale = b.div(b.constant(kFloat, 1.0), s[1]);
  b.begin_stage({{q, m}});
  b.store(y, i * m + q, b.mul(b.exp(b.sub(b.load(x, i * m + q), s[0])), scale));
  return b.finish(VectorAxis::Inner);
}

// layer_norm(x + y) with weight and bias.
loop::Kernel layer_norm() {
  Builder b("layer_norm");
  const int x = b.add_buffer("x", kFloat, false), y = b.add_buffer("y", kFloat, false),
            weight = b.add_buffer("weight", kFloat, false), bias = b.add_buffer("bias", kFloat, false),
            out = b.add_buffer("out", kFloat, true);
  b.set_outer({{i, n}});
  b.begin_stage({{r, m}});
  const auto w = b.reduce(ReduceOp::Welford, {b.add(b.load(x, i * m + r), b.load(y, i * m + r))});
  b.begin_stage({});
  const Val variance = b.div(w[1], w[2]);
  const Val scale = b.div(b.constant(kFloat, 1.0), b.sqrt(b.add(variance, b.constant(kFloat, 1e-5))));
  b.begin_stage({{q, m}});
  const Val t = b.add(b.load(x, i * m + q), b.load(y, i * m + q));
  const Val normal = b.mul(b.sub(t, w[0]), scale);
  b.store(out, i * m + q, b.add(b.mul(normal, b.load(weight, q)), b.load(bias, q)));
  return b.finish(VectorAxis::Inner);
}

loop::Kernel column_sum() {
  Builder b("column_sum");
  const int x = b.add_buffer("x", kFloat, false), y = b.add_buffer("y", kFloat, true);
  b.add_size(n);
  b.add_size(m);
  b.set_outer({{i, m}});
  b.begin_stage({{r, n}});
  const auto s = b.reduce(ReduceOp::Sum, {b.load(x, r * m + i)});
  b.begin_stage({});
  b.store(y, i, s[0]);
  return b.finish(VectorAxis::Outer);
}

loop::Kernel tiny() {
  Builder b("tiny");
  const int x = b.add_buffer("x", kFloat, false), y = b.add_buffer("y", kFloat, true);
  b.set_outer({{i, n}});
  b.begin_stage({});
  b.store(y, i, b.add(b.load(x, i), b.constant(kFloat, 1.0)));
  return b.finish(VectorAxis::Outer);
}

// Of this thread, so that other work on the machine does not count.
double processor_milliseconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

void measure(const loop::Kernel& k, std::vector<int64_t> elements, std::vector<int64_t> sizes,
             int repetitions) {
  double compile = 1e30;
  std::shared_ptr<const codegen::CompiledKernel> compiled;
  for (int n = 0; n < 6; ++n) {
    const double start = processor_milliseconds();
    compiled = codegen::compile_kernel(k, {.cached = false});
    compile = std::min(compile, processor_milliseconds() - start);
  }
  std::vector<std::vector<float>> data;
  std::vector<void*> buffers;
  double bytes = 0;
  for (int64_t count : elements) {
    auto& v = data.emplace_back(count);
    for (size_t at = 0; at < v.size(); ++at) v[at] = static_cast<float>(at * 7919 % 1000) / 250 - 2;
    bytes += 4.0 * static_cast<double>(count);
  }
  for (auto& v : data) buffers.push_back(v.data());
  const int inner = bytes < 1e4 ? 100000 : 1;
  double best = 1e30;
  for (int n = 0; n < repetitions; ++n) {
    const auto start = Clock::now();
    for (int k = 0; k < inner; ++k) compiled->launch({buffers.data(), sizes.data()});
    best = std::min(best, milliseconds(start) / inner);
  }
  fmt::print("{:<12} {:>12.6f} ms {:>8.1f} GB/s   compile {:>6.2f} ms\n", k.name, best, bytes / best / 1e6,
             compile);
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 30;
  const int64_t big = 4 << 20;
  measure(chain(), {big, big, big}, {big}, repetitions);
  measure(layer_norm(), {2048 * 1024, 2048 * 1024, 1024, 1024, 2048 * 1024}, {2048, 1024}, repetitions);
  measure(softmax(), {2048 * 1024, 2048 * 1024}, {2048, 1024}, repetitions);
  measure(column_sum(), {2048 * 1024, 1024}, {2048, 1024}, repetitions);
  measure(tiny(), {4, 4}, {4}, repetitions);
}
