// 16-bit floats, without branches so that loops over them become vector code.
#include <bit>
#include <cmath>

#include "flambeau/tensor/tensor.h"

namespace fl {

// The half's exponent and mantissa are moved into a float whose exponent is then scaled by a product;
// subnormal halves are made as 0.5 + m - 0.5.
float to_float(Half h) {
  const uint32_t word = static_cast<uint32_t>(h.bits) << 16;
  const uint32_t sign = word & 0x80000000u, rest = word + word;
  const float normal = std::bit_cast<float>((rest >> 4) + (0xE0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((rest >> 17) | (126u << 23)) - 0.5f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(rest < (1u << 27) ? subnormal : normal));
}

// Adding a power of two of the right size makes the floating-point unit round to the half's last bit; the two
// products send too large values to infinity first.
Half to_half(float f) {
  const float base = (std::fabs(f) * 0x1.0p+112f) * 0x1.0p-110f;
  const uint32_t word = std::bit_cast<uint32_t>(f), twice = word + word, sign = word & 0x80000000u;
  const uint32_t exponent = twice & 0xFF000000u, bias = exponent < 0x71000000u ? 0x71000000u : exponent;
  const uint32_t rounded = std::bit_cast<uint32_t>(std::bit_cast<float>((bias >> 1) + 0x07800000u) + base);
  const uint32_t finite = ((rounded >> 13) & 0x7C00u) + (rounded & 0x0FFFu);
  return {static_cast<uint16_t>((sign >> 16) | (twice > 0xFF000000u ? 0x7E00u : finite))};
}

float to_float(BFloat16 b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }

BFloat16 to_bfloat16(float f) {
  const uint32_t word = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (word + 0x7FFFu + ((word >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>((word & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded)};
}

}  // namespace fl
