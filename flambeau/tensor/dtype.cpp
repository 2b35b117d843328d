#include "flambeau/tensor/dtype.h"

#include <atomic>

#include "flambeau/base/error.h"

namespace fl {
namespace {
using C = DTypeCategory;
constexpr DTypeInfo kInfo[kDTypeCount] = {
    {"bool", "b8", 1, C::Bool, false},         {"uint8", "u8", 1, C::Integral, false},
    {"int8", "i8", 1, C::Integral, true},      {"int16", "i16", 2, C::Integral, true},
    {"int32", "i32", 4, C::Integral, true},    {"int64", "i64", 8, C::Integral, true},
    {"float16", "f16", 2, C::Floating, true},  {"bfloat16", "bf16", 2, C::Floating, true},
    {"float32", "f32", 4, C::Floating, true},  {"float64", "f64", 8, C::Floating, true},
    {"complex64", "c64", 8, C::Complex, true}, {"complex128", "c128", 16, C::Complex, true},
};
}  // namespace

const DTypeInfo& info(DType d) { return kInfo[static_cast<int>(d)]; }

DType parse_dtype(std::string_view text) {
  for (int d = 0; d < kDTypeCount; ++d)
    if (kInfo[d].name == text || kInfo[d].short_name == text) return static_cast<DType>(d);
  FL_RAISE(ValueError,
           "unknown dtype '{}'; expected one of bool, uint8, int8, int16, int32, int64, float16, "
           "bfloat16, float32, float64, complex64, complex128",
           text);
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) {
    const DType high = category(a) > category(b) ? a : b, low = high == a ? b : a;
    // A complex wins, but float64 widens it.
    if (high == DType::Complex64 && low == DType::Float64) return DType::Complex128;
    return high;
  }
  if (is_integral(a)) {
    if (a == DType::UInt8 || b == DType::UInt8) {
      const DType other = a == DType::UInt8 ? b : a;
      return other == DType::Int8 ? DType::Int16 : other;
    }
    return a > b ? a : b;
  }
  if ((a == DType::Float16 && b == DType::BFloat16) || (a == DType::BFloat16 && b == DType::Float16))
    return DType::Float32;
  return a > b ? a : b;
}

namespace {
std::atomic<DType> g_default_dtype{DType::Float32};
}  // namespace

DType default_dtype() { return g_default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType d) {
  FL_CHECK(is_floating(d), TypeError,
           "only floating-point types are supported as the default type, got torch.{}", name(d));
  g_default_dtype.store(d, std::memory_order_relaxed);
}

DType real_dtype(DType d) {
  if (d == DType::Complex64) return DType::Float32;
  if (d == DType::Complex128) return DType::Float64;
  return d;
}

DType complex_dtype(DType d) {
  if (is_complex(d)) return d;
  return d == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

DType compute_dtype(DType d) { return d == DType::Float16 || d == DType::BFloat16 ? DType::Float32 : d; }

}  // namespace fl
