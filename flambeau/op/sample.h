// Sample calls of an operator, from which its tests are made.
#pragma once
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "flambeau/op/value.h"

namespace fl {

struct OpInfo;

/// One call: every argument of the schema, or an error that it raises.
struct Sample {
  std::vector<Value> args;
  std::string note;
  std::string
      error;  ///< "IndexError: out of range": type and a part of the message; empty: the call succeeds
};

/// A set of dtypes as bits.
struct DTypeSet {
  uint32_t bits = 0;
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> l) {
    for (DType d : l) bits |= 1u << static_cast<int>(d);
  }
  constexpr DTypeSet(DTypeSet a, DTypeSet b) : bits(a.bits | b.bits) {}
  constexpr bool contains(DType d) const { return bits >> static_cast<int>(d) & 1; }
  constexpr DTypeSet operator|(DTypeSet o) const { return DTypeSet(*this, o); }
};
namespace dtypes {
inline constexpr DTypeSet boolean{DType::Bool};
inline constexpr DTypeSet integers{DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64};
inline constexpr DTypeSet halves{DType::Float16, DType::BFloat16};
inline constexpr DTypeSet full_floats{DType::Float32, DType::Float64};
inline constexpr DTypeSet floats = halves | full_floats;
inline constexpr DTypeSet complexes{DType::Complex64, DType::Complex128};
inline constexpr DTypeSet real = boolean | integers | floats;
inline constexpr DTypeSet all = real | complexes;
}  // namespace dtypes

/// Makes the tensors of samples; the same seed gives the same samples.
class SampleMaker {
 public:
  SampleMaker(DType dtype, uint64_t seed) : dtype_(dtype), random_(seed) {}
  DType dtype() const { return dtype_; }
  /// Uniform in [low, high) (integers: rounded; bool: random) of the sample's dtype, contiguous.
  Tensor make(IntList sizes, double low = -3, double high = 3);
  Tensor make(IntList sizes, DType dtype, double low, double high);
  /// The same elements with every second element of a larger storage (strided, not dense).
  Tensor make_strided(IntList sizes, double low = -3, double high = 3);
  /// Last two dimensions swapped in memory.
  Tensor make_transposed(IntList sizes, double low = -3, double high = 3);
  /// int64 indices in [low, high).
  Tensor make_index(IntList sizes, int64_t low, int64_t high);
  std::mt19937_64& random() { return random_; }

 private:
  DType dtype_;
  std::mt19937_64 random_;
};

/// An operator's samples, and the numbers that its tests use.
struct Samples {
  std::vector<Sample> (*make)(SampleMaker&, const Samples&) = nullptr;
  DTypeSet dtypes = dtypes::full_floats;  ///< that it takes
  double low = -3, high = 3;              ///< domain of elements
  double tolerance = 1e-5;                ///< relative, float32 against the float64 reference
  bool gradient = true;                   ///< finite differences are meaningful on the domain
};

}  // namespace fl
