// Learns handwritten digits twice from one seed, eagerly and compiled, and compares. Exits with 1 if the
// network has not learnt them or the two runs disagree. Usage: digits [--seed N] [--epochs N]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "flambeau/base/error.h"
#include "training.h"

using namespace digits;

namespace {

constexpr double kAccuracyWanted = 98;
/// Of the losses of an epoch. A fused kernel and the operators that it replaces may round differently, and
/// training lets such differences grow.
constexpr double kLargestDifference = 1e-6;

Settings settings_from(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    char* end = nullptr;
    const long number = value ? std::strtol(value, &end, 10) : -1;
    const bool valid = value && *end == '\0' && number >= 0;
    if (valid && !std::strcmp(argv[i], "--seed")) {
      s.seed = static_cast<uint64_t>(number);
    } else if (valid && number > 0 && !std::strcmp(argv[i], "--epochs")) {
      s.epochs = static_cast<int>(number);
    } else {
      std::fprintf(stderr, "usage: digits [--seed N] [--epochs N]\n");
      std::exit(2);
    }
  }
  return s;
}

double largest_difference(const Result& a, const Result& b) {
  double largest = 0;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    const double difference = std::abs(a.losses[i] - b.losses[i]);
    if (!(difference <= largest)) largest = difference;  // also not a number
  }
  return largest;
}

void print_table(const Result& eager, const Result& compiled) {
  std::printf("\n%-24s %12s %12s %12s\n", "", "eager", "compiled", "difference");
  for (size_t i = 0; i < eager.losses.size(); ++i)
    std::printf("loss of epoch %-10zu %12.6f %12.6f %12.2e\n", i + 1, eager.losses[i], compiled.losses[i],
                std::abs(eager.losses[i] - compiled.losses[i]));
  const auto row = [](const char* name, const char* unit, double a, double b) {
    std::printf("%-24s %12.2f %12.2f   %s\n", name, a, b, unit);
  };
  row("test accuracy", "%", eager.accuracy, compiled.accuracy);
  row("step, median", "ms", eager.median_ms, compiled.median_ms);
  row("first step", "ms", eager.first_ms, compiled.first_ms);
  row("peak memory", "MB", static_cast<double>(eager.peak_bytes) / 1e6,
      static_cast<double>(compiled.peak_bytes) / 1e6);
  row("whole run", "s", eager.seconds, compiled.seconds);
  for (const fl::GraphReport& g : compiled.explanation.graphs)
    std::printf(
        "compiled (%s): %d operators as %d kernels and %d library calls; capture %.1f ms, lowering %.1f ms, "
        "machine code %.1f ms\n",
        g.reason.c_str(), g.operators, g.kernels, g.library_calls, g.times.trace, g.times.lower,
        g.times.codegen);
}

int run(const Settings& settings) {
  const Data data = load(FLAMBEAU_EXAMPLE_DATA "/digits.csv", settings.seed);
  const Result eager = train(data, settings, false);
  const Result compiled = train(data, settings, true);
  print_table(eager, compiled);

  const double difference = largest_difference(eager, compiled);
  const double accuracy = std::min(eager.accuracy, compiled.accuracy);
  if (!(accuracy >= kAccuracyWanted))
    std::printf("the test accuracy is %.2f %% when it should be %.0f %% or more\n", accuracy,
                kAccuracyWanted);
  if (!(difference <= kLargestDifference))
    std::printf("the losses differ by %.2e when they may by %.2e\n", difference, kLargestDifference);
  std::printf(
      "demo: accuracy %.2f %%, largest loss difference %.2e, compiled/eager %.3f, first step %.0f ms\n",
      accuracy, difference, compiled.median_ms / eager.median_ms, compiled.first_ms);
  return accuracy >= kAccuracyWanted && difference <= kLargestDifference ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(settings_from(argc, argv));
  } catch (const fl::Error& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
