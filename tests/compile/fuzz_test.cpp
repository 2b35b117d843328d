// Random programs: eager = compiled with every backend, on the first sizes and on others.
// FLAMBEAU_FUZZ_COUNT programs (default 25) from FLAMBEAU_FUZZ_SEED on (default 1), one seed a program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "compare_runs.h"
#include "flambeau/base/option.h"

namespace fl::testing {
namespace {

struct Counts {
  int programs = 0, runs = 0, not_to_the_bit = 0, captured_again = 0, fallbacks = 0, raised = 0;
  std::map<std::string, int> bits_by_backend;
};

// Whether only first dimensions are open: those are symbols at the first capture.
bool first_dimensions_only(const RandomProgram& p) {
  for (const ProgramInput& i : p.inputs)
    for (size_t d = 1; d < i.sizes.size(); ++d)
      if (i.sizes[d] == kOpenSize) return false;
  return true;
}

// Whether a size that was 0 or 1 in the first run is why: a program keeps those.
bool small_at_first(const std::string& reason) {
  return reason.ends_with(" < 2") || reason.ends_with(" == 0");
}

bool may_run_eagerly(const std::string& why) {
  for (const char* known : {"not all gradients", "not its history", "whose elements share memory"})
    if (why.find(known) != std::string::npos) return true;
  return false;
}

// The first difference of a program compiled with a backend, or nothing.
std::string check(const RandomProgram& p, const std::string& backend, Counts* counts = nullptr) {
  const Callable f = [p](const Tensors& inputs) { return run_program(p, inputs); };
  std::vector<int64_t> sizes{kFirstSize};
  if (backend != "interpreter" || !p.large) sizes.insert(sizes.end(), {9, 13});
  const Run first = observe(p, f, kFirstSize);
  if (!first.error.empty()) {
    if (counts) ++counts->raised;
    return {};
  }
  std::string text;
  try {
    const Compiled compiled = compile(f, {.backend = backend});
    for (int64_t n : sizes) {
      Run eager = n == kFirstSize ? first : observe(p, f, n);
      if (!eager.error.empty()) continue;  // the program fixes other sizes
      bool bits = false;
      const Run run = observe(p, compiled, n);
      std::string d = difference(eager, run, &bits);
      if (!d.empty()) {
        measure_rounding(eager, p, n);
        d = difference(eager, run, &bits);
      }
      if (!d.empty()) text += fmt::format("  n = {}: {}\n", n, d);
      if (counts) {
        ++counts->runs;
        if (bits) ++counts->not_to_the_bit, ++counts->bits_by_backend[backend];
      }
      if (!text.empty()) return text;
    }
    const Explanation e = compiled.explain();
    if (!e.fallbacks.empty() && !may_run_eagerly(e.fallbacks[0]))
      text = "  runs eagerly: " + e.fallbacks[0] + "\n";
    if (counts && !e.fallbacks.empty()) ++counts->fallbacks;
    if (counts && e.graphs.size() > 1) ++counts->captured_again;
    if (e.graphs.size() > 1 && first_dimensions_only(p) && !small_at_first(e.graphs[1].reason))
      text += fmt::format("  captured again: {}\n", e.graphs[1].reason);
  } catch (const Error& e) {
    text += "  raises " + e.message() + "\n";
  }
  return text;
}

class CompileFuzz : public ::testing::Test {
 protected:
  void SetUp() override { register_unfused_backend(); }
};

TEST_F(CompileFuzz, CompiledIsEager) {
  const int count = std::atoi(option("FLAMBEAU_FUZZ_COUNT", "25").c_str());
  const uint64_t seed = std::strtoull(option("FLAMBEAU_FUZZ_SEED", "1").c_str(), nullptr, 10);
  Counts counts;
  std::map<std::string, std::pair<uint64_t, int>> broken;  // the first seed, and how often
  int failures = 0;
  for (int k = 0; k < count && failures < 10; ++k) {
    std::vector<std::string> errors;
    const uint64_t its_seed = seed + static_cast<uint64_t>(k);
    const int64_t memory = allocator_stats({}).allocated;
    const RandomProgram p = random_program(its_seed, errors);
    for (const std::string& e : errors) ++broken.try_emplace(e, its_seed, 0).first->second.second;
    if (count == 1) fmt::print("{}", p.str()), std::fflush(stdout);
    ++counts.programs;
    for (const char* backend : {"native", "interpreter", "aot_eager", "unfused"}) {
      if (p.large && backend == std::string("interpreter")) continue;
      std::string text = check(p, backend, &counts);
      if (text.empty()) continue;
      ++failures;
      const RandomProgram small =
          shrink(p, [&](const RandomProgram& q) { return !check(q, backend).empty(); });
      ADD_FAILURE() << "seed " << its_seed << ", backend " << backend << "\n"
                    << check(small, backend) << small.str();
      break;
    }
    if (const int64_t now = allocator_stats({}).allocated; now > memory) {
      ++failures;
      ADD_FAILURE() << "seed " << its_seed << ": " << now - memory << " bytes are not given back\n"
                    << p.str();
    }
  }
  for (const auto& [message, where] : broken)
    ADD_FAILURE() << "seed " << where.first << ", eager: " << message << " (" << where.second << " times)";
  std::string by_backend;
  for (const auto& [backend, n] : counts.bits_by_backend) by_backend += fmt::format(" {} {}", backend, n);
  fmt::print(
      "{} programs, {} runs; close, but not equal to the bit:{} {}; captured again: {}; eager: {}; raised: "
      "{}\n",
      counts.programs, counts.runs, counts.not_to_the_bit, by_backend, counts.captured_again,
      counts.fallbacks, counts.raised);
}

}  // namespace
}  // namespace fl::testing
