// Which loop nodes become one kernel. Shown at work by tests/loop/fuse_test.cpp.
#pragma once
#include <optional>
#include <vector>

#include "flambeau/loop/nodes.h"

namespace fl::loop {

/// Nodes that run as one kernel: outer loops p0, p1, ... and, if a node reduces, inner loops q0, q1, ...
struct Group {
  std::vector<int> nodes;  ///< ascending
  std::vector<Expr> outer, inner;
};

/// A node's loop variables as expressions over the group's.
struct Placement {
  Index i, r;
  bool full = false;  ///< it runs at every point of outer and inner loops; else once an outer iteration
};
std::optional<Placement> place_node(const LoopNode& n, const std::vector<Expr>& outer,
                                    const std::vector<Expr>& inner);
std::vector<Range> group_ranges(char letter, const std::vector<Expr>& sizes);

/// When each node of a group runs: even levels once an outer iteration, odd levels in the inner loops; a
/// result of a reduction at level k is there from level k + 1 on. Nothing if the nodes cannot run together.
std::optional<std::vector<int>> group_levels(const NodeGraph& g, const Group& group);

/// Groups in an order in which they can run. fuse == false: one node each.
std::vector<Group> fuse_nodes(const NodeGraph& g, bool fuse);

}  // namespace fl::loop
