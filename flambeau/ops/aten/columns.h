// Windows of images as columns, and back.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor">
    im2col;
inline constexpr Op<
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
    "stride) -> Tensor">
    col2im;

}  // namespace fl
