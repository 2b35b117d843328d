// Stable sorting of keys with positions, where each dtype's order is that of unsigned keys.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "flambeau/tensor/element.h"

namespace fl::runtime {

template <class T>
struct SortKey;  // the unsigned type that holds T's order
template <class T>
requires(sizeof(T) == 1) struct SortKey<T> {
  using type = uint8_t;
};
template <class T>
requires(sizeof(T) == 2) struct SortKey<T> {
  using type = uint16_t;
};
template <class T>
requires(sizeof(T) == 4) struct SortKey<T> {
  using type = uint32_t;
};
template <class T>
requires(sizeof(T) == 8) struct SortKey<T> {
  using type = uint64_t;
};

/// a before b exactly where sort_key(a) < sort_key(b): -0 and 0 are equal, every nan is the largest.
template <class T>
typename SortKey<T>::type sort_key(T value) {
  using Key = typename SortKey<T>::type;
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<Key>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(static_cast<Key>(value) ^ kSign);
  } else {
    const Key bits = std::bit_cast<Key>(value);
    constexpr Key kInfinity = std::is_same_v<T, Half>       ? Key{0x7c00}
                              : std::is_same_v<T, BFloat16> ? Key{0x7f80}
                              : sizeof(T) == 4              ? static_cast<Key>(0x7f800000)
                                                            : static_cast<Key>(0x7ff0000000000000);
    const Key magnitude = static_cast<Key>(bits & ~kSign);
    if (magnitude > kInfinity) return std::numeric_limits<Key>::max();
    if (magnitude == 0) return kSign;
    return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
  }
}

template <class Key, class Position>
struct SortItem {
  Key key;
  Position position;
};

/// Sorts count items whose positions grow, by key and then position. Either `items` or `spare` holds the
/// result, which is returned; both have `count` entries.
template <class Key, class Position>
SortItem<Key, Position>* sort_items(SortItem<Key, Position>* items, SortItem<Key, Position>* spare,
                                    int64_t count) {
  using Item = SortItem<Key, Position>;
  constexpr int64_t kFewItems = 256;  // below it, counting 256 digits costs more than comparing
  if (count < kFewItems) {
    std::sort(items, items + count, [](const Item& a, const Item& b) {
      return a.key != b.key ? a.key < b.key : a.position < b.position;
    });
    return items;
  }
  constexpr int kDigits = sizeof(Key);
  std::array<std::array<Position, 256>, kDigits> counts{};
  for (int64_t i = 0; i < count; ++i)
    for (int d = 0; d < kDigits; ++d) ++counts[d][items[i].key >> (8 * d) & 0xff];
  for (int d = 0; d < kDigits; ++d) {
    std::array<Position, 256>& places = counts[d];
    // A digit that all keys share leaves the order as it is.
    if (places[items[0].key >> (8 * d) & 0xff] == static_cast<Position>(count)) continue;
    Position sum = 0;
    for (Position& place : places) sum += std::exchange(place, sum);
    for (int64_t i = 0; i < count; ++i) spare[places[items[i].key >> (8 * d) & 0xff]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

}  // namespace fl::runtime
