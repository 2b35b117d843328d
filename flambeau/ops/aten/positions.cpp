#include "flambeau/ops/aten/positions.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/division.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

std::vector<Tensor> positions(Tensor indices, IntList shape) {
  FL_CHECK(is_integral(indices.dtype()), TypeError,
           "expected 'indices' to be integer dtype, but got torch.{}", name(indices.dtype()));
  std::vector<Tensor> out(shape.size());
  Tensor rest = indices;
  for (size_t d = shape.size(); d-- > 0;) {
    FL_CHECK(shape[d] >= SymInt(0), ValueError, "'shape' cannot have negative values, but got {}",
             to_string(shape));
    out[d] = _remainder(rest, Scalar(max(shape[d], 1)));
    rest = _div_floor(rest, Scalar(max(shape[d], 1)));
  }
  return out;
}

}  // namespace

void define_positions(OpTable& t) {
  t.define(unravel_index,
           {.doc = "For positions of a flattened tensor of sizes `shape` the positions in each dimension.",
            .tags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable,
            .decompose = positions,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{
                      {{m.make_index({2, 3}, 0, 24), Sizes{2, 3, 4}}, "", ""},
                      {{m.make_index({}, 0, 5), Sizes{5}}, "0-dim", ""},
                      {{m.make({2}), Sizes{5}}, "floats", "TypeError: integer dtype"},
                      {{m.make_index({2}, 0, 5), Sizes{-5}}, "negative", "ValueError: negative values"}};
                },
                {.gradient = false})});
}

}  // namespace fl
