// Times a function eagerly and compiled and prints one JSON line, as benchmarks/peer/measure.py does for
// PyTorch:
// {"name", "eager_ms", "compile_ms", "first_s"}: medians of interleaved calls; first_s: the first compiled
// call. What was not measured is null. tools/bench_table.py joins the lines.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "flambeau/base/error.h"
#include "flambeau/tensor/generator.h"

namespace bench {

using Function = std::function<void()>;

struct Measured {
  Function eager, compiled;  ///< empty: not measured
  double budget_s = 2;
  int calls = 1;  ///< a time measurement, for what takes microseconds
};

inline double seconds(const Function& f, int calls = 1) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

inline std::string milliseconds(std::vector<double> times) {
  if (times.empty()) return "null";
  std::ranges::sort(times);
  const size_t n = times.size();
  return fmt::format("{:.6g}", 1e3 * (times[n / 2] + times[(n - 1) / 2]) / 2);
}

inline void report(const std::string& name, const Measured& m) {
  const std::string first = m.compiled ? fmt::format("{:.6g}", seconds(m.compiled)) : "null";
  const auto round = [&] {
    if (m.eager) seconds(m.eager, m.calls);
    if (m.compiled) seconds(m.compiled, m.calls);
  };
  round();
  const int rounds = std::clamp(static_cast<int>(m.budget_s / std::max(seconds(round), 1e-9)), 5, 200);
  std::vector<double> eager, compiled;
  for (int i = 0; i < rounds; ++i) {
    if (m.eager) eager.push_back(seconds(m.eager, m.calls));
    if (m.compiled) compiled.push_back(seconds(m.compiled, m.calls));
  }
  std::printf("{\"name\": \"%s\", \"eager_ms\": %s, \"compile_ms\": %s, \"first_s\": %s}\n", name.c_str(),
              milliseconds(eager).c_str(), milliseconds(compiled).c_str(), first.c_str());
  std::fflush(stdout);
}

using Benchmark = std::pair<const char*, std::function<void(const std::string& name)>>;

/// Runs those that the command line names, or all.
inline int run(int argc, char** argv, const std::vector<Benchmark>& benchmarks) {
  try {
    for (const auto& [name, function] : benchmarks) {
      const bool named =
          std::any_of(argv + 1, argv + argc, [&](const char* a) { return std::string(a) == name; });
      if (argc > 1 && !named) continue;
      fl::manual_seed(0);
      function(name);
    }
  } catch (const fl::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace bench
