#include "flambeau/runtime/executable.h"

#include <gtest/gtest.h>

#include "flambeau/graph/infer.h"
#include "flambeau/ops/functions.h"
#include "flambeau/sym/shape_env.h"

namespace fl::runtime {
namespace {

// Positions of random numbers differ from call to call, and so do not lay anything out.
TEST(Executable, NumbersThatKernelsAloneReadShareAPlan) {
  graph::Graph g;
  g.shape_env = std::make_shared<sym::ShapeEnv>();
  const sym::ShapeEnv::Scope scope(g.shape_env.get());
  const sym::Expr size = g.shape_env->create_symbol(5);
  g.add_input(graph::InputKind::Input, make_spec(Sizes{SymInt(size)}, DType::Float32), "x");
  std::vector<SymInt> numbers;
  for (int k = 0; k < 3; ++k) {
    numbers.emplace_back(g.shape_env->create_symbol(7 + k));
    g.add_symbol(graph::InputKind::Random, numbers.back().expr());
  }
  const OpInfo& op = philox_uniform.info();
  std::vector<Value> args{Value(Sizes{SymInt(size)}), Value(numbers[0]),     Value(numbers[1]),
                          Value(numbers[2]),          Value(DType::Float32), Value()};
  std::vector<TensorSpec> outs = graph::infer_specs(g, op, args);
  graph::Node& call = g.append(op, std::move(args), std::move(outs));
  g.set_outputs({Value(call.ref()), Value(numbers[2] + SymInt(size))});
  const Executable program(loop::lower(g));

  for (int64_t n : {5, 9})
    for (int64_t offset = 100; offset < 110; ++offset) {
      const Tensor x = empty_tensor({SymInt(n)}, DType::Float32);
      const int64_t given[] = {3, 4, offset};
      const std::vector<Value> got = program.run({&x, 1}, given);
      EXPECT_EQ(got[0].tensor().to_vector<float>(),
                philox_uniform({SymInt(n)}, 3, 4, offset, DType::Float32).to_vector<float>());
      EXPECT_EQ(got[1].to_int(), offset + n);
    }
  EXPECT_EQ(program.plan_count(), 2);
}

}  // namespace
}  // namespace fl::runtime
