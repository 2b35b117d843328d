#include "flambeau/ops/aten/sequence.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

Tensor difference(Tensor self, int64_t n, int64_t dim, Tensor prepend, Tensor append) {
  FL_CHECK(self.dim() >= 1, RuntimeError, "diff expects input to be at least one-dimensional");
  FL_CHECK(n >= 0, RuntimeError, "order must be non-negative but got {}", n);
  if (n == 0) return clone(self);
  std::vector<Tensor> parts;
  for (const Tensor& t : {prepend, self, append})
    if (t.defined()) parts.push_back(t);
  Tensor x = parts.size() == 1 ? self : cat(parts, dim);
  for (int64_t k = 0; k < n; ++k) {
    const SymInt size = x.size(dim);
    if (size == SymInt(0)) return clone(x);
    const Tensor after = narrow(x, dim, 1, size - SymInt(1)), before = narrow(x, dim, 0, size - SymInt(1));
    x = x.dtype() == DType::Bool ? logical_xor(after, before) : sub(after, before);
  }
  return x;
}

void define_differences(OpTable& t) {
  t.define(diff, {.doc = "Differences of neighbours along a dimension, n times.",
                  .tags = Tag::NoInPlace,
                  .decompose = difference,
                  .samples = samples::custom(
                      [](SampleMaker& m, const Samples& o) {
                        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                        return std::vector<Sample>{{{x({3, 5})}, "", ""},
                                                   {{x({4, 3}), 2, 0}, "twice, columns", ""},
                                                   {{x({3, 2}), 1, -1, x({3, 1}), x({3, 2})}, "joined", ""},
                                                   {{x({})}, "0-dim", "RuntimeError: one-dimensional"}};
                      },
                      {.dtypes = dtypes::real})});
}

void define_membership(OpTable& t) {
  t.define(isin, {.doc = "Whether each element is among the test elements (or not, with invert).",
                  .tags = Tag::NoInPlace | Tag::NonDifferentiable,
                  .decompose =
                      [](Tensor elements, Tensor tests, bool, bool invert) {
                        const Tensor found = any(eq(unsqueeze(elements, -1), reshape(tests, {SymInt(-1)})),
                                                 IntList{SymInt(-1)});
                        return invert ? logical_not(found) : found;
                      },
                  .samples = samples::custom(
                      [](SampleMaker& m, const Samples& o) {
                        const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                        return std::vector<Sample>{{{x({3, 4}), x({3})}, "", ""},
                                                   {{x({3, 4}), x({2, 2}), false, true}, "invert", ""},
                                                   {{x({}), x({0})}, "no tests", ""}};
                      },
                      {.dtypes = dtypes::integers | dtypes::full_floats})});
  const Samples any_tensor =
      samples::unary({.dtypes = dtypes::real, .low = -1, .high = 1, .gradient = false});
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable | Tag::DataDependent;
  t.define(argwhere, {.doc = "The positions of the elements that are not 0, one row each.",
                      .tags = kTags,
                      .decompose = [](Tensor self) { return nonzero(self); },
                      .samples = any_tensor});
  t.define(
      nonzero_numpy,
      {.doc = "The positions of the elements that are not 0, one vector a dimension; of a 0-dim tensor as "
              "of a vector.",
       .tags = kTags,
       .decompose =
           [](Tensor self) {
             const Tensor rows = nonzero(self.dim() == 0 ? unsqueeze(self, 0) : self);
             std::vector<Tensor> out;
             for (int64_t d = 0; d < std::max(self.dim(), 1); ++d) out.push_back(select(rows, 1, d));
             return out;
           },
       .samples = any_tensor});
}

void define_other_norms(OpTable& t) {
  t.define(
      frobenius_norm,
      {.doc = "The square root of the sum of squares over dimensions.",
       .tags = Tag::NoInPlace,
       .decompose = [](Tensor self, IntList dim, bool keepdim) { return vector_norm(self, 2, dim, keepdim); },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), Sizes{0, 1}, true}, "", ""}};
           },
           {.dtypes = dtypes::full_floats, .tolerance = 1e-4})});
}

}  // namespace

void define_sequence(OpTable& t) {
  define_differences(t);
  define_membership(t);
  define_other_norms(t);
}

}  // namespace fl
