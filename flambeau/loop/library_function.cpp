#include "flambeau/loop/library_function.h"

#include <fmt/format.h>

#include <cmath>

namespace fl::loop {
namespace {

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 ? base : T(1);
    return 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <ScalarOp op, class T>
T scalar(T a, [[maybe_unused]] T b) {
  if constexpr (std::is_integral_v<T>) {
    return integer_power(a, b);
  } else {
    switch (op) {
#define FL_CASE(name, call) \
  case ScalarOp::name:      \
    return static_cast<T>(call);
      FL_CASE(Exp, std::exp(a))
      FL_CASE(Exp2, std::exp2(a))
      FL_CASE(Expm1, std::expm1(a))
      FL_CASE(Log, std::log(a))
      FL_CASE(Log2, std::log2(a))
      FL_CASE(Log10, std::log10(a))
      FL_CASE(Log1p, std::log1p(a))
      FL_CASE(Sin, std::sin(a))
      FL_CASE(Cos, std::cos(a))
      FL_CASE(Tan, std::tan(a))
      FL_CASE(Asin, std::asin(a))
      FL_CASE(Acos, std::acos(a))
      FL_CASE(Atan, std::atan(a))
      FL_CASE(Sinh, std::sinh(a))
      FL_CASE(Cosh, std::cosh(a))
      FL_CASE(Tanh, std::tanh(a))
      FL_CASE(Asinh, std::asinh(a))
      FL_CASE(Acosh, std::acosh(a))
      FL_CASE(Atanh, std::atanh(a))
      FL_CASE(Erf, std::erf(a))
      FL_CASE(Erfc, std::erfc(a))
      FL_CASE(Rem, std::fmod(a, b))
      FL_CASE(Pow, std::pow(a, b))
      FL_CASE(Atan2, std::atan2(a, b))
      FL_CASE(Hypot, std::hypot(a, b))
      FL_CASE(Nextafter, std::nextafter(a, b))
#undef FL_CASE
      case ScalarOp::Lgamma: {
        int sign;  // lgamma() itself writes a global
        return static_cast<T>(::lgamma_r(a, &sign));
      }
      default:
        return a;
    }
  }
}

template <ScalarOp op, class T>
void map(const void* a, const void* b, void* out, int64_t n) {
  for (int64_t k = 0; k < n; ++k)
    static_cast<T*>(out)[k] =
        scalar<op, T>(static_cast<const T*>(a)[k], b ? static_cast<const T*>(b)[k] : T{});
}

LibraryFunction float64_function(ScalarOp op) {
  switch (op) {
#define FL_CASE(name)  \
  case ScalarOp::name: \
    return &map<ScalarOp::name, double>;
    FL_CASE(Exp)
    FL_CASE(Exp2)
    FL_CASE(Expm1)
    FL_CASE(Log)
    FL_CASE(Log2)
    FL_CASE(Log10)
    FL_CASE(Log1p)
    FL_CASE(Sin)
    FL_CASE(Cos)
    FL_CASE(Tan)
    FL_CASE(Asin)
    FL_CASE(Acos)
    FL_CASE(Atan)
    FL_CASE(Sinh)
    FL_CASE(Cosh)
    FL_CASE(Tanh)
    FL_CASE(Asinh)
    FL_CASE(Acosh)
    FL_CASE(Atanh)
    FL_CASE(Erf)
    FL_CASE(Erfc)
    FL_CASE(Lgamma)
    FL_CASE(Rem)
    FL_CASE(Pow)
    FL_CASE(Atan2)
    FL_CASE(Hypot)
    FL_CASE(Nextafter)
#undef FL_CASE
    default:
      return nullptr;
  }
}

}  // namespace

LibraryFunction library_function(ScalarOp op, DType dtype) {
  if (dtype == DType::Float64) return float64_function(op);
  if (op != ScalarOp::Pow) return nullptr;
  switch (dtype) {
    case DType::UInt8:
      return &map<ScalarOp::Pow, uint8_t>;
    case DType::Int8:
      return &map<ScalarOp::Pow, int8_t>;
    case DType::Int16:
      return &map<ScalarOp::Pow, int16_t>;
    case DType::Int32:
      return &map<ScalarOp::Pow, int32_t>;
    case DType::Int64:
      return &map<ScalarOp::Pow, int64_t>;
    default:
      return nullptr;
  }
}

std::string library_function_name(ScalarOp op, DType dtype) {
  return fmt::format("fl_{}_{}", name(op), info(dtype).short_name);
}

LibraryFunction find_library_function(std::string_view wanted) {
  if (wanted.substr(0, 3) != "fl_") return nullptr;
  const size_t cut = wanted.rfind('_');
  if (cut < 3) return nullptr;
  for (int o = 0; o <= static_cast<int>(ScalarOp::Select); ++o)
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto op = static_cast<ScalarOp>(o);
      const auto dtype = static_cast<DType>(d);
      if (wanted.substr(3, cut - 3) == name(op) && wanted.substr(cut + 1) == info(dtype).short_name)
        return library_function(op, dtype);
    }
  return nullptr;
}

}  // namespace fl::loop
