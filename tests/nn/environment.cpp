#include "environment.h"

#include <cmath>

#include "flambeau/op/op.h"

namespace fl::testing {

NnTest::NnTest() {
  op_table();  // starts the backend
  manual_seed(0);
}

void expect_near(const Tensor& t, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = t.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

Tensor ramp(IntList sizes, float step, float shift) {
  std::vector<float> values(static_cast<size_t>(product(sizes).expect_int()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * step - shift;
  return tensor_from(values, sizes);
}

}  // namespace fl::testing
