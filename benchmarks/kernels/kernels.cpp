// Single kernels, forward only, float32, and one product of matrices. Usage: kernels [NAME...]
#include "benchmarks/measure.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/compile/compile.h"
#include "flambeau/ops/functions.h"

using namespace fl;

using Shapes = std::vector<std::vector<int64_t>>;

static std::function<void(const std::string&)> kernel(Callable function, Shapes shapes) {
  return [=](const std::string& name) {
    NoGradGuard no_grad;
    Tensors inputs;
    for (const auto& shape : shapes) inputs.push_back(randn(Sizes(shape.begin(), shape.end())));
    const Compiled compiled = compile(function);
    bench::report(name, {.eager = [&] { function(inputs); }, .compiled = [&] { compiled(inputs); }});
  };
}

static Tensors pointwise_chain(const Tensors& in) {
  return {mul(gelu(add(mul(in[0], in[1]), 1), "tanh"), sigmoid(in[1]))};
}
static Tensors layernorm_residual(const Tensors& in) {
  return {layer_norm(add(in[0], in[1]), {1024}, in[2], in[3])};
}
static Tensors softmax_of_rows(const Tensors& in) { return {softmax(in[0], -1)}; }
static Tensors column_sum(const Tensors& in) { return {sum(in[0], IntList{0})}; }
static Tensors matmul_bias_gelu(const Tensors& in) { return {gelu(addmm(in[2], in[0], in[1]))}; }

int main(int argc, char** argv) {
  return bench::run(
      argc, argv,
      {{"pointwise_chain", kernel(pointwise_chain, {{4096, 1024}, {4096, 1024}})},
       {"layernorm_residual", kernel(layernorm_residual, {{2048, 1024}, {2048, 1024}, {1024}, {1024}})},
       {"softmax", kernel(softmax_of_rows, {{2048, 1024}})},
       {"col_sum", kernel(column_sum, {{2048, 1024}})},
       {"matmul_bias_gelu", kernel(matmul_bias_gelu, {{2048, 1024}, {1024, 1024}, {1024}})}});
}
