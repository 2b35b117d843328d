// Two-argument functions of float32: C99 annex F on special values, random pairs elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "accuracy.h"
#include "flambeau/loop/math.h"

namespace fl::loop {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double next_float(double x, double y) { return std::nextafter(static_cast<float>(x), static_cast<float>(y)); }

struct Case {
  ScalarOp op;
  long double (*exact)(double, double);
  double bound;
};

class BinaryMath : public testing::TestWithParam<Case> {};

struct Pairs {
  std::vector<float> a, b;
  void add(float x, float y) { a.push_back(x), b.push_back(y); }
};

/// Every pair of the special values of annex F and some plain ones.
void add_special(Pairs& p) {
  std::vector<float> values;
  for (float v : {0.f,        1e-45f,     1e-40f,    1.17549435e-38f,
                  1e-20f,     0.3f,       0.5f,      0.99999994f,
                  1.f,        1.0000001f, 1.5f,      2.f,
                  2.5f,       3.f,        4.f,       5.f,
                  126.f,      149.f,      8388607.f, 8388608.5f,
                  16777215.f, 16777216.f, 1e20f,     3.4028235e38f,
                  kInf,       kNan})
    values.insert(values.end(), {v, -v});
  for (float x : values)
    for (float y : values) p.add(x, y);
}

void add_random(Pairs& p, size_t count) {
  const std::vector<float> a = random_bits(count, 5), b = random_bits(count, 6);
  for (size_t i = 0; i < count; ++i) p.add(a[i], b[i]);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> near(-4, 4), wide(-100, 100);
  for (size_t i = 0; i < count; ++i) {
    p.add(near(random), near(random));
    p.add(wide(random), wide(random));
    p.add(std::fabs(wide(random)), near(random));
    const float base = std::exp2(near(random));  // powers through the whole range of results
    p.add(base, wide(random) * 1.5f / std::log2(base));
  }
}

TEST_P(BinaryMath, WithinItsBound) {
  const Case& c = GetParam();
  Pairs p;
  add_special(p);
  add_random(p, 400'000);
  const Program program(c.op, DType::Float32);
  const std::vector<float> got = program.run(p.a, p.b);
  Worst worst;
  for (size_t i = 0; i < got.size(); ++i) {
    const long double exact = c.exact(p.a[i], p.b[i]);
    const double error = ulps(got[i], exact);
    if (error > worst.ulp) worst = {error, p.a[i], p.b[i], got[i], exact};
  }
  fmt::print("{}: {} operations, {}\n", name(c.op), program.operations(), worst.str());
  EXPECT_LE(worst.ulp, c.bound) << worst.str();
}

#define FL_EXACT(f) [](double x, double y) -> long double { return f(x, y); }

INSTANTIATE_TEST_SUITE_P(Float32, BinaryMath,
                         testing::Values(Case{ScalarOp::Pow, FL_EXACT(std::pow), 1.0},
                                         Case{ScalarOp::Atan2, FL_EXACT(std::atan2), 2.2},
                                         Case{ScalarOp::Hypot, FL_EXACT(std::hypot), 1.0},
                                         Case{ScalarOp::Rem, FL_EXACT(std::fmod), 0.0},
                                         Case{ScalarOp::Nextafter, FL_EXACT(next_float), 0.0}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(name(info.param.op));
                         });

}  // namespace
}  // namespace fl::loop
