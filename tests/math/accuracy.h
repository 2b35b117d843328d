// Points to test at, and the distance of results from exact values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program.h"

namespace fl::loop {

/// Zeros, denormals, powers of two and their neighbours, integers, infinities, nans: with both signs.
std::vector<float> special_points();
/// Uniform over bit patterns, seeded.
std::vector<float> random_bits(size_t count, uint32_t seed);
/// Evenly spaced from lo to hi.
std::vector<float> sweep(float lo, float hi, size_t count);

/// |got - exact| in units in the last place of float32 at exact; 0 for equal nan or infinity, 1e9 for a nan,
/// an infinity or a sign of zero that is wrong.
double ulps(float got, long double exact);

/// References that libm lacks, in long double.
long double exact_lgamma(double x);
long double exact_digamma(double x);
long double exact_erfinv(double x);

struct Worst {
  double ulp = 0;
  float a = 0, b = 0, got = 0;
  long double exact = 0;
  std::string str() const;
};

}  // namespace fl::loop
