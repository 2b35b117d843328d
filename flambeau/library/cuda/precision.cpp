#include "flambeau/library/cuda/precision.h"

#include <atomic>

namespace fl::library::cuda {
namespace {

constinit std::atomic<bool> matmul{false}, convolution{true};

std::atomic<bool>& flag(Tf32 part) { return part == Tf32::Matmul ? matmul : convolution; }

}  // namespace

bool tf32_allowed(Tf32 part) { return flag(part).load(std::memory_order_relaxed); }

void allow_tf32(Tf32 part, bool allowed) { flag(part).store(allowed, std::memory_order_relaxed); }

}  // namespace fl::library::cuda
