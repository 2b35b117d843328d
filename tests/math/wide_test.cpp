// The functions of float64 that machines without a library get, against long double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "flambeau/loop/math.h"
#include "program.h"

namespace fl::loop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// In units in the last place of float64 at exact; 0 for equal nan or infinity, 1e9 for a nan, an infinity or
/// a sign of zero that is wrong.
double wide_ulps(double got, long double exact) {
  constexpr double kWrong = 1e9;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kWrong;
  const double rounded = static_cast<double>(exact);
  if (got == rounded) {
    if (got == 0 && std::signbit(got) != std::signbit(rounded)) return kWrong;
    if ((got == 0 && exact == 0) || std::isinf(got)) return 0;
  }
  if (std::isinf(exact)) return kWrong;
  const long double value = std::isinf(got) ? std::copysign(0x1p1024L, got) : static_cast<long double>(got);
  const int exponent = exact == 0 ? -1022 : std::clamp(std::ilogb(exact), -1022, 1023);
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(1.0L, exponent - 52));
}

using Intervals = std::vector<std::pair<double, double>>;

class Points {
 public:
  void add_special() {
    for (double v : {0., kInf, std::nan(""), std::numeric_limits<double>::max(), 0.1, 0.5, 0.7, 1., 1.5, 2.,
                     709.78271289338397, 745.13321910194122, 708.39641853226408, 1024., 1074.,
                     27.226017111108362, 1e10, 1e22, 1e300, 9007199254740991., 9007199254740992.,
                     // Where multiples of pi/2 come close.
                     6381956970095103 * 0x1p797, 5.319372648326541e255})
      add_around(v);
    for (int e = -1074; e < 1024; e += 7) add_around(std::ldexp(1., e));
    for (int n = 1; n < 40; ++n) add_around(n), add_around(n * 1.5707963267948966);
  }
  void add_bits(size_t count) {
    while (count-- > 0) values.push_back(std::bit_cast<double>(random_()));
  }
  void add(double low, double high, size_t count) {
    std::uniform_real_distribution<double> uniform(low, high);
    while (count-- > 0) values.push_back(uniform(random_));
  }
  std::vector<double> values;

 private:
  void add_around(double v) {
    for (double p : {v, std::nextafter(v, 0.), std::nextafter(v, kInf)}) values.insert(values.end(), {p, -p});
  }
  std::mt19937_64 random_{17};
};

struct Case {
  ScalarOp op;
  long double (*exact)(long double);
  double bound;  ///< ulp
  Intervals hot;
};

class WideMath : public testing::TestWithParam<Case> {};

