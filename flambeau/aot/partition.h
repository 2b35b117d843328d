// Cuts a joint graph into a forward and a backward graph. Tests: tests/aot/partition_test.cpp.
#pragma once
#include <vector>

#include "flambeau/aot/joint.h"

namespace fl::aot {

struct PartitionOptions {
  /// Forward values may be computed again in the backward graph where that saves memory.
  bool recompute = true;
};

/// A tensor that the backward graph reads.
struct SavedValue {
  int output = -1;     ///< of the forward graph; -1: it is an input
  int32_t input = -1;  ///< node id of the input of the forward graph
};

struct Partition {
  /// Outputs: those of JointProgram::forward_outputs() in order, then saved tensors, then saved numbers.
  graph::Graph forward;
  /// Inputs: the saved tensors, tangents, saved numbers. Outputs: the gradients, None where there is none.
  graph::Graph backward;
  int forward_outputs = 0;
  std::vector<SavedValue> saved;
  int saved_numbers = 0;
  int64_t saved_bytes = 0;  ///< for the example sizes, without inputs and captured tensors
};

/// Saves the values whose total size is the least such that backward can be computed from them without
/// repeating what is dear (a minimum cut; capacities and bans as in PyTorch's partitioner). The graph has to
/// be functional.
Partition partition(const JointProgram& joint, const PartitionOptions& options = {});

}  // namespace fl::aot
