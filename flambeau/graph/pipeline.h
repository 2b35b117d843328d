// The driver of passes over graphs.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::graph {

struct Pass {
  std::string_view name;
  void (*run)(Graph&);
};

struct PassReport {
  std::string_view name;
  double microseconds = 0;
  int32_t calls_before = 0, calls_after = 0;
  bool skipped = false;
};

/// Runs the passes in order and verifies the graph after each (unless FLAMBEAU_VERIFY=0). `stage` names the
/// graph in dumps. FLAMBEAU_DUMP=graph prints the graph before the first pass and after each that changed
/// it, FLAMBEAU_SKIP=name,name leaves passes out. An error of a pass names it.
std::vector<PassReport> run_passes(Graph& g, std::span<const Pass> passes, std::string_view stage);

/// The simplifications that need no knowledge of what comes next: run on functional graphs.
std::span<const Pass> simplification_passes();

}  // namespace fl::graph
