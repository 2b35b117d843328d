// What tests of graphs and gradients need before their first call.
#pragma once
#include "flambeau/op/op.h"

namespace fl::testing {

/// Defines the operators; that installs the backend and autograd.
inline void set_up() { op_table(); }

}  // namespace fl::testing
