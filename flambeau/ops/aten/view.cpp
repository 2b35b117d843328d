#include "flambeau/ops/aten/view.h"

#include <algorithm>
#include <numeric>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;

Samples of_matrix(samples::MakeSamples make) { return samples::custom(make, {.dtypes = dtypes::all}); }

Tensor reshaped(Tensor self, IntList shape) {
  const Sizes sizes = resolve_sizes(shape, self.numel());
  if (view_strides(self.spec(), sizes)) return view(self, sizes);
  return view(clone(self, MemoryFormat::Contiguous), sizes);
}

/// self with two dimensions swapped.
Tensor transposed(Tensor self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  if (self.dim() == 0 || a == b) return alias(self);
  Sizes order;
  for (int d = 0; d < self.dim(); ++d) order.push_back(d);
  std::swap(order[a], order[b]);
  return permute(self, order);
}

Tensor moved(Tensor self, IntList source, IntList destination) {
  FL_CHECK(source.size() == destination.size(), RuntimeError,
           "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of "
           "dims as destination ({} dims)",
           to_string(source), to_string(destination));
  const std::vector<int64_t> from = dimensions(source, self.dim()), to = dimensions(destination, self.dim());
  if (self.dim() == 0) return alias(self);
  std::vector<int64_t> order(self.dim(), -1), rest;
  for (size_t k = 0; k < from.size(); ++k) order[to[k]] = from[k];
  for (int64_t d = 0; d < self.dim(); ++d)
    if (std::find(from.begin(), from.end(), d) == from.end()) rest.push_back(d);
  size_t next = 0;
  Sizes out;
  for (const int64_t d : order) out.push_back(d >= 0 ? d : rest[next++]);
  return permute(self, out);
}

void define_orders(OpTable& table) {
  const Samples two_dims = of_matrix([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{
        {{m.make({2, 3, 4}, o.low, o.high), 0, 2}, "", ""},
        {{m.make_strided({2, 3}, o.low, o.high), -1, -2}, "negative", ""},
        {{m.make({}, o.low, o.high), 0, -1}, "0-dim", ""},
        {{m.make({2, 3}, o.low, o.high), 0, 2}, "out of range", "IndexError: out of range"}};
  });
  table.define(
      transpose,
      {.doc = "Two dimensions swapped.", .tags = kView, .decompose = transposed, .samples = two_dims});
  table.define(swapaxes,
               {.doc = "As transpose.", .tags = kView, .decompose = transposed, .samples = two_dims});
  table.define(t, {.doc = "A matrix transposed; vectors and 0-dim tensors stay.",
                   .tags = kView,
                   .decompose =
                       [](Tensor self) {
                         FL_CHECK(self.dim() <= 2, RuntimeError,
                                  "t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim());
                         return self.dim() < 2 ? alias(self) : transposed(self, 0, 1);
                       },
                   .samples = of_matrix([](SampleMaker& m, const Samples& o) {
                     return std::vector<Sample>{
                         {{m.make({2, 3}, o.low, o.high)}, "", ""},
                         {{m.make({3}, o.low, o.high)}, "vector", ""},
                         {{m.make({2, 3, 4}, o.low, o.high)}, "rank 3", "RuntimeError: <= 2 dimensions"}};
                   })});
  table.define(
      mT, {.doc = "The last two dimensions swapped.",
           .tags = kView,
           .decompose =
               [](Tensor self) {
                 FL_CHECK(self.dim() >= 2, RuntimeError,
                          "tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.",
                          self.dim());
                 return transposed(self, -2, -1);
               },
           .samples = of_matrix([](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({2, 3, 4}, o.low, o.high)}, "", ""},
                 {{m.make({3}, o.low, o.high)}, "vector", "RuntimeError: Got 1-D tensor"}};
           })});
  table.define(
      movedim,
      {.doc = "The dimensions `source` moved to the places `destination`; the others keep their order.",
       .tags = kView,
       .decompose = moved,
       .samples = of_matrix([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{
             {{m.make({2, 3, 4}, o.low, o.high), Sizes{0}, Sizes{2}}, "", ""},
             {{m.make({2, 3, 4}, o.low, o.high), Sizes{-1, 0}, Sizes{0, 1}}, "two", ""},
             {{m.make({}, o.low, o.high), Sizes{0}, Sizes{0}}, "0-dim", ""},
             {{m.make({2, 3}, o.low, o.high), Sizes{0}, Sizes{0, 1}},
              "lengths",
              "RuntimeError: Invalid source"}};
       })});
}

Tensor flattened(Tensor self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim()), last = wrap_dim(end_dim, self.dim());
  FL_CHECK(first <= last, RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return reshaped(self, {SymInt(1)});
  if (first == last) return self;
  Sizes sizes(self.sizes().begin(), self.sizes().begin() + first);
  SymInt joined = 1;
  for (int64_t d = first; d <= last; ++d) joined *= self.sizes()[d];
  sizes.push_back(joined);
  sizes.insert(sizes.end(), self.sizes().begin() + last + 1, self.sizes().end());
  return reshaped(self, sizes);
}

