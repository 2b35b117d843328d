// One scalar of any dtype in its memory form: launch parameters, constants, values of the interpreter.
#pragma once
#include <complex>
#include <cstdint>
#include <cstring>

#include "flambeau/op/scalar_ops.h"

namespace fl::loop {

/// The first size_of(dtype) bytes are what a buffer holds for the value; the rest is zero.
struct alignas(16) ScalarBits {
  unsigned char bytes[16] = {};

  template <class T>
  T get() const {
    T out;
    std::memcpy(&out, bytes, sizeof(T));
    return out;
  }
  template <class T>
  static ScalarBits of(T value) {
    ScalarBits out;
    std::memcpy(out.bytes, &value, sizeof(T));
    return out;
  }
  /// The literal converted to dtype as an assignment of PyTorch does.
  static ScalarBits of(DType dtype, const Literal& value);
  bool operator==(const ScalarBits& o) const { return std::memcmp(bytes, o.bytes, 16) == 0; }
};

/// Element types that C++ lacks: the bits of a half and of a bfloat16.
struct Half {
  uint16_t bits = 0;
};
struct BFloat {
  uint16_t bits = 0;
};
float to_float(Half h);
float to_float(BFloat b);
Half to_half(float f);      ///< Rounds to even; nan stays nan.
BFloat to_bfloat(float f);  ///< Rounds to even; nan becomes 0x7fc0 with its sign.

/// Calls f with a value of the C++ type that holds the dtype.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f(bool{});
    case DType::UInt8:
      return f(uint8_t{});
    case DType::Int8:
      return f(int8_t{});
    case DType::Int16:
      return f(int16_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Float16:
      return f(Half{});
    case DType::BFloat16:
      return f(BFloat{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    case DType::Complex64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

}  // namespace fl::loop
