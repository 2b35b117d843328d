// The loops around a library call that the library does not do, or not to the bit as our kernels do.
#pragma once
#include <array>
#include <cstdint>

#include "flambeau/library/library.h"

namespace fl::library {

/// A box of elements; innermost dimension last. Strides in elements, 0 repeats.
struct Box {
  std::array<int64_t, 4> sizes{1, 1, 1, 1};
  std::array<int64_t, 4> strides{0, 0, 0, 0};
};

/// to = from, element by element; both boxes have `to`'s sizes. May be the same memory with the same strides.
void copy_box(ScalarKind dtype, const Box& to, void* to_data, const std::array<int64_t, 4>& from_strides,
              const void* from_data);

/// data = data < 0 ? 0 : data: nan and -0 stay.
void relu_box(ScalarKind dtype, const Box& box, void* data);

/// data = factor * data (0 fills, whatever was there) + addend, which may be null; computed in f32.
void scale_add_box(ScalarKind dtype, const Box& box, void* data, float factor,
                   const std::array<int64_t, 4>& addend_strides, const void* addend);

}  // namespace fl::library
