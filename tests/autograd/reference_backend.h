// A backend for tests: runs primitives one element at a time by the meaning of their scalar operations.
#pragma once
#include "flambeau/op/dispatch.h"

namespace fl::testing {

/// Installs the backend and autograd, once a process.
void set_up();

}  // namespace fl::testing
