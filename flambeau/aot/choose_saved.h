// Which values of the forward part the backward part reads.
#pragma once
#include <vector>

#include "flambeau/aot/joint.h"
#include "flambeau/aot/partition.h"

namespace fl::aot {

/// Of each node of the joint graph, by id.
struct Regions {
  std::vector<char> backward;  ///< depends on a tangent
  std::vector<char> forward;   ///< an output of the forward part depends on it
  std::vector<char> needed;    ///< any output depends on it
};
Regions find_regions(const JointProgram& joint);

/// 1 for each node whose outputs are saved. Every path from an input to a backward node meets a saved one.
std::vector<char> choose_saved(const JointProgram& joint, const Regions& regions,
                               const PartitionOptions& options);

}  // namespace fl::aot
