// What the oneDNN side of this folder offers the rest of it. Without the library the functions return null.
#pragma once
#include <memory>

#include "flambeau/library/convolution.h"
#include "flambeau/library/matmul.h"
#include "flambeau/library/recipe.h"

namespace fl::library {

/// Pointers of the recipe: a, b, bias, c; without relu. Null where the library has no fast kernel. `desc`:
/// no size 0, c row-major, batch strides at size 1 are 0, a bias is a vector along n or has c's strides.
std::unique_ptr<Recipe> build_matmul(const MatmulDesc& desc, int threads);

/// Pointers of the recipe: input, weight, bias, output (the gradients of them in the backward passes);
/// without relu, and without bias in backward data.
std::unique_ptr<Recipe> build_convolution(const ConvolutionDesc& desc, int threads);

}  // namespace fl::library
