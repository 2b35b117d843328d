// Facts about the loops of generated code that launches rely on.
#pragma once
#include <cstdint>

namespace fl::codegen {

/// Launches divide work along the last outer loop in multiples of this many points: more than any vector, so
/// that threads share no vector, and whole cache lines of every dtype.
inline constexpr int64_t kVectorBlock = 128;
/// The same for VectorAxis::OuterTree, where the states of few points fill the first cache.
inline constexpr int64_t kTreeBlock = 32;

}  // namespace fl::codegen
