// Runs operators one element at a time by the definitions of op/ and the scalar operations' reference
// meaning: slow, short, and independent of the loop IR and of code generation.
#pragma once
#include "flambeau/op/dispatch.h"

namespace fl::testing {

/// Opaque routines run on `routines`, once it was given.
Backend& reference_backend(Backend* routines = nullptr);

}  // namespace fl::testing
