#include "flambeau/loop/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "flambeau/base/error.h"
#include "flambeau/loop/library_function.h"

namespace fl::loop {
namespace {

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

int64_t truncate(double x, bool wide) {
  if (wide) return x >= -0x1p63 && x < 0x1p63 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
  const double t = std::trunc(x);
  return t >= -0x1p31 && t < 0x1p31 ? static_cast<int64_t>(t) : std::numeric_limits<int32_t>::min();
}

template <class To, class From>
To convert(From x) {
  if constexpr (is_half_type<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(convert<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return to_bfloat(convert<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (is_complex_type<To>) {
    using R = typename To::value_type;
    if constexpr (is_complex_type<From>)
      return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    else
      return To(static_cast<R>(x), 0);
  } else if constexpr (is_complex_type<From>) {
    return convert<To>(x.real());
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(truncate(x, sizeof(To) == 8));
  } else {
    return static_cast<To>(x);
  }
}

ScalarBits cast(DType to, DType from, const ScalarBits& a) {
  return with_type(from, [&](auto f) {
    const auto x = a.get<decltype(f)>();
    return with_type(to, [&](auto t) { return ScalarBits::of(convert<decltype(t)>(x)); });
  });
}

[[noreturn]] void no_meaning(ScalarOp op, DType dtype) {
  FL_RAISE(ValueError, "{} is not defined for {}", name(op), name(dtype));
}

template <class T>
T integer_op(ScalarOp op, T a, T b, T c, DType dtype) {
  using U = std::make_unsigned_t<T>;
  using W = uint64_t;  // wide enough that no product overflows a promoted int
  const W x = static_cast<W>(a), y = static_cast<W>(b);
  constexpr T low = std::numeric_limits<T>::min();
  constexpr int bits = 8 * sizeof(T);
  const bool in_range = static_cast<U>(b) < bits;
  switch (op) {
    case ScalarOp::Neg:
      return static_cast<T>(W(0) - x);
    case ScalarOp::Abs:
      return a < 0 ? static_cast<T>(W(0) - x) : a;
    case ScalarOp::Not:
      return static_cast<T>(~x);
    case ScalarOp::Add:
      return static_cast<T>(x + y);
    case ScalarOp::Sub:
      return static_cast<T>(x - y);
    case ScalarOp::Mul:
      return static_cast<T>(x * y);
    case ScalarOp::Div:
      if (b == 0) return 0;
      if (std::is_signed_v<T> && a == low && b == static_cast<T>(-1)) return low;
      return static_cast<T>(a / b);
    case ScalarOp::Rem:
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      return static_cast<T>(a % b);
    case ScalarOp::Minimum:
      return a < b ? a : b;
    case ScalarOp::Maximum:
      return b < a ? a : b;
    case ScalarOp::And:
      return static_cast<T>(x & y);
    case ScalarOp::Or:
      return static_cast<T>(x | y);
    case ScalarOp::Xor:
      return static_cast<T>(x ^ y);
    case ScalarOp::Shl:
      return in_range ? static_cast<T>(x << static_cast<U>(b)) : T(0);
    case ScalarOp::Shr:
      if (!in_range) return a < 0 ? static_cast<T>(-1) : T(0);
      return static_cast<T>(a >> static_cast<U>(b));
    case ScalarOp::Fma:
      return static_cast<T>(x * y + static_cast<W>(c));
    case ScalarOp::Mulhi:
      if (dtype == DType::Int32)
        return static_cast<T>((W(static_cast<uint32_t>(a)) * W(static_cast<uint32_t>(b))) >> 32);
      [[fallthrough]];
    default:
      no_meaning(op, dtype);
  }
}

bool bool_op(ScalarOp op, bool a, bool b) {
  switch (op) {
    case ScalarOp::Not:
      return !a;
    case ScalarOp::Add:
    case ScalarOp::Or:
    case ScalarOp::Maximum:
      return a || b;
    case ScalarOp::Mul:
    case ScalarOp::And:
    case ScalarOp::Minimum:
      return a && b;
    case ScalarOp::Xor:
      return a != b;
    default:
      no_meaning(op, DType::Bool);
  }
}

template <class T>
T float_op(ScalarOp op, T a, T b, T c, DType dtype) {
  switch (op) {
    case ScalarOp::Neg:
      return -a;
    case ScalarOp::Abs:
      return std::fabs(a);
    case ScalarOp::Floor:
      return std::floor(a);
    case ScalarOp::Ceil:
      return std::ceil(a);
    case ScalarOp::Trunc:
      return std::trunc(a);
    case ScalarOp::Round:
      return std::nearbyint(a);
    case ScalarOp::Sqrt:
      return std::sqrt(a);
    case ScalarOp::Add:
      return a + b;
    case ScalarOp::Sub:
      return a - b;
    case ScalarOp::Mul:
      return a * b;
    case ScalarOp::Div:
      return a / b;
    case ScalarOp::Minimum:
      return a < b || a != a ? a : b;
    case ScalarOp::Maximum:
      return b < a || a != a ? a : b;
    case ScalarOp::Copysign:
      return std::copysign(a, b);
    case ScalarOp::Fma:
      return std::fma(a, b, c);
    default:
      if (LibraryFunction f = library_function(op, dtype)) {
        T out;
        f(&a, &b, &out, 1);
        return out;
      }
      no_meaning(op, dtype);
  }
}

// Smith's division as PyTorch does it: scaled by the larger part of the divisor.
template <class T>
std::complex<T> divide(std::complex<T> n, std::complex<T> d) {
  const T a = n.real(), b = n.imag(), p = d.real(), q = d.imag();
  if (std::fabs(p) >= std::fabs(q)) {
    if (p == 0 && q == 0) return {a / std::fabs(p), b / std::fabs(q)};
    const T ratio = q / p, scale = 1 / (p + q * ratio);
    return {(a + b * ratio) * scale, (b - a * ratio) * scale};
  }
  const T ratio = p / q, scale = 1 / (q + p * ratio);
  return {(a * ratio + b) * scale, (b * ratio - a) * scale};
}

template <class T>
std::complex<T> complex_op(ScalarOp op, std::complex<T> a, std::complex<T> b, DType dtype) {
  switch (op) {
    case ScalarOp::Neg:
      return {-a.real(), -a.imag()};
    case ScalarOp::Add:
      return {a.real() + b.real(), a.imag() + b.imag()};
    case ScalarOp::Sub:
      return {a.real() - b.real(), a.imag() - b.imag()};
    case ScalarOp::Mul:
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    case ScalarOp::Div:
      return divide(a, b);
    default:
      no_meaning(op, dtype);
  }
}

template <class T>
bool compare(ScalarOp op, T a, T b, DType dtype) {
  if (op == ScalarOp::Eq) return a == b;
  if (op == ScalarOp::Ne) return !(a == b);
  if constexpr (!is_complex_type<T>) return op == ScalarOp::Lt ? a < b : a <= b;
  no_meaning(op, dtype);
}

// What stands for an operand that the operation does not have may hold anything, no bool, say.
template <class T>
T operand(const ScalarBits& bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits.bytes[0] != 0;
  else
    return bits.get<T>();
}

template <class T>
ScalarBits apply(ScalarOp op, DType dtype, const ScalarBits& a, const ScalarBits& b, const ScalarBits& c) {
  const T x = operand<T>(a), y = operand<T>(b);
  if (op >= ScalarOp::Eq && op <= ScalarOp::Le) return ScalarBits::of(compare(op, x, y, dtype));
  if constexpr (std::is_same_v<T, bool>) {
    return ScalarBits::of(bool_op(op, x, y));
  } else if constexpr (is_complex_type<T>) {
    if (op == ScalarOp::Real) return ScalarBits::of(x.real());
    if (op == ScalarOp::Imag) return ScalarBits::of(x.imag());
    return ScalarBits::of(complex_op(op, x, y, dtype));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (op == ScalarOp::Complex) return ScalarBits::of(std::complex<T>(x, y));
    return ScalarBits::of(float_op(op, x, y, c.get<T>(), dtype));
  } else {
    if (LibraryFunction f = library_function(op, dtype)) {
      T out;
      f(&x, &y, &out, 1);
      return ScalarBits::of(out);
    }
    return ScalarBits::of(integer_op(op, x, y, c.get<T>(), dtype));
  }
}

}  // namespace

float to_float(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, exponent = (h.bits >> 10) & 31,
                 mantissa = h.bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

float to_float(BFloat b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }

Half to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff))};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000)  // a denormal half: the sum rounds at its last bit
    return {static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000))};
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13)};
}

