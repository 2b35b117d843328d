// Images from one layout to the other.
#pragma once
#include <cstdint>

namespace fl::library {

/// to[b][c][r] = from[b][r][c] for `batch` dense matrices of rows x columns elements of 2 or 4 bytes. The two
/// do not overlap.
void transpose(const void* from, void* to, int64_t batch, int64_t rows, int64_t columns,
               int64_t element_bytes);

}  // namespace fl::library
