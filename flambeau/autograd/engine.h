// Runs a graph of nodes backwards.
#pragma once
#include "flambeau/autograd/node.h"

namespace fl {

struct BackwardPass {
  std::vector<Edge> roots;
  Tensors root_grads;
  std::vector<Edge> wanted;  ///< empty: every leaf
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;  ///< into `wanted` leaves; otherwise their gradients are returned
};
/// Gradients by `wanted` if they are not accumulated. Runs on the calling thread; several threads may run
/// passes over one graph, and a hook may run another pass.
Tensors run_backward(BackwardPass pass);

/// Whether the pass that this thread is in needs the node to run. True outside a pass.
bool is_wanted(const Node& node);

/// The number of the pass that this thread is in: another one for every pass. 0 outside.
uint64_t current_pass();
/// Whether gradients of that pass reach the node. False outside a pass.
bool is_reached(const Node& node);

}  // namespace fl
