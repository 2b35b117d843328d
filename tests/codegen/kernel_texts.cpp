#include "kernel_texts.h"

#include <fmt/format.h>

namespace fl::codegen {
namespace {

std::string results(std::string_view op, int first) {
  const int count = op == "welford" ? 3 : op == "online_softmax" || op == "argmax" ? 2 : 1;
  std::string out;
  for (int n = 0; n < count; ++n) out += fmt::format("{}%{}", n ? ", " : "", first + n);
  return out;
}

std::string lanes_text(int lanes) { return lanes == 64 ? "" : fmt::format(" lanes {}", lanes); }

}  // namespace

std::string row_kernel(std::string_view dtype, std::string_view op, int lanes) {
  const bool half = dtype == "bf16" || dtype == "f16";
  const std::string_view wide = half ? "f32" : dtype;
  // What turns an element into a number to compute with, and back.
  const std::string in = half ? "cast f32" : fmt::format("abs {}", wide),
                    out = half ? fmt::format("cast {}", dtype) : fmt::format("neg {}", wide);
  return fmt::format(R"(kernel rows(x: {0} in, y: {1} out, z: {0} out) sizes(s0, s1) vector inner{2}
for i0 < s0
  stage for r0 < s1
    %0 = load {0} x[i0*s1 + r0]
    %1 = {3} %0
    %2 = index i64 [r0]
    {4} = reduce {5} %1{6}
  stage
    store y[i0] = %3
  stage for r0 < s1
    %6 = load {0} x[i0*s1 + r0]
    %7 = {3} %6
    %8 = sub {1} %7, %3
    %9 = {7} %8
    store z[i0*s1 + r0] = %9
)",
                     dtype, wide, lanes_text(lanes), in, results(op, 3), op, op == "argmax" ? ", %2" : "",
                     out);
}

std::string column_kernel(std::string_view op, int lanes) {
  return fmt::format(R"(kernel columns(x: f32 in, y: f32 out) sizes(s0, s1, s2) vector outer_tree{}
for i0 < s0, i1 < s2
  stage for r0 < s1
    %0 = load f32 x[i0*s1*s2 + r0*s2 + i1]
    {} = reduce {} %0
  stage
    store y[i0*s2 + i1] = %1
)",
                     lanes_text(lanes), results(op, 1), op);
}

}  // namespace fl::codegen
