// Comparing the results of operators, and describing them.
#pragma once
#include <optional>
#include <string>

#include "flambeau/op/op.h"

namespace fl::testing {

struct Tolerance {
  /// Of floating results: |a - b| <= ulps * (1 + |b|) * the dtype's distance from 1 to the next number. 0:
  /// equal bits, but any nan equals any other and -0 equals 0.
  double ulps = 0;
  bool layout = true;  ///< strides too
};

/// Nothing if the results are equal, else what differs first.
std::optional<std::string> difference(const Value& a, const Value& b, const Tolerance& t = {});
std::optional<std::string> difference(const std::vector<Value>& a, const std::vector<Value>& b,
                                      const Tolerance& t = {});
/// The elements in row-major order as real and imaginary parts.
std::vector<std::complex<double>> elements(const Tensor& t);

/// A copy with memory of its own of every tensor; views of one storage stay views of one storage.
std::vector<Value> copied(const std::vector<Value>& args);

std::string describe(const OpInfo& op, const Sample& s, DType dtype);

}  // namespace fl::testing
