#include "flambeau/ops/aten/copies.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::of;
constexpr Tag kPlain = Tag::NoInPlace;

Tensor owned(const Tensor& view) { return clone(view, MemoryFormat::Contiguous); }
std::vector<Tensor> owned(std::vector<Tensor> views) {
  for (Tensor& v : views) v = owned(v);
  return views;
}

void define_orders(OpTable& table) {
  const Samples any = samples::unary({.dtypes = dtypes::all});
  table.define(alias_copy, {.doc = "A copy of all of self.",
                            .tags = kPlain,
                            .decompose = [](Tensor self) { return owned(self); },
                            .samples = any});
  table.define(detach_copy, {.doc = "A copy of all of self without gradient.",
                             .tags = kPlain | Tag::NonDifferentiable,
                             .decompose = [](Tensor self) { return owned(detach(self)); },
                             .samples = any});
  table.define(permute_copy,
               {.doc = "As `permute`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, IntList dims) { return owned(permute(self, dims)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({2, 3, 4}, o.low, o.high), Sizes{2, 0, 1}}, "", ""},
                      {{m.make({2, 3}, o.low, o.high), Sizes{0, 0}}, "twice", "RuntimeError"}};
                })});
  table.define(transpose_copy, {.doc = "As `transpose`, in memory of its own.",
                                .tags = kPlain,
                                .decompose = [](Tensor self, int64_t dim0,
                                                int64_t dim1) { return owned(transpose(self, dim0, dim1)); },
                                .samples = of([](SampleMaker& m, const Samples& o) {
                                  return std::vector<Sample>{
                                      {{m.make({2, 3, 4}, o.low, o.high), 0, -1}, "", ""},
                                      {{m.make({}, o.low, o.high), 0, 0}, "0-dim", ""}};
                                })});
  table.define(t_copy, {.doc = "As `t`, in memory of its own.",
                        .tags = kPlain,
                        .decompose = [](Tensor self) { return owned(t(self)); },
                        .samples = of([](SampleMaker& m, const Samples& o) {
                          return std::vector<Sample>{{{m.make({2, 3}, o.low, o.high)}, "", ""},
                                                     {{m.make({3}, o.low, o.high)}, "vector", ""}};
                        })});
  table.define(expand_copy,
               {.doc = "As `expand`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, IntList size,
                                bool implicit) { return owned(expand(self, size, implicit)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({1, 3}, o.low, o.high), Sizes{2, 4, -1}}, "", ""}};
                })});
}

void define_sizes(OpTable& table) {
  table.define(squeeze_copy, {.doc = "As `squeeze`, in memory of its own.",
                              .tags = kPlain,
                              .decompose = [](Tensor self) { return owned(squeeze(self)); },
                              .samples = samples::unary({.dtypes = dtypes::all})});
  table.define(squeeze_copy_dim,
               {.doc = "As `squeeze` of one dimension, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, int64_t dim) { return owned(squeeze_dim(self, dim)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 1, 3}, o.low, o.high), 1}, "", ""}};
                })});
  table.define(squeeze_copy_dims,
               {.doc = "As `squeeze` of several dimensions, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, IntList dims) { return owned(squeeze_dims(self, dims)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 1, 3, 1}, o.low, o.high), Sizes{1, 3}}, "", ""}};
                })});
  table.define(unsqueeze_copy,
               {.doc = "As `unsqueeze`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, int64_t dim) { return owned(unsqueeze(self, dim)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 3}, o.low, o.high), -1}, "", ""},
                                             {{m.make({}, o.low, o.high), 0}, "0-dim", ""}};
                })});
  table.define(view_copy,
               {.doc = "As `view`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, IntList size) { return owned(view(self, size)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({4, 6}, o.low, o.high), Sizes{2, -1}}, "", ""}};
                })});
}

void define_reinterpretations(OpTable& table) {
  table.define(view_copy_dtype,
               {.doc = "As `view` with another dtype, in memory of its own.",
                .tags = kPlain | Tag::NonDifferentiable,
                .decompose = [](Tensor self, DType dtype) { return owned(view_dtype(self, dtype)); },
                .samples = of(
                    [](SampleMaker& m, const Samples& o) {
                      const DType whole = size_of(m.dtype()) == 4 ? DType::Int32 : DType::Int64;
                      return std::vector<Sample>{{{m.make({2, 4}, o.low, o.high), whole}, "", ""}};
                    },
                    dtypes::full_floats)});
  table.define(view_as_real_copy, {.doc = "As `view_as_real`, in memory of its own.",
                                   .tags = kPlain,
                                   .decompose = [](Tensor self) { return owned(view_as_real(self)); },
                                   .samples = samples::unary({.dtypes = dtypes::complexes})});
  table.define(view_as_complex_copy,
               {.doc = "As `view_as_complex`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self) { return owned(view_as_complex(self)); },
                .samples = of(
                    [](SampleMaker& m, const Samples& o) {
                      return std::vector<Sample>{{{m.make({3, 2}, o.low, o.high)}, "", ""}};
                    },
                    dtypes::full_floats)});
}