Tensor unflattened(Tensor self, int64_t dim, IntList sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  FL_CHECK(sizes.size() > 0, RuntimeError, "unflatten: sizes must be non-empty");
  const Sizes parts = resolve_sizes(sizes, self.size(d));
  Sizes out(self.sizes().begin(), self.sizes().begin() + d);
  out.insert(out.end(), parts.begin(), parts.end());
  out.insert(out.end(), self.sizes().begin() + d + 1, self.sizes().end());
  return reshaped(self, out);
}

void define_shapes(OpTable& table) {
  table.define(
      reshape,
      {.doc = "The same elements in row-major order with other sizes; a view where the layout allows.",
       .tags = kView,
       .decompose = reshaped,
       .samples = of_matrix([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{
             {{m.make({4, 6}, o.low, o.high), Sizes{2, -1}}, "", ""},
             {{m.make_transposed({4, 6}, o.low, o.high), Sizes{3, 8}}, "transposed", ""},
             {{m.make_strided({4, 6}, o.low, o.high), Sizes{24}}, "strided", ""},
             {{m.make({0, 3}, o.low, o.high), Sizes{0}}, "size 0", ""},
             {{m.make({4, 6}, o.low, o.high), Sizes{5, 5}},
              "wrong",
              "RuntimeError: is invalid for input of size 24"}};
       })});
  table.define(squeeze_dim,
               {.doc = "Without the dimension `dim` if its size is 1.",
                .tags = kView,
                .decompose = [](Tensor self, int64_t dim) { return squeeze_dims(self, {SymInt(dim)}); },
                .samples = of_matrix([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 1, 3}, o.low, o.high), 1}, "", ""},
                                             {{m.make({2, 1, 3}, o.low, o.high), 0}, "not of size 1", ""},
                                             {{m.make({}, o.low, o.high), 0}, "0-dim", ""}};
                })});
  table.define(flatten,
               {.doc = "Dimensions start_dim to end_dim joined into one.",
                .tags = kView,
                .decompose = flattened,
                .samples = of_matrix([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({2, 3, 4}, o.low, o.high)}, "", ""},
                      {{m.make_transposed({2, 3, 4}, o.low, o.high), 1}, "transposed", ""},
                      {{m.make({}, o.low, o.high)}, "0-dim", ""},
                      {{m.make({2, 3}, o.low, o.high), 1, 0}, "order", "RuntimeError: cannot come after"}};
                })});
  table.define(unflatten, {.doc = "A dimension taken apart into several; one size may be -1.",
                           .tags = kView,
                           .decompose = unflattened,
                           .samples = of_matrix([](SampleMaker& m, const Samples& o) {
                             return std::vector<Sample>{
                                 {{m.make({2, 12}, o.low, o.high), 1, Sizes{3, -1}}, "", ""},
                                 {{m.make({2, 12}, o.low, o.high), 0, Sizes{5, 2}},
                                  "wrong",
                                  "RuntimeError: is invalid for input of size 2"}};
                           })});
}

void define_like_another(OpTable& table) {
  const Samples two = of_matrix([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({4, 6}, o.low, o.high), m.make({2, 12}, o.low, o.high)}, "", ""}};
  });
  table.define(view_as, {.doc = "A view with the sizes of other.",
                         .tags = kView,
                         .decompose = [](Tensor self, Tensor other) { return view(self, other.sizes()); },
                         .samples = two});
  table.define(reshape_as,
               {.doc = "As reshape, with the sizes of other.",
                .tags = kView,
                .decompose = [](Tensor self, Tensor other) { return reshaped(self, other.sizes()); },
                .samples = two});
  table.define(
      expand_as,
      {.doc = "As expand, with the sizes of other.",
       .tags = kView,
       .decompose = [](Tensor self, Tensor other) { return expand(self, other.sizes()); },
       .samples = of_matrix([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{{{m.make({1, 6}, o.low, o.high), m.make({4, 6}, o.low, o.high)}, "", ""}};
       })});
  table.define(broadcast_to,
               {.doc = "As expand.",
                .tags = kView,
                .decompose = [](Tensor self, IntList size) { return expand(self, size); },
                .samples = of_matrix([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({1, 3}, o.low, o.high), Sizes{2, 4, 3}}, "", ""}};
                })});
  table.define(atleast_1d,
               {.doc = "A 0-dim tensor with one dimension; others stay.",
                .tags = kView,
                .decompose = [](Tensor self) { return self.dim() == 0 ? reshaped(self, {SymInt(1)}) : self; },
                .samples = samples::unary({.dtypes = dtypes::all})});
  table.define(atleast_2d, {.doc = "Tensors of fewer dimensions as one row; others stay.",
                            .tags = kView,
                            .decompose =
                                [](Tensor self) {
                                  if (self.dim() == 0) return reshaped(self, {SymInt(1), SymInt(1)});
                                  return self.dim() == 1 ? unsqueeze(self, 0) : self;
                                },
                            .samples = samples::unary({.dtypes = dtypes::all})});
}

}  // namespace

void define_view_composites(OpTable& table) {
  define_orders(table);
  define_shapes(table);
  define_like_another(table);
}

}  // namespace fl
