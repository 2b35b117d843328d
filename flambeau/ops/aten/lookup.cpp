// Membership and equality of whole tensors; positions of a flattened tensor; reductions into positions.
#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using List = std::vector<Tensor>;

void define_membership_of_numbers(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NonDifferentiable;
  const DTypeSet dtypes = dtypes::integers | dtypes::full_floats;
  t.define(isin_number,
           {.doc = "Whether each element equals a number (or not, with invert).",
            .tags = kTags,
            .decompose = [](Tensor elements, Scalar test, bool,
                            bool invert) { return invert ? ne(elements, test) : eq(elements, test); },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), 1}, "", ""}};
                },
                {.dtypes = dtypes})});
  t.define(number_isin, {.doc = "Whether a number is among the test elements (or not, with invert).",
                         .tags = kTags,
                         .decompose =
                             [](Scalar element, Tensor tests, bool, bool invert) {
                               const Tensor found = any_all(eq(tests, element));
                               return invert ? logical_not(found) : found;
                             },
                         .samples = samples::custom(
                             [](SampleMaker& m, const Samples& o) {
                               return std::vector<Sample>{{{1, m.make({3, 4}, o.low, o.high)}, "", ""}};
                             },
                             {.dtypes = dtypes})});
}

bool same_sizes(const Tensor& a, const Tensor& b) {
  return a.sizes().size() == b.sizes().size() &&
         std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(),
                    [](SymInt x, SymInt y) { return x == y; });
}

void define_equality(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::NonDifferentiable | Tag::DataDependent;
  t.define(equal, {.doc = "Whether two tensors have the same sizes and equal elements.",
                   .tags = kTags,
                   .decompose =
                       [](Tensor self, Tensor other) {
                         if (!same_sizes(self, other)) return false;
                         return all_all(eq(self, other)).item().to_bool();
                       },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         const Tensor x = m.make({3, 4}, o.low, o.high);
                         return std::vector<Sample>{{{x, clone(x)}, "the same", ""},
                                                    {{x, m.make({4}, o.low, o.high)}, "sizes", ""},
                                                    {{x, m.make({3, 4}, o.low, o.high)}, "others", ""}};
                       },
                       {.dtypes = dtypes::all, .gradient = false})});
  t.define(allclose, {.doc = "Whether all elements are close as `isclose` says.",
                      .tags = kTags,
                      .decompose =
                          [](Tensor self, Tensor other, double rtol, double atol, bool equal_nan) {
                            return all_all(isclose(self, other, rtol, atol, equal_nan)).item().to_bool();
                          },
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples& o) {
                            const Tensor x = m.make({3, 4}, o.low, o.high);
                            return std::vector<Sample>{{{x, mul(x, 1.0000001)}, "close", ""},
                                                       {{x, m.make({4}, o.low, o.high)}, "others", ""}};
                          },
                          {.dtypes = dtypes::full_floats, .gradient = false})});
}

/// Positions of the flattened tensor; negative ones count from the end.
Tensor put_at(Tensor self, Tensor index, Tensor source, bool accumulate) {
  FL_CHECK(index.dtype() == DType::Int64, RuntimeError,
           "put_(): Expected a long tensor for index, but got {}", name(index.dtype()));
  FL_CHECK(
      self.dtype() == source.dtype(), RuntimeError,
      "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype "
      "= {}",
      name(self.dtype()), name(source.dtype()));
  FL_CHECK(index.numel() == source.numel(), RuntimeError,
           "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
           "{}, index.numel() = {}",
           source.numel(), index.numel());
  FL_CHECK(self.numel() > SymInt(0) || index.numel() == SymInt(0), IndexError,
           "put_(): Expected self to be non-empty");
  const Tensor flat = reshape(self, {SymInt(-1)}), at = reshape(index, {SymInt(-1)});
  return reshape(_index_put(flat, List{at}, reshape(source, {SymInt(-1)}), accumulate), self.sizes());
}

/// Rows that are positions of elements other than 0; as many as asked for.
Tensor first_positions(Tensor self, SymInt size, int64_t fill) {
  FL_CHECK(size >= SymInt(0), RuntimeError, "nonzero_static: 'size' must be an non-negative integer, got {}",
           size);
  const Tensor rows = nonzero(self);
  const SymInt have = rows.size(0);
  if (have >= size) return clone(narrow(rows, 0, 0, size));
  return constant_pad_nd(rows, {SymInt(0), SymInt(0), SymInt(0), size - have}, fill);
}

void define_flat_positions(OpTable& t) {
  t.define(put, {.doc = "self with source set, or added, at positions of the flattened tensor.",
                 .decompose = put_at,
                 .samples = samples::custom(
                     [](SampleMaker& m, const Samples& o) {
                       const Tensor at = tensor_from<int64_t>({2, 0, -1}, Sizes{3});
                       return std::vector<Sample>{
                           {{m.make({3, 4}, o.low, o.high), at, m.make({3}, o.low, o.high)}, "", ""},
                           {{m.make_transposed({3, 4}, o.low, o.high), m.make_index({5}, -12, 12),
                             m.make({5}, o.low, o.high), true},
                            "accumulate",
                            ""},
                           {{m.make({3}, o.low, o.high), at, m.make({2}, o.low, o.high)},
                            "sizes",
                            "RuntimeError: same number of elements"}};
                     },
                     {.dtypes = dtypes::integers | dtypes::floats})});
  t.define(nonzero_static,
           {.doc = "The positions of the first `size` elements that are not 0, one row each; rows of "
                   "fill_value where there are fewer.",
            .tags = Tag::NoInPlace | Tag::NonDifferentiable | Tag::DataDependent,
            .decompose = first_positions,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{m.make({3, 4}, -1, 1), 3}, "", ""},
                                             {{m.make({3, 4}, -1, 1), 20, 7}, "filled", ""}};
                },
                {.dtypes = dtypes::all, .gradient = false})});
}

