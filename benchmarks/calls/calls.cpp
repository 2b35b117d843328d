// What a call costs: tensors of 4 elements. Usage: calls [NAME...]
#include "benchmarks/measure.h"
#include "flambeau/compile/compile.h"
#include "flambeau/ops/functions.h"

using namespace fl;

static void compiled_call(const std::string& name) {
  const Tensors inputs{randn({4})};
  const Compiled compiled = compile([](const Tensors& in) { return Tensors{add(in[0], 1)}; });
  bench::report(name, {.compiled = [&] { compiled(inputs); }, .calls = 1000});
}

static void eager_add(const std::string& name) {
  const Tensor x = randn({4}), y = randn({4});
  bench::report(name, {.eager = [&] { add(x, y); }, .calls = 1000});
}

// What autograd adds to a call: a node that saves both factors.
static void recorded_mul(const std::string& name) {
  const Tensor x = randn({4}).set_requires_grad(true), a = add(x, 1), b = add(x, 2);
  bench::report(name, {.eager = [&] { mul(a, b); }, .calls = 1000});
}

int main(int argc, char** argv) {
  return bench::run(
      argc, argv,
      {{"compiled_call", compiled_call}, {"eager_add", eager_add}, {"recorded_mul", recorded_mul}});
}
