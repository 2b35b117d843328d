// Every way to run an operator gives the same results, of the shape that the shape rule says.
#include "flambeau/tensor/generator.h"
#include "support.h"

namespace fl::testing {
namespace {

class Values : public OperatorTest {};

std::vector<Value> results_of(const OpInfo& op, const Sample& s, const Way& way) {
  manual_seed(7);
  return way.run(op, copied(s.args));
}

TEST_P(Values, EveryWayAgrees) {
  const OpInfo& op = *GetParam();
  each_sample(op, [&](const Sample& s, DType dtype) {
    SCOPED_TRACE(describe(op, s, dtype));
    std::vector<Value> expected;
    ASSERT_EQ(error_of([&] { expected = results_of(op, s, ways()[0]); }), "");
    for (size_t w = 1; w < ways().size(); ++w) {
      const Way& way = ways()[w];
      if (!way.applies(op) || !way.dtypes.contains(dtype)) continue;
      std::vector<Value> got;
      ASSERT_EQ(error_of([&] { got = results_of(op, s, way); }), "") << way.name;
      // A view computed as a value has a layout of its own.
      const Tolerance t{way.ulps, !op.is_view()};
      EXPECT_EQ(difference(got, expected, t).value_or(""), "") << way.name << " against " << ways()[0].name;
    }
  });
}

TEST_P(Values, ShapesAreAsInferred) {
  const OpInfo& op = *GetParam();
  each_sample(
      op,
      [&](const Sample& s, DType dtype) {
        SCOPED_TRACE(describe(op, s, dtype));
        std::vector<Value> args = copied(s.args), made;
        ASSERT_EQ(error_of([&] { made = call(op, args); }), "");
        std::vector<TensorSpec> specs;
        if (op.is(Tag::DataDependent)) return;
        ASSERT_EQ(error_of([&] { specs = infer_outputs(op, args.data()); }), "");
        size_t next = 0;
        const auto check = [&](const Tensor& t) {
          ASSERT_LT(next, specs.size());
          const TensorSpec& spec = specs[next++];
          EXPECT_EQ(t.dtype(), spec.dtype);
          EXPECT_EQ(to_string(t.sizes()), to_string(spec.sizes));
          // What a dimension of one element has for a stride means nothing.
          for (int d = 0; t.numel() > SymInt(0) && d < t.dim(); ++d) {
            if (t.sizes()[d] == SymInt(1)) continue;
            EXPECT_EQ(t.strides()[d], spec.strides[d])
                << to_string(t.strides()) << " and " << to_string(spec.strides);
          }
        };
        for (const Value& v : made) {
          if (v.is_tensor()) check(v.tensor());
          if (v.tag() == Value::Tag::TensorList)
            for (const Tensor& t : v.tensors()) check(t);
        }
      },
      kFewDTypes);
}

TEST_P(Values, ArgumentsStayAsTheyWere) {
  const OpInfo& op = *GetParam();
  if (op.mutates()) GTEST_SKIP();
  each_sample(
      op,
      [&](const Sample& s, DType dtype) {
        SCOPED_TRACE(describe(op, s, dtype));
        const std::vector<Value> args = copied(s.args);
        call(op, args);
        EXPECT_EQ(difference(args, s.args).value_or(""), "");
      },
      kFewDTypes);
}

TEST_P(Values, ErrorsAreRaised) {
  const OpInfo& op = *GetParam();
  each_error_sample(op, [&](const Sample& s, DType dtype) {
    SCOPED_TRACE(describe(op, s, dtype));
    const std::string error = error_of([&] { call(op, copied(s.args)); });
    const size_t colon = s.error.find(": ");
    EXPECT_EQ(error.substr(0, error.find(": ")), s.error.substr(0, colon)) << error;
    EXPECT_NE(error.find(s.error.substr(colon + 2)), std::string::npos)
        << "raised: " << error << "\nexpected: " << s.error;
  });
}

FL_FOR_EVERY_OPERATOR(Values);

}  // namespace
}  // namespace fl::testing
