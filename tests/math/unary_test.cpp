// Every unary special function of float32 against the same function in double or long double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "accuracy.h"
#include "flambeau/base/error.h"
#include "flambeau/loop/math.h"

namespace fl::loop {
namespace {

struct Case {
  ScalarOp op;
  long double (*exact)(double);
  double bound;  ///< ulp
  std::vector<std::pair<float, float>> hot = {};
};

class UnaryMath : public testing::TestWithParam<Case> {};

TEST_P(UnaryMath, WithinItsBound) {
  const Case& c = GetParam();
  std::vector<float> points = special_points();
  auto add = [&](const std::vector<float>& more) { points.insert(points.end(), more.begin(), more.end()); };
  add(random_bits(2'000'000, 1234));
  for (auto [lo, hi] : c.hot) add(sweep(lo, hi, 400'000));
  const Program program(c.op, DType::Float32);
  const std::vector<float> got = program.run(points);
  Worst worst;
  for (size_t i = 0; i < points.size(); ++i) {
    const long double exact = c.exact(points[i]);
    const double error = ulps(got[i], exact);
    if (error > worst.ulp) worst = {error, points[i], 0, got[i], exact};
  }
  fmt::print("{}: {} operations, {}\n", name(c.op), program.operations(), worst.str());
  EXPECT_LE(worst.ulp, c.bound) << worst.str();
}

#define FL_EXACT(f) [](double x) -> long double { return f(x); }

INSTANTIATE_TEST_SUITE_P(
    Float32, UnaryMath,
    testing::Values(Case{ScalarOp::Exp, FL_EXACT(std::exp), 1.0, {{-105, 89}, {-1, 1}}},
                    Case{ScalarOp::Exp2, FL_EXACT(std::exp2), 1.0, {{-151, 129}, {-1, 1}}},
                    Case{ScalarOp::Expm1, FL_EXACT(std::expm1), 2.0, {{-20, 89}, {-1, 1}}},
                    Case{ScalarOp::Log, FL_EXACT(std::log), 1.0, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log2, FL_EXACT(std::log2), 2.0, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log10, FL_EXACT(std::log10), 2.0, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log1p, FL_EXACT(std::log1p), 2.0, {{-1, 10}, {-0.1, 0.1}}},
                    Case{ScalarOp::Sin, FL_EXACT(std::sin), 2.0, {{-10, 10}, {-1e5, 1e5}}},
                    Case{ScalarOp::Cos, FL_EXACT(std::cos), 2.0, {{-10, 10}, {-1e5, 1e5}}},
                    Case{ScalarOp::Tanh, FL_EXACT(std::tanh), 3.0, {{-10, 10}, {-1, 1}}},
                    Case{ScalarOp::Erf, FL_EXACT(std::erf), 3.5, {{-4, 4}, {-1, 1}}},
                    Case{ScalarOp::Erfc, FL_EXACT(std::erfc), 4.0, {{-4, 10.5}, {-1, 1}}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(name(info.param.op)); });

TEST(Expand, RefusesWhatNeedsNone) {
  EXPECT_FALSE(needs_expansion(ScalarOp::Add, DType::Float32));
  EXPECT_FALSE(needs_expansion(ScalarOp::Exp, DType::Float64));
  EXPECT_FALSE(needs_expansion(ScalarOp::Pow, DType::Int32));
  EXPECT_THROW(Program(ScalarOp::Exp, DType::Float64), InternalError);
}

}  // namespace
}  // namespace fl::loop
