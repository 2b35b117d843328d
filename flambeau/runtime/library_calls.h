// Library calls of programs, resolved once for sizes: what a LibraryStep runs.
#pragma once
#include <functional>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/op/op_def.h"

namespace fl::runtime {

/// Layout of one operand or result, in elements.
struct OperandLayout {
  DType dtype = DType::Float32;
  std::vector<int64_t> sizes, strides;
};

/// operands[k] and results[k]: address of element 0. Reentrant; takes scratch from the calling thread's
/// workspace.
using PreparedCall = std::function<void(void* const* operands, void* const* results)>;

struct CallArguments;
/// The routine on the CPU of the operator's library call. args are the operator's, numbers evaluated,
/// GraphRef{k, 0} (GraphRefList) in the place of tensors, k an index of operands. Layouts that the library
/// does not take are copied on the way. Raises NotImplementedError for a dtype that no routine takes.
PreparedCall prepare_library_call(const CallArguments& call);

/// For loop::lower: whether a convolution's images may be laid out with channels last.
bool takes_channels_last(const graph::Graph& g, const graph::Node& call);

/// Data-dependent operators, eager only: positions of nonzero elements, int64 [count, dim].
Tensor nonzero_positions(const Tensor& t);

}  // namespace fl::runtime
