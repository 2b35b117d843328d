// Runs operators one element at a time by the definitions of op/ and the scalar operations' reference
// meaning: slow, short, and independent of the loop IR and of code generation.
#pragma once
#include "flambeau/op/dispatch.h"

namespace fl::testing {

Backend& reference_backend();

}  // namespace fl::testing
