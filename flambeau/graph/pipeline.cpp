#include "flambeau/graph/pipeline.h"

#include "flambeau/base/option.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "flambeau/base/error.h"
#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/eliminate_common_subexpressions.h"
#include "flambeau/graph/pass/eliminate_dead_code.h"
#include "flambeau/graph/pass/fold_identities.h"

namespace fl::graph {
namespace {

void dump(const Graph& g, std::string_view stage, std::string_view when) {
  std::fprintf(stderr, "# %.*s %.*s\n%s", static_cast<int>(stage.size()), stage.data(),
               static_cast<int>(when.size()), when.data(), to_text(g).c_str());
}

}  // namespace

std::vector<PassReport> run_passes(Graph& g, std::span<const Pass> passes, std::string_view stage) {
  const bool dumping = option_lists("FLAMBEAU_DUMP", "graph");
  const bool verifying = !option_lists("FLAMBEAU_VERIFY", "0");
  std::vector<PassReport> reports;
  if (dumping) dump(g, stage, "at first");
  for (const Pass& pass : passes) {
    PassReport r{.name = pass.name, .calls_before = g.call_count()};
    r.skipped = option_lists("FLAMBEAU_SKIP", pass.name);
    if (!r.skipped) {
      const std::string before = dumping ? to_text(g) : "";
      const auto start = std::chrono::steady_clock::now();
      pass.run(g);
      r.microseconds =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
      if (dumping && to_text(g) != before) dump(g, stage, fmt::format("after {}", pass.name));
      try {
        if (verifying) verify_changes(g);
      } catch (const InternalError& e) {
        throw InternalError(
            fmt::format("{}: the graph is wrong after the pass {}: {}", stage, pass.name, e.what()));
      }
    }
    r.calls_after = g.call_count();
    reports.push_back(r);
  }
  return reports;
}

std::span<const Pass> simplification_passes() {
  static constexpr Pass kPasses[] = {
      {"eliminate_dead_code", [](Graph& g) { eliminate_dead_code(g); }},
      {"decompose", [](Graph& g) { decompose(g); }},
      {"fold_identities", [](Graph& g) { fold_identities(g); }},
      {"eliminate_common_subexpressions", [](Graph& g) { eliminate_common_subexpressions(g); }},
      {"eliminate_dead_code", [](Graph& g) { eliminate_dead_code(g); }},
  };
  return kPasses;
}

}  // namespace fl::graph
