// Conversion between element types as a cast operator does it.
#pragma once
#include <complex>
#include <limits>
#include <type_traits>

#include "flambeau/tensor/tensor.h"

namespace fl {

template <class T>
struct is_complex_type : std::false_type {};
template <class T>
struct is_complex_type<std::complex<T>> : std::true_type {};

/// From any element type to any: a complex number's imaginary part is dropped, halves go through float, bool
/// is "not zero".
template <class To, class From>
To convert_element(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_element<To>(to_float(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (is_complex_type<From>::value && is_complex_type<To>::value) {
    return To(static_cast<typename To::value_type>(v.real()), static_cast<typename To::value_type>(v.imag()));
  } else if constexpr (is_complex_type<From>::value) {
    return convert_element<To>(v.real());
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(static_cast<float>(v));
  } else if constexpr (is_complex_type<To>::value) {
    return To(static_cast<typename To::value_type>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Through int32 or int64, whose smallest value stands for what does not fit: what x86's instruction
    // gives.
    using Wide = std::conditional_t<sizeof(To) <= 4, int32_t, int64_t>;
    constexpr From limit = static_cast<From>(sizeof(Wide) == 4 ? 0x1p31 : 0x1p63);
    const bool fits = v >= -limit && v < limit;
    return static_cast<To>(fits ? static_cast<Wide>(v) : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(v);
  }
}

/// The dtype whose elements are T.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Int8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Int16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::Int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::Int64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::Float16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::BFloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::Complex64;
  else {
    static_assert(std::is_same_v<T, std::complex<double>>);
    return DType::Complex128;
  }
}

/// Writes a number as one element of a dtype.
void store_scalar(void* to, DType dtype, const Scalar& s);
/// Reads one element as a number.
Scalar load_scalar(const void* from, DType dtype);
/// The first element in host memory, the others by the tensor's strides: the tensor's own memory, or on
/// another device `copy`.
const char* host_elements(const Tensor& t, std::vector<char>& copy);
/// The elements' bytes in row-major order, in host memory.
std::vector<char> row_major_bytes(const Tensor& t);

}  // namespace fl