BFloat to_bfloat(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7fc0)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

ScalarBits ScalarBits::of(DType dtype, const Literal& value) {
  if (value.kind == Literal::Kind::Int) return cast(dtype, DType::Int64, of(value.i));
  return cast(dtype, DType::Complex128, of(value.c));
}

DType result_dtype(ScalarOp op, DType requested, DType a, DType b) {
  switch (op) {
    case ScalarOp::Cast:
    case ScalarOp::Bitcast:
      return requested;
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
      return DType::Bool;
    case ScalarOp::Abs:
    case ScalarOp::Real:
    case ScalarOp::Imag:
      return real_dtype(a);
    case ScalarOp::Complex:
      return complex_dtype(a);
    case ScalarOp::Select:
      return b;
    default:
      return a;
  }
}

ScalarBits evaluate(ScalarOp op, DType result, DType operand, const ScalarBits& a, const ScalarBits& b,
                    const ScalarBits& c) {
  if (op == ScalarOp::Cast) return cast(result, operand, a);
  if (op == ScalarOp::Bitcast) return result == DType::Bool ? ScalarBits::of(a.get<uint8_t>() != 0) : a;
  if (op == ScalarOp::Select) return a.get<bool>() ? b : c;
  return with_type(operand, [&](auto t) -> ScalarBits {
    if constexpr (is_half_type<decltype(t)>)
      no_meaning(op, operand);
    else
      return apply<decltype(t)>(op, operand, a, b, c);
  });
}

}  // namespace fl::loop
