// Every unary special function of float32 against the same function in double or long double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

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
  size_t count = 2'000'000;
};

class UnaryMath : public testing::TestWithParam<Case> {};

TEST_P(UnaryMath, WithinItsBound) {
  const Case& c = GetParam();
  std::vector<float> points = special_points();
  auto add = [&](const std::vector<float>& more) { points.insert(points.end(), more.begin(), more.end()); };
  add(random_bits(c.count, 1234));
  for (auto [lo, hi] : c.hot) add(sweep(lo, hi, c.count / 5));
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
                    Case{ScalarOp::Expm1, FL_EXACT(std::expm1), 1.6, {{-20, 89}, {-1, 1}}},
                    Case{ScalarOp::Log, FL_EXACT(std::log), 1.0, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log2, FL_EXACT(std::log2), 1.6, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log10, FL_EXACT(std::log10), 1.6, {{0, 10}, {0.5, 2}}},
                    Case{ScalarOp::Log1p, FL_EXACT(std::log1p), 1.5, {{-1, 10}, {-0.1, 0.1}}},
                    Case{ScalarOp::Sin, FL_EXACT(std::sin), 1.6, {{-10, 10}, {-1e5, 1e5}}},
                    Case{ScalarOp::Cos, FL_EXACT(std::cos), 1.6, {{-10, 10}, {-1e5, 1e5}}},
                    Case{ScalarOp::Tanh, FL_EXACT(std::tanh), 2.7, {{-10, 10}, {-1, 1}}},
                    Case{ScalarOp::Erf, FL_EXACT(std::erf), 3.5, {{-4, 4}, {-1, 1}}},
                    Case{ScalarOp::Erfc, FL_EXACT(std::erfc), 4.0, {{-4, 10.5}, {-1, 1}}},
                    Case{ScalarOp::Tan, FL_EXACT(std::tan), 3.5, {{-10, 10}, {-1e5, 1e5}}},
                    Case{ScalarOp::Asin, FL_EXACT(std::asin), 2.5, {{-1, 1}, {0.49f, 0.51f}}},
                    Case{ScalarOp::Acos, FL_EXACT(std::acos), 1.5, {{-1, 1}, {0.49f, 0.51f}}},
                    Case{ScalarOp::Atan, FL_EXACT(std::atan), 2.2, {{-1, 1}, {-5, 5}}},
                    Case{ScalarOp::Sinh, FL_EXACT(std::sinh), 2.0, {{-1, 1}, {-90, 90}}},
                    Case{ScalarOp::Cosh, FL_EXACT(std::cosh), 2.0, {{-1, 1}, {-90, 90}}},
                    Case{ScalarOp::Asinh, FL_EXACT(std::asinh), 1.0, {{-1, 1}, {-90, 90}}},
                    Case{ScalarOp::Acosh, FL_EXACT(std::acosh), 1.0, {{1, 1.1f}, {0, 90}}},
                    Case{ScalarOp::Atanh, FL_EXACT(std::atanh), 1.0, {{-1, 1}, {0.99f, 1}}},
                    Case{ScalarOp::Lgamma,
                         FL_EXACT(exact_lgamma),
                         2.0,
                         {{0, 10}, {-10, 0}, {0.99f, 1.01f}, {-2.5f, -2.4f}, {-2.8f, -2.7f}}},
                    Case{ScalarOp::Digamma, FL_EXACT(exact_digamma), 1.0, {{0, 10}, {-10, 0}}},
                    Case{ScalarOp::Erfinv, FL_EXACT(exact_erfinv), 3.0, {{-1, 1}, {0.99f, 1}}, 200'000}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(name(info.param.op)); });

// Relative to max(1, |exact|) for digamma: near its zeros only the absolute error is small.
TEST(Float64, DigammaAndErfinv) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> points = {0.,      -0.,    1., -1., inf,   -inf,        1e-300,
                                -1e-300, 5e-324, 2., -2., 1e300, std::nan("")};
  for (int k = 1; k < 54; ++k)
    for (double v : {1 - std::ldexp(1., -k), std::ldexp(1., -k), std::ldexp(1., k)})
      points.insert(points.end(), {v, -v});
  for (int i = 0; i < 20'000; ++i) {
    const double u = uniform(random);
    points.insert(points.end(), {u, u * 40, std::exp(u * 600)});
  }
  auto worst = [&](ScalarOp op, long double (*exact)(double), double floor) {
    const std::vector<double> got = Program(op, DType::Float64).run(points);
    double largest = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const long double e = exact(points[i]);
      if (std::isnan(e) || std::isinf(static_cast<double>(e)) || e == 0) {
        const double rounded = static_cast<double>(e);
        EXPECT_TRUE(std::isnan(e) ? std::isnan(got[i]) : got[i] == rounded) << points[i] << " " << got[i];
        EXPECT_TRUE(std::isnan(e) || std::signbit(got[i]) == std::signbit(rounded)) << points[i];
        continue;
      }
      const double scale = std::max(floor, static_cast<double>(std::fabs(e)));
      const double error = static_cast<double>(std::fabs(got[i] - e)) / std::max(scale, 1e-300);
      EXPECT_LE(error, 1e-14) << name(op) << " " << points[i] << " " << got[i];
      largest = std::max(largest, error);
    }
    fmt::print("{} of float64: relative error {}\n", name(op), largest);
  };
  worst(ScalarOp::Digamma, exact_digamma, 1);
  worst(ScalarOp::Erfinv, exact_erfinv, 0);
}

TEST(Expand, RefusesWhatNeedsNone) {
  EXPECT_FALSE(needs_expansion(ScalarOp::Add, DType::Float32));
  EXPECT_FALSE(needs_expansion(ScalarOp::Exp, DType::Float64));
  EXPECT_FALSE(needs_expansion(ScalarOp::Pow, DType::Int32));
  EXPECT_THROW(Program(ScalarOp::Exp, DType::Float64), InternalError);
}

}  // namespace
}  // namespace fl::loop
