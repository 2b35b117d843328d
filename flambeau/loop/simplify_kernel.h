// Clean-up of kernels after they were recorded or changed.
#pragma once
#include "flambeau/loop/ir.h"

namespace fl::loop {

/// Drops instructions and reductions that reach no store and no check, and numbers the others in the order in
/// which they are printed.
void drop_dead_code(Kernel& k);
/// Adds the size symbols that occur in the kernel to k.sizes, in first-use order.
void collect_sizes(Kernel& k);

}  // namespace fl::loop
