#include "flambeau/base/hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fl {

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace fl
