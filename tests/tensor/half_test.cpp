// Every 16-bit pattern, and rounding against exact arithmetic in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "flambeau/tensor/tensor.h"

namespace fl {
namespace {

/// The value of a format with the given field widths, by its definition.
double decoded(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias));
}

template <class T, class Encode>
void every_pattern(int exponent_bits, int mantissa_bits, Encode encode) {
  for (int i = 0; i < 65536; ++i) {
    const T h{static_cast<uint16_t>(i)};
    const double want = decoded(h.bits, exponent_bits, mantissa_bits);
    const float got = to_float(h);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_TRUE(std::isnan(to_float(encode(got)))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), want) << i;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << i;
    ASSERT_EQ(encode(got).bits, h.bits) << i;
  }
}

/// Halfway between neighbours rounds to the even one, anything beside it to the nearer.
template <class T, class Encode>
void rounding(uint16_t infinity, Encode encode) {
  for (uint16_t low = 0; low + 1 < infinity; ++low) {
    const double a = to_float(T{low}), b = to_float(T{static_cast<uint16_t>(low + 1)});
    const float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(static_cast<double>(middle), (a + b) / 2);
    ASSERT_EQ(encode(middle).bits, low % 2 == 0 ? low : low + 1) << low;
    ASSERT_EQ(encode(-middle).bits, (low % 2 == 0 ? low : low + 1) | 0x8000) << low;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)).bits, low);
    ASSERT_EQ(encode(std::nextafter(middle, INFINITY)).bits, low + 1);
  }
}

TEST(Half, EveryPatternRoundTrips) { every_pattern<Half>(5, 10, to_half); }
TEST(Half, RoundsToNearestEven) {
  rounding<Half>(0x7C00, to_half);
  EXPECT_EQ(to_half(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_half(1e30f).bits, 0x7C00);
  EXPECT_EQ(to_half(1e-30f).bits, 0);
}

TEST(BFloat16, EveryPatternRoundTrips) { every_pattern<BFloat16>(8, 7, to_bfloat16); }
TEST(BFloat16, RoundsToNearestEven) {
  // Below the least subnormal float a middle does not exist; bfloat16's neighbours lie 2^16 floats apart.
  rounding<BFloat16>(0x7F80, to_bfloat16);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7F800001u)))));
}

}  // namespace
}  // namespace fl
