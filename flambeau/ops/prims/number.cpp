#include "flambeau/ops/prims/number.h"

#include "flambeau/op/op_def.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

InferResult number_rule(const InferCtx& c, int) {
  FL_CHECK(c.spec(0).dim() == 0, RuntimeError, "_as_number(): expected a tensor without dimensions, got {}",
           to_string(c.spec(0).sizes));
  TensorSpec s = make_spec({}, c.spec(0).dtype, c.spec(0).device);
  s.wrapped_number = true;
  return {s};
}

std::vector<Sample> numbers(SampleMaker& m, const Samples&) {
  return {{{Value(m.make({}))}, "a number", ""},
          {{Value(m.make({2}))}, "a vector", "RuntimeError: expected a tensor without dimensions"}};
}

}  // namespace

void define_number(OpTable& t) {
  t.define(_as_number, {.doc = "The same element, as a number: it takes part in promotion as one.",
                        .tags = Tag::Elementwise,
                        .infer = number_rule,
                        .scalar = [](ScalarOps&, Val x) { return x; },
                        .grad = [](GradCtx&, const Tensor& g) { return g; },
                        .samples = samples::custom(numbers)});
}

}  // namespace fl
