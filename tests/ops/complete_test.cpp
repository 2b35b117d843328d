// Operators are complete: documentation, a meaning, samples, and a gradient or the mark that there is none.
#include "support.h"

namespace fl::testing {
namespace {

class Complete : public OperatorTest {};

TEST_P(Complete, Definition) {
  const OpInfo& op = *GetParam();
  EXPECT_FALSE(op.doc.empty()) << "no documentation";
  EXPECT_TRUE(op.infer || op.decompose) << "neither a shape rule nor a decomposition";
  EXPECT_TRUE(op.is_primitive() || op.decompose || op.is_view()) << "nothing computes its values";
  EXPECT_TRUE(op.grad || op.decompose || op.is(Tag::NonDifferentiable) || op.mutates())
      << "neither a gradient nor the mark NonDifferentiable";
  EXPECT_TRUE(op.samples.make) << "no samples";
  EXPECT_TRUE(!op.is_view() || op.write_back) << "a view without write_back";
}

TEST_P(Complete, EveryDTypeHasSamples) {
  const OpInfo& op = *GetParam();
  if (!op.samples.make) GTEST_SKIP();
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!op.samples.dtypes.contains(dtype)) continue;
    int count = 0;
    samples::for_each_sample(op, dtype, 1, [&](Sample& s) { count += s.error.empty(); });
    EXPECT_GT(count, 0) << name(dtype);
  }
}

FL_FOR_EVERY_OPERATOR(Complete);

}  // namespace
}  // namespace fl::testing
