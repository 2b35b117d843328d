// Element types and their promotion lattice.
#pragma once
#include <cstdint>
#include <string_view>

namespace fl {

/// In PyTorch's order of promotion within a category.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
};
inline constexpr int kDTypeCount = 12;

/// The categories of promotion: a higher one wins over every dtype of a lower one.
enum class DTypeCategory : uint8_t { Bool, Integral, Floating, Complex };

struct DTypeInfo {
  std::string_view name;        ///< "float32"
  std::string_view short_name;  ///< "f32", used in IR texts
  uint8_t size;                 ///< bytes
  DTypeCategory category;
  bool is_signed;
};
const DTypeInfo& info(DType d);

inline std::string_view name(DType d) { return info(d).name; }
inline int64_t size_of(DType d) { return info(d).size; }
inline DTypeCategory category(DType d) { return info(d).category; }
inline bool is_floating(DType d) { return category(d) == DTypeCategory::Floating; }
inline bool is_complex(DType d) { return category(d) == DTypeCategory::Complex; }
inline bool is_integral(DType d, bool include_bool = false) {
  return category(d) == DTypeCategory::Integral || (include_bool && d == DType::Bool);
}
/// From "float32" or "f32"; raises ValueError naming the known dtypes.
DType parse_dtype(std::string_view text);

/// The floating dtype of numbers, and of factories that are told none (torch.set_default_dtype); float32 at
/// first.
DType default_dtype();
void set_default_dtype(DType d);  ///< Raises TypeError unless d is floating.

/// The smallest dtype that PyTorch gives for a pair (torch.promote_types): symmetric and associative.
DType promote(DType a, DType b);
/// complex64 -> float32, complex128 -> float64; others unchanged.
DType real_dtype(DType d);
/// float32 -> complex64, float64 -> complex128, float16 and bfloat16 -> complex64.
DType complex_dtype(DType d);
/// Arithmetic on half types happens in float32; others in themselves (PyTorch's opmath type).
DType compute_dtype(DType d);

}  // namespace fl
