#include "flambeau/tensor/number_fits.h"

#include <cmath>
#include <limits>

#include "flambeau/base/error.h"
#include "flambeau/tensor/element.h"

namespace fl {
namespace {

template <class E>
double largest() {
  if constexpr (std::is_same_v<E, Half>)
    return 65504;
  else if constexpr (std::is_same_v<E, BFloat16>)
    return 0x1.fep127;
  else
    return static_cast<double>(std::numeric_limits<E>::max());
}

template <class E>
bool whole_fits(int64_t v) {
  if constexpr (std::is_same_v<E, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<E>) {
    constexpr int64_t most = std::numeric_limits<E>::max();
    return v <= most && v >= (std::is_unsigned_v<E> ? -most : std::numeric_limits<E>::min());
  } else {
    return std::abs(static_cast<double>(v)) <= largest<E>();
  }
}

template <class E>
bool fraction_fits(double v) {
  if constexpr (std::is_same_v<E, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<E>) {
    // The largest int64 is no double: the next one above is, and it is out.
    const double whole = std::trunc(v), most = static_cast<double>(std::numeric_limits<E>::max());
    const bool below = sizeof(E) == 8 ? whole < most : whole <= most;
    return below && whole >= (std::is_unsigned_v<E> ? -most : std::numeric_limits<E>::min());
  } else {
    return !std::isfinite(v) || std::abs(v) <= largest<E>();
  }
}

template <class E>
bool fits(const Scalar& s) {
  if constexpr (is_complex_type<E>::value) {
    using Part = typename E::value_type;
    if (!s.is_complex()) return fits<Part>(s);
    return fraction_fits<Part>(s.to_complex().real()) && fraction_fits<Part>(s.to_complex().imag());
  } else {
    if (s.is_integral()) return s.sym_int().is_symbolic() || whole_fits<E>(s.to_int());
    if (!s.is_complex()) return fraction_fits<E>(s.to_double());
    return s.to_complex().imag() == 0 && fraction_fits<E>(s.to_complex().real());
  }
}

}  // namespace

void check_fits(const Scalar& number, DType dtype) {
  const bool all_right =
      visit_dtype(dtype, [&](auto* p) { return fits<std::remove_pointer_t<decltype(p)>>(number); });
  FL_CHECK(all_right, RuntimeError, "value cannot be converted to type {} without overflow: {}", name(dtype),
           number.str());
}

}  // namespace fl
