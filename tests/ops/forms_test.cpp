// The in-place and out= forms write what the functional operator gives.
#include "flambeau/tensor/generator.h"
#include "support.h"

namespace fl::testing {
namespace {

class Forms : public OperatorTest {};

std::vector<Value> functional(const OpInfo& op, const Sample& s) {
  manual_seed(7);
  return call(op, copied(s.args));
}

TEST_P(Forms, InPlace) {
  const OpInfo& op = *GetParam();
  if (!op.in_place) GTEST_SKIP() << "no in-place form";
  each_sample(
      op,
      [&](const Sample& s, DType dtype) {
        SCOPED_TRACE(describe(op, s, dtype));
        if (!s.args[0].is_tensor()) return;
        const std::vector<Value> expected = functional(op, s);
        std::vector<Value> args = copied(s.args);
        const Tensor self = args[0].tensor();
        const Tensor result = expected[0].tensor();
        bool expanded = false;
        for (int d = 0; d < self.dim(); ++d)
          expanded = expanded || (self.strides()[d].same_as(0) && self.sizes()[d] > SymInt(1));
        const bool fits = self.sizes() == result.sizes() &&
                          (op.is(Tag::CastsInPlace) || category(result.dtype()) <= category(self.dtype()));
        const int64_t version = self.storage()->version();
        manual_seed(7);
        std::vector<Value> made;
        const std::string error = error_of([&] { made = call(*op.in_place, args); });
        if (!fits || expanded) {
          EXPECT_EQ(error.substr(0, 13), "RuntimeError:") << error;
          return;
        }
        ASSERT_EQ(error, "");
        EXPECT_TRUE(made[0].tensor().is_same(self));
        EXPECT_EQ(self.storage()->version(), version + 1);
        if (self.dtype() == result.dtype()) {
          EXPECT_EQ(difference(Value(self), expected[0], {.layout = false}).value_or(""), "");
        }
      },
      kFewDTypes);
}

TEST_P(Forms, Out) {
  const OpInfo& op = *GetParam();
  if (!op.out) GTEST_SKIP() << "no out= form";
  each_sample(
      op,
      [&](const Sample& s, DType dtype) {
        SCOPED_TRACE(describe(op, s, dtype));
        const std::vector<Value> expected = functional(op, s);
        std::vector<Value> args = copied(s.args);
        const size_t first = args.size();
        for (const Value& v : expected)
          args.emplace_back(empty_strided_tensor([&] {
            TensorSpec spec = v.tensor().spec();
            spec.offset = 0;
            return spec;
          }()));
        const std::vector<Value> targets(args.begin() + static_cast<int64_t>(first), args.end());
        manual_seed(7);
        ASSERT_EQ(error_of([&] { call(*op.out, args); }), "");
        EXPECT_EQ(difference(targets, expected).value_or(""), "");
      },
      kFewDTypes);
}

FL_FOR_EVERY_OPERATOR(Forms);

}  // namespace
}  // namespace fl::testing
