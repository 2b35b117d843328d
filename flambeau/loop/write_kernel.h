// Groups of loop nodes as kernels.
#pragma once
#include <vector>

#include "flambeau/loop/fuse.h"
#include "flambeau/loop/ir.h"

namespace fl::loop {

struct WrittenKernel {
  Kernel kernel;
  std::vector<GraphRef> buffers;  ///< the value behind each buffer of the kernel
};

/// The kernels of one group in order (a scatter is two: the copy of its base, then the stores). `readers`:
/// nodes that read a value, by number; a value that only this group reads and that needs no memory is not
/// stored.
using Readers = std::unordered_map<GraphRef, std::vector<int>, RefHash>;
std::vector<WrittenKernel> write_kernels(const NodeGraph& g, const Group& group, const Readers& readers);

/// In which order the points of a kernel's reductions combine.
struct ReductionOrder {
  bool columns = false;       ///< They run along the outer loops in memory:
  bool cuts_columns = false;  ///< such ones have partial results, too.
  int lanes = kReduceLanes;   ///< Partial results.
};
/// Chooses the order of the loops by the strides of memory, joins loops that run over memory as one, and
/// chooses the vector axis. `hint` gives a size for the example.
/// Inner loops stay as they are: their order is the order of reductions.
void arrange_loops(Kernel& k, ReductionOrder order, const std::function<int64_t(const Expr&)>& hint);

}  // namespace fl::loop
