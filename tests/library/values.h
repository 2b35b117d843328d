// Numbers, element types and comparison for the tests of this folder.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "flambeau/library/library.h"

namespace fl::library::test {

inline uint16_t bf16_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Elements of one type in memory, read and written as double.
class Buffer {
 public:
  Buffer(ScalarKind kind, int64_t count) : kind_(kind), bytes_(count * scalar_bytes(kind)) {}
  /// Small random multiples of 1/8: exact in every type, and so are short sums of their products in f32.
  Buffer(ScalarKind kind, int64_t count, uint32_t seed) : Buffer(kind, count) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < count; ++i) set(i, (static_cast<int>(random() % 33) - 16) / 8.0);
  }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  int64_t count() const { return static_cast<int64_t>(bytes_.size()) / scalar_bytes(kind_); }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }
  bool operator==(const Buffer&) const = default;

  double get(int64_t i) const {
    if (kind_ == ScalarKind::F32) return at<float>(i);
    if (kind_ == ScalarKind::F64) return at<double>(i);
    if (kind_ == ScalarKind::F16) return static_cast<float>(at<_Float16>(i));
    return std::bit_cast<float>(static_cast<uint32_t>(at<uint16_t>(i)) << 16);
  }
  void set(int64_t i, double x) {
    if (kind_ == ScalarKind::F32) put(i, static_cast<float>(x));
    if (kind_ == ScalarKind::F64) put(i, x);
    if (kind_ == ScalarKind::F16) put(i, static_cast<_Float16>(x));
    if (kind_ == ScalarKind::BF16) put(i, bf16_bits(static_cast<float>(x)));
  }

 private:
  template <class T>
  T at(int64_t i) const {
    T x;
    std::memcpy(&x, bytes_.data() + i * sizeof(T), sizeof(T));
    return x;
  }
  template <class T>
  void put(int64_t i, T x) {
    std::memcpy(bytes_.data() + i * sizeof(T), &x, sizeof(T));
  }
  ScalarKind kind_;
  std::vector<char> bytes_;
};

/// What a result may be off by: one rounding to the type, plus a little of f32's.
inline double tolerance(ScalarKind kind, double expected) {
  const double unit = kind == ScalarKind::BF16 ? 1.0 / 256 : kind == ScalarKind::F16 ? 1.0 / 2048 : 1e-6;
  return unit * (std::abs(expected) + 1);
}

/// `scale`: how many times the tolerance.
inline bool close(ScalarKind kind, double actual, double expected, double scale = 1) {
  if (std::isnan(expected)) return std::isnan(actual);
  return std::abs(actual - expected) <= scale * tolerance(kind, expected);
}

}  // namespace fl::library::test