TEST_P(WideMath, WithinItsBound) {
  const Case& c = GetParam();
  Points points;
  points.add_special();
  points.add_bits(20'000);
  for (auto [low, high] : c.hot) points.add(low, high, 30'000);
  const Program program(c.op, DType::Float64, WideFunctions::Expanded);
  const std::vector<double> got = program.run(points.values);
  double worst = 0;
  size_t at = 0;
  for (size_t n = 0; n < got.size(); ++n)
    if (const double u = wide_ulps(got[n], c.exact(points.values[n])); u > worst) worst = u, at = n;
  const double x = points.values[at];
  const auto text = fmt::format("{:.3f} ulp at {:a} = {}: got {}, expected {}", worst, x, x, got[at],
                                static_cast<double>(c.exact(x)));
  fmt::print("{}: {} operations, {}\n", name(c.op), program.operations(), text);
  EXPECT_LE(worst, c.bound) << text;
}

#define FL_EXACT(f) [](long double x) -> long double { return f(x); }

INSTANTIATE_TEST_SUITE_P(
    Float64, WideMath,
    testing::Values(Case{ScalarOp::Exp, FL_EXACT(std::exp), 1.1, {{-746, 710}, {-1, 1}}},
                    Case{ScalarOp::Exp2, FL_EXACT(std::exp2), 1.0, {{-1076, 1025}, {-1, 1}}},
                    Case{ScalarOp::Expm1, FL_EXACT(std::expm1), 2.0, {{-40, 710}, {-1, 1}}},
                    Case{ScalarOp::Log, FL_EXACT(std::log), 1.0, {{0, 10}, {0.9, 1.1}}},
                    Case{ScalarOp::Log2, FL_EXACT(std::log2), 1.1, {{0, 10}, {0.9, 1.1}}},
                    Case{ScalarOp::Log10, FL_EXACT(std::log10), 1.1, {{0, 10}, {0.9, 1.1}}},
                    Case{ScalarOp::Log1p, FL_EXACT(std::log1p), 1.0, {{-1, 10}, {-0.3, 0.6}}},
                    Case{ScalarOp::Sin, FL_EXACT(std::sin), 0.9, {{-10, 10}, {-1e15, 1e15}}},
                    Case{ScalarOp::Cos, FL_EXACT(std::cos), 0.9, {{-10, 10}, {-1e15, 1e15}}},
                    Case{ScalarOp::Tan, FL_EXACT(std::tan), 2.3, {{-10, 10}, {-1e15, 1e15}}},
                    Case{ScalarOp::Asin, FL_EXACT(std::asin), 1.7, {{-1, 1}, {0.49, 0.51}}},
                    Case{ScalarOp::Acos, FL_EXACT(std::acos), 1.2, {{-1, 1}, {0.49, 0.51}}},
                    Case{ScalarOp::Atan, FL_EXACT(std::atan), 2.0, {{-1, 1}, {-5, 5}}},
                    Case{ScalarOp::Sinh, FL_EXACT(std::sinh), 2.3, {{-1, 1}, {-711, 711}}},
                    Case{ScalarOp::Cosh, FL_EXACT(std::cosh), 1.5, {{-1, 1}, {-711, 711}}},
                    Case{ScalarOp::Tanh, FL_EXACT(std::tanh), 2.8, {{-20, 20}, {-1, 1}}},
                    Case{ScalarOp::Asinh, FL_EXACT(std::asinh), 2.0, {{-10, 10}, {-1, 1}}},
                    Case{ScalarOp::Acosh, FL_EXACT(std::acosh), 2.4, {{1, 10}, {1, 1.1}}},
                    Case{ScalarOp::Atanh, FL_EXACT(std::atanh), 2.2, {{-1, 1}, {-0.1, 0.1}}},
                    Case{ScalarOp::Erf, FL_EXACT(std::erf), 1.2, {{-6, 6}, {-1, 1}}},
                    Case{ScalarOp::Erfc, FL_EXACT(std::erfc), 3.5, {{-6, 28}, {0.5, 1}}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(name(info.param.op)); });

void expect_close(ScalarOp op, long double (*exact)(long double, long double), double bound,
                  const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> got = Program(op, DType::Float64, WideFunctions::Expanded).run(a, b);
  double worst = 0;
  size_t at = 0;
  for (size_t n = 0; n < got.size(); ++n)
    if (const double u = wide_ulps(got[n], exact(a[n], b[n])); u > worst) worst = u, at = n;
  fmt::print("{}: {:.3f} ulp at ({}, {})\n", name(op), worst, a[at], b[at]);
  EXPECT_LE(worst, bound) << a[at] << " " << b[at] << ": got " << got[at] << ", expected "
                          << static_cast<double>(exact(a[at], b[at]));
}

TEST(WideMathOfTwo, WithinTheirBounds) {
  Points x, y;
  const double special[] = {0.,
                            -0.,
                            1.,
                            -1.,
                            2.,
                            -2.,
                            3.,
                            -3.,
                            0.5,
                            -0.5,
                            kInf,
                            -kInf,
                            std::nan(""),
                            5e-324,
                            -5e-324,
                            1e308,
                            -1e308,
                            1.5,
                            -1.5,
                            9007199254740991.,
                            -9007199254740992.};
  for (double a : special)
    for (double b : special) x.values.push_back(a), y.values.push_back(b);
  x.add_bits(20'000), y.add_bits(20'000);
  for (auto [low, high, bound] : {std::tuple(0., 10., 100.), {0.9, 1.1, 7000.}, {0., 1e300, 1.}})
    x.add(low, high, 30'000), y.add(-bound, bound, 30'000);
  const auto& [a, b] = std::pair(x.values, y.values);
  expect_close(
      ScalarOp::Pow, [](long double u, long double v) { return std::pow(u, v); }, 1.1, a, b);
  expect_close(
      ScalarOp::Atan2, [](long double u, long double v) { return std::atan2(u, v); }, 2.6, a, b);
  expect_close(
      ScalarOp::Hypot, [](long double u, long double v) { return std::hypot(u, v); }, 1.1, a, b);
  expect_close(
      ScalarOp::Nextafter,
      [](long double u, long double v) -> long double {
        return std::nextafter(static_cast<double>(u), static_cast<double>(v));
      },
      0, a, b);
}

TEST(WideMathOfTwo, LibrariesHaveTheRest) {
  EXPECT_FALSE(needs_expansion(ScalarOp::Lgamma, DType::Float64, WideFunctions::Expanded));
  EXPECT_FALSE(needs_expansion(ScalarOp::Exp, DType::Float64));
  EXPECT_TRUE(needs_expansion(ScalarOp::Exp, DType::Float64, WideFunctions::Expanded));
}

}  // namespace
}  // namespace fl::loop
