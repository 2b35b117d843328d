#include "flambeau/runtime/determinism.h"

#include <atomic>

namespace fl::runtime {
namespace {
std::atomic<bool> g_on{false};
}

bool deterministic_algorithms() { return g_on.load(std::memory_order_relaxed); }
void use_deterministic_algorithms(bool on) { g_on.store(on, std::memory_order_relaxed); }

}  // namespace fl::runtime
