// Special functions of one and two real numbers in float64, by name.
#pragma once
#include <string_view>

namespace fl::library {

using UnaryFunction = double (*)(double);
using BinaryFunction = double (*)(double, double);

/// "bessel_j0", "ndtri", ...; null where there is no function of the name.
UnaryFunction find_unary_function(std::string_view name);
/// "zeta", "gammainc", "legendre_polynomial_p" of x and n, ...
BinaryFunction find_binary_function(std::string_view name);

}  // namespace fl::library