void define_windows(OpTable& table) {
  table.define(
      as_strided_copy,
      {.doc = "As `as_strided`, in memory of its own.",
       .tags = kPlain,
       .decompose =
           [](Tensor self, IntList size, IntList stride, std::optional<SymInt> offset) {
             return owned(as_strided(self, size, stride, offset));
           },
       .samples = of([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), Sizes{2, 3}, Sizes{1, 4}, 1}, "", ""}};
       })});
  table.define(diagonal_copy,
               {.doc = "As `diagonal`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, int64_t offset, int64_t dim1,
                                int64_t dim2) { return owned(diagonal(self, offset, dim1, dim2)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                             {{m.make({2, 3, 4}, o.low, o.high), 1, 0, 2}, "dims", ""}};
                })});
  table.define(narrow_copy,
               {.doc = "As `narrow`, in memory of its own.",
                .tags = kPlain,
                .decompose =
                    [](Tensor self, int64_t dim, SymInt start, SymInt length) {
                      FL_CHECK(dim < self.dim(), RuntimeError,
                               "narrow_copy: expected a dimension below {}, got {}", self.dim(), dim);
                      return owned(narrow(self, dim, start, length));
                    },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({5, 2}, o.low, o.high), 0, 1, 3}, "", ""},
                      {{m.make({5}, o.low, o.high), 0, 3, 3}, "too long", "RuntimeError: exceeds"}};
                })});
  table.define(select_copy, {.doc = "As `select`, in memory of its own.",
                             .tags = kPlain,
                             .decompose = [](Tensor self, int64_t dim,
                                             SymInt index) { return owned(select(self, dim, index)); },
                             .samples = of([](SampleMaker& m, const Samples& o) {
                               return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), 1, -1}, "", ""}};
                             })});
  table.define(
      slice_copy,
      {.doc = "As `slice`, in memory of its own.",
       .tags = kPlain,
       .decompose = [](Tensor self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end,
                       SymInt step) { return owned(slice(self, dim, start, end, step)); },
       .samples = of([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{{{m.make({3, 7}, o.low, o.high), 1, 1, 6, 2}, "", ""}};
       })});
  table.define(unfold_copy,
               {.doc = "As `unfold`, in memory of its own.",
                .tags = kPlain,
                .decompose = [](Tensor self, int64_t dimension, int64_t size,
                                int64_t step) { return owned(unfold(self, dimension, size, step)); },
                .samples = of([](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({2, 7}, o.low, o.high), 1, 3, 2}, "", ""}};
                })});
}

void define_parts(OpTable& table) {
  constexpr Tag kParts = Tag::NoInPlace | Tag::NoOut;
  const Samples length = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({7, 2}, o.low, o.high), 3}, "", ""},
                               {{m.make({2, 4}, o.low, o.high), 2, -1}, "last", ""}};
  });
  const Samples lengths = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({7, 2}, o.low, o.high), Sizes{2, 0, 5}}, "", ""},
                               {{m.make({4}, o.low, o.high), Sizes{1, 2}}, "sum", "RuntimeError: exactly"}};
  });
  table.define(split_copy, {.doc = "As `split`, in memory of their own.",
                            .tags = kParts,
                            .decompose = [](Tensor self, SymInt size,
                                            int64_t dim) { return owned(split(self, size, dim)); },
                            .samples = length});
  table.define(split_with_sizes_copy,
               {.doc = "As `split_with_sizes`, in memory of their own.",
                .tags = kParts,
                .decompose = [](Tensor self, IntList sizes,
                                int64_t dim) { return owned(split_with_sizes(self, sizes, dim)); },
                .samples = lengths});
  table.define(unbind_copy, {.doc = "As `unbind`, in memory of their own.",
                             .tags = kParts,
                             .decompose = [](Tensor self, int64_t dim) { return owned(unbind(self, dim)); },
                             .samples = of([](SampleMaker& m, const Samples& o) {
                               return std::vector<Sample>{{{m.make({3, 2}, o.low, o.high), 1}, "", ""}};
                             })});
  table.define(unsafe_chunk, {.doc = "As `chunk`.",
                              .tags = kParts,
                              .decompose = [](Tensor self, int64_t chunks,
                                              int64_t dim) { return chunk(self, chunks, dim); },
                              .samples = length});
  table.define(unsafe_split,
               {.doc = "As `split`.",
                .tags = kParts,
                .decompose = [](Tensor self, SymInt size, int64_t dim) { return split(self, size, dim); },
                .samples = length});
  table.define(unsafe_split_with_sizes,
               {.doc = "As `split_with_sizes`.",
                .tags = kParts,
                .decompose = [](Tensor self, IntList sizes,
                                int64_t dim) { return split_with_sizes(self, sizes, dim); },
                .samples = lengths});
}

}  // namespace

void define_copies(OpTable& table) {
  define_orders(table);
  define_sizes(table);
  define_reinterpretations(table);
  define_windows(table);
  define_parts(table);
}

}  // namespace fl
