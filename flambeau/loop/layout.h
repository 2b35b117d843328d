// Memory layouts of values that nobody outside of the program sees.
#pragma once
#include <set>

#include "flambeau/loop/nodes.h"

namespace fl::loop {

/// Gives images that convolutions read and write channels-last strides, with the values computed beside them,
/// where that saves more than the strided accesses at the border to values of fixed layout cost. Sizes and
/// values stay; orders of reductions follow from the graph and stay, too. `library`: nodes that a routine of
/// the library computes; images of those that `rule` denies stay. Fills g.laid_out.
void lay_out_images(NodeGraph& g, const std::set<int32_t>& library, LayoutRule rule);

}  // namespace fl::loop
