// Kernels that reduce rows or columns, as text.
#pragma once
#include <string>
#include <string_view>

namespace fl::codegen {

/// y[i] = first result of op along rows of x; z = what is left of x without it.
std::string row_kernel(std::string_view dtype, std::string_view op, int lanes);
/// The same results along the middle dimension of {s0, s1, s2}, lanes along the last one.
std::string column_kernel(std::string_view op, int lanes);

}  // namespace fl::codegen
