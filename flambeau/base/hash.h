// 128-bit content hashes (XXH3) for cache keys, and a combiner for hash tables.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace fl {

struct Hash128 {
  uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;
};

Hash128 hash128(std::string_view bytes);

inline uint64_t hash_combine(uint64_t seed, uint64_t v) {
  v *= 0x9E3779B97F4A7C15ull;
  v ^= v >> 32;
  return (seed ^ v) * 0xD6E8FEB86659FD93ull + (seed >> 29);
}

}  // namespace fl

template <>
struct std::hash<fl::Hash128> {
  size_t operator()(const fl::Hash128& h) const { return h.low; }
};
