// Sample makers that operators share: samples::unary({.dtypes = ..., .low = 0, .high = 3}).
#pragma once
#include <functional>

#include "flambeau/op/op.h"
#include "flambeau/op/sample.h"

namespace fl::samples {

/// One tensor: 0-dim, size 0, one element, vectors and matrices, strided, transposed, expanded.
Samples unary(Samples options = {});
/// Two tensors: the shapes of unary, broadcasts in both directions, 0-dim operands, numbers in either place,
/// another dtype; sizes that do not broadcast are an error.
Samples binary(Samples options = {});
/// Three tensors, broadcast against each other.
Samples ternary(Samples options = {});
/// A condition and two tensors.
Samples where(Samples options = {});
/// One tensor of each shape, followed by each of some lists of arguments, that `make` gives.
using MakeSamples = std::vector<Sample> (*)(SampleMaker&, const Samples&);
Samples custom(MakeSamples make, Samples options = {});
/// The same, of all dtypes unless told.
inline Samples of(MakeSamples make, DTypeSet dtypes = dtypes::all) {
  return custom(make, {.dtypes = dtypes});
}

/// The tensors that unary tests: every layout.
std::vector<std::pair<std::string, Tensor>> layouts(SampleMaker& m, double low, double high);
/// One sample for every layout and every list of further arguments.
std::vector<Sample> with_arguments(SampleMaker& m, const Samples& o,
                                   const std::vector<std::vector<Value>>& arguments);

/// Every sample of an operator in a dtype, with the arguments that a sample leaves out at their defaults;
/// none where the operator does not take the dtype.
void for_each_sample(const OpInfo& op, DType dtype, uint64_t seed, const std::function<void(Sample&)>& f);

}  // namespace fl::samples