Tensor as_vector(const Tensor& index) { return index.dim() == 0 ? unsqueeze(index, 0) : index; }

Tensor reduced_into(Tensor self, int64_t dim, Tensor index, Tensor source, std::string_view reduce,
                    bool include_self) {
  FL_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", RuntimeError,
           "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.", reduce);
  FL_CHECK(index.dim() <= 1, IndexError,
           "index_reduce(): Index is supposed to be a vector, got {} dimensions", index.dim());
  FL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, RuntimeError,
           "index_reduce(): Expected dtype int32/int64 for index, got {}", name(index.dtype()));
  FL_CHECK(self.dtype() == source.dtype(), RuntimeError,
           "index_reduce(): self ({}) and source ({}) must have the same scalar type", name(self.dtype()),
           name(source.dtype()));
  const SymInt count = source.dim() == 0 ? SymInt(1) : source.size(dim);
  FL_CHECK(count == index.numel(), RuntimeError,
           "index_reduce(): Number of indices ({}) should be equal to source.size(dim): ({})", index.numel(),
           count);
  if (self.dim() == 0)
    return scatter_reduce(self, 0, reshape(index, IntList()), reshape(source, IntList()), reduce,
                          include_self);
  const Tensor from = source.dim() == 0 ? unsqueeze(source, 0) : source;
  Sizes along(from.dim(), SymInt(1));
  along[wrap_dim(dim, from.dim())] = count;
  const Tensor at = expand(view(as_vector(index), along), from.sizes());
  return scatter_reduce(self, dim, at, from, reduce, include_self);
}

/// The indices moved to where self has elements.
List inside_of(const Tensor& self, TensorList indices) {
  List clamped;
  int d = 0;
  for (const Tensor& i : indices) {
    clamped.push_back(i.defined() ? clamp(i, Scalar(-self.size(d)), Scalar(self.size(d) - SymInt(1))) : i);
    ++d;
  }
  return clamped;
}

Tensor masked_elements(Tensor self, Tensor mask, TensorList indices, Scalar fill) {
  for (const Tensor& i : indices)
    FL_CHECK(!i.defined() || i.dtype() == DType::Int64 || i.dtype() == DType::Int32, IndexError,
             "tensors used as indices must be long or int tensors");
  FL_CHECK(mask.dtype() == DType::Bool, IndexError, "tensors used as masks must be bool tensors");
  const List clamped = inside_of(self, indices);
  if (self.numel() == SymInt(0)) {
    Sizes sizes;
    for (const Tensor& i : clamped)
      if (i.defined()) sizes = broadcast_sizes(sizes, i.sizes());
    return full(sizes, fill, self.dtype(), self.device());
  }
  return masked_fill(index(self, clamped), logical_not(mask), fill);
}

Tensor masked_elements_added(Tensor self, Tensor mask, TensorList indices, Tensor values) {
  FL_CHECK(mask.dtype() == DType::Bool, IndexError, "tensors used as masks must be bool tensors");
  if (self.numel() == SymInt(0)) return clone(self);
  return index_put(self, inside_of(self, indices), masked_fill(values, logical_not(mask), 0), true);
}

void define_reductions_into(OpTable& t) {
  t.define(
      index_reduce,
      {.doc = "Lines of source reduced (prod, mean, amax, amin) into the positions of a dimension that a "
              "vector gives, with self's elements there or without.",
       .decompose = reduced_into,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             std::vector<Sample> out;
             for (const char* how : {"prod", "mean", "amax", "amin"})
               for (const bool with_self : {true, false})
                 out.push_back({{m.make({3, 4}, o.low, o.high), 1, m.make_index({6}, 0, 4),
                                 m.make({3, 6}, o.low, o.high), how, with_self},
                                how,
                                ""});
             out.push_back(
                 {{m.make({3}, o.low, o.high), 0, m.make_index({2}, 0, 3), m.make({2}, o.low, o.high), "sum"},
                  "how",
                  "RuntimeError: one of prod"});
             return out;
           },
           {.dtypes = dtypes::full_floats, .low = 1, .high = 3})});
  t.define(_unsafe_masked_index,
           {.doc = "self[indices] where the mask holds, a number elsewhere; there indices may lie outside.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = masked_elements,
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), m.make({5}, DType::Bool, 0, 1),
                                           List{m.make_index({5}, 0, 3), m.make_index({5}, 0, 4)}, 0.5},
                                          "",
                                          ""}};
            })});
  t.define(_unsafe_masked_index_put_accumulate,
           {.doc = "self with values added at self[indices] where the mask holds; elsewhere indices may lie "
                   "outside.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = masked_elements_added,
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({3, 4}, o.low, o.high), m.make({5}, DType::Bool, 0, 1),
                    List{m.make_index({5}, 0, 3), m.make_index({5}, 0, 4)}, m.make({5}, o.low, o.high)},
                   "",
                   ""}};
            })});
}

}  // namespace

void define_lookup(OpTable& t) {
  define_membership_of_numbers(t);
  define_equality(t);
  define_flat_positions(t);
  define_reductions_into(t);
}

}  // namespace fl
