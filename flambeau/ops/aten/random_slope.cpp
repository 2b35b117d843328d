#include "flambeau/ops/aten/random_slope.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {

void define_random_slope(OpTable& t) {
  t.define(
      rrelu,
      {.doc = "x above 0, slope * x below; slopes uniform on [lower, upper) in training, else their middle.",
       .tags = Tag::Random,
       .decompose =
           [](Tensor self, Scalar lower, Scalar upper, bool training, Generator* generator) {
             const double low = lower.to_double(), high = upper.to_double();
             FL_CHECK(low <= high, RuntimeError,
                      "Lower bound should be less than or equal to the upper bound, got {} and {}", low,
                      high);
             check_dtype("rrelu", self.dtype(), Takes::Floating);
             if (!training) return leaky_relu(self, (low + high) / 2);
             const Tensor slope = uniform(detach(self), low, high, generator);
             return where(gt(self, 0), self, mul(self, slope));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 4}, o.low, o.high), 0.25, 0.5}, "", ""},
                 {{m.make({3}, o.low, o.high), 0.5, 0.25}, "bounds", "RuntimeError: less than or equal"}};
           },
           {.dtypes = dtypes::floats})});
}

}  // namespace fl
