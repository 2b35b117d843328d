// Parts of a tensor along a dimension.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Parts = std::vector<Tensor>;

Tensor part(const Tensor& self, int64_t dim, SymInt start, SymInt length) {
  return slice(self, dim, start, start + length, 1);
}

Tensor narrowed(Tensor self, int64_t dim, SymInt start, SymInt length) {
  FL_CHECK(self.dim() > 0, RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
  FL_CHECK(length >= SymInt(0), RuntimeError, "narrow(): length must be non-negative.");
  const SymInt size = self.size(dim);
  FL_CHECK(start >= -size && start <= size, IndexError,
           "start out of range (expected to be in range of [{}, {}], but got {})", -size, size, start);
  if (start < SymInt(0)) start += size;
  FL_CHECK(start <= size - length, RuntimeError, "start ({}) + length ({}) exceeds dimension size ({}).",
           start, length, size);
  return part(self, dim, start, length);
}

Parts equal_parts(Tensor self, SymInt split_size, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError, "split expects at least a 1-dimensional tensor");
  FL_CHECK(split_size >= SymInt(0), RuntimeError,
           "split expects split_size be non-negative, but got split_size={}", split_size);
  const SymInt size = self.size(dim);
  FL_CHECK(split_size > SymInt(0) || size == SymInt(0), RuntimeError,
           "split_size can only be 0 if dimension size is 0, but got dimension size of {}", size);
  if (split_size == SymInt(0)) return {self};
  // The number of parts is a fact of the program: sizes that change it compile again.
  const int64_t count = std::max<int64_t>(ceildiv(size, split_size).guard_int(), 1);
  Parts out;
  for (int64_t k = 0; k < count; ++k) {
    const SymInt start = split_size * SymInt(k);
    out.push_back(part(self, dim, start, k + 1 < count ? split_size : size - start));
  }
  return out;
}

Parts given_parts(Tensor self, IntList sizes, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError, "split expects at least a 1-dimensional tensor");
  SymInt start = 0;
  Parts out;
  for (SymInt s : sizes) {
    FL_CHECK(s >= SymInt(0), RuntimeError,
             "split_with_sizes expects split_sizes have only non-negative entries, but got {}",
             to_string(sizes));
    start += s;
  }
  FL_CHECK(start == self.size(dim), RuntimeError,
           "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), "
           "but got "
           "split_sizes={}",
           self.size(dim), dim, to_string(sizes));
  start = 0;
  for (SymInt s : sizes) {
    out.push_back(part(self, dim, start, s));
    start += s;
  }
  return out;
}

Parts chunks_of(Tensor self, int64_t chunks, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError, "chunk expects at least a 1-dimensional tensor");
  FL_CHECK(chunks > 0, RuntimeError, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  const SymInt size = self.size(dim), length = ceildiv(size, SymInt(chunks));
  if (length == SymInt(0)) return Parts(chunks, part(self, dim, 0, 0));
  return equal_parts(self, length, dim);
}

Parts even_sections(Tensor self, SymInt sections, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError,
           "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  const int64_t count = sections.guard_int();
  FL_CHECK(count > 0, RuntimeError, "number of sections must be larger than 0, got {}", count);
  constexpr int64_t kMost = int64_t{1} << 28;
  FL_CHECK(count <= kMost, RuntimeError, "number of sections must be at most {}, got {}", kMost, count);
  const SymInt size = self.size(dim), base = size / SymInt(count), longer = size % SymInt(count);
  Parts out;
  SymInt start = 0;
  for (int64_t k = 0; k < count; ++k) {
    const SymInt length = SymInt(k) < longer ? base + SymInt(1) : base;
    out.push_back(part(self, dim, start, length));
    start += length;
  }
  return out;
}

Parts at_indices(Tensor self, IntList indices, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError,
           "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  Parts out;
  SymInt start = 0;
  for (SymInt end : indices) {
    out.push_back(slice(self, dim, start, end, 1));
    start = end;
  }
  out.push_back(slice(self, dim, start, self.size(dim), 1));
  return out;
}

Parts single_elements(Tensor self, int64_t dim) {
  FL_CHECK(self.dim() > 0, IndexError, "Dimension specified as {} but tensor has no dimensions", dim);
  Parts out;
  const int64_t count = self.size(dim).guard_int();
  for (int64_t k = 0; k < count; ++k) out.push_back(select(self, dim, k));
  return out;
}

Samples on_matrix(samples::MakeSamples make) { return samples::custom(make, {.dtypes = dtypes::all}); }

void define_equal_parts(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(split, {.doc = "Parts of split_size elements along a dimension; the last one may be shorter.",
                   .tags = kTags,
                   .decompose = equal_parts,
                   .samples = on_matrix([](SampleMaker& m, const Samples& o) {
                     return std::vector<Sample>{
                         {{m.make({7, 2}, o.low, o.high), 3}, "", ""},
                         {{m.make({2, 4}, o.low, o.high), 2, -1}, "last", ""},
                         {{m.make({0, 2}, o.low, o.high), 2}, "size 0", ""},
                         {{m.make({2}, o.low, o.high), 0}, "0", "RuntimeError: can only be 0"}};
                   })});
  t.define(chunk,
           {.doc = "At most `chunks` parts of equal length along a dimension; the last one may be shorter.",
            .tags = kTags,
            .decompose = chunks_of,
            .samples = on_matrix([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({7, 2}, o.low, o.high), 3}, "", ""},
                  {{m.make({2, 6}, o.low, o.high), 2, 1}, "columns", ""},
                  {{m.make({0}, o.low, o.high), 2}, "size 0", ""},
                  {{m.make({2}, o.low, o.high), 0}, "0", "RuntimeError: greater than 0"}};
            })});
  t.define(tensor_split, {.doc = "`sections` parts along a dimension whose lengths differ by at most one.",
                          .tags = kTags,
                          .decompose = even_sections,
                          .samples = on_matrix([](SampleMaker& m, const Samples& o) {
                            return std::vector<Sample>{
                                {{m.make({7, 2}, o.low, o.high), 3}, "", ""},
                                {{m.make({2}, o.low, o.high), 0}, "0", "RuntimeError: larger than 0"}};
                          })});
  t.define(unbind, {.doc = "The tensors at each index of a dimension, which is dropped.",
                    .tags = kTags,
                    .decompose = single_elements,
                    .samples = on_matrix([](SampleMaker& m, const Samples& o) {
                      return std::vector<Sample>{
                          {{m.make({3, 2}, o.low, o.high)}, "", ""},
                          {{m.make({3, 2}, o.low, o.high), -1}, "last", ""},
                          {{m.make({}, o.low, o.high)}, "0-dim", "IndexError: tensor has no dimensions"}};
                    })});
}

void define_given_parts(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(
      narrow,
      {.doc = "`length` elements from `start` along a dimension; raises where they do not exist.",
       .tags = kTags,
       .decompose = narrowed,
       .samples = on_matrix([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{
             {{m.make({5, 2}, o.low, o.high), 0, 1, 3}, "", ""},
             {{m.make({5, 2}, o.low, o.high), 0, -2, 2}, "from the end", ""},
             {{m.make({5}, o.low, o.high), 0, 3, 3}, "too long", "RuntimeError: exceeds dimension size (5)"}};
       })});
  t.define(split_with_sizes,
           {.doc = "Parts of the given lengths along a dimension, which they have to fill.",
            .tags = kTags,
            .decompose = given_parts,
            .samples = on_matrix([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({7, 2}, o.low, o.high), Sizes{2, 0, 5}}, "", ""},
                  {{m.make({2, 3}, o.low, o.high), Sizes{1, 2}, -1}, "last", ""},
                  {{m.make({4}, o.low, o.high), Sizes{1, 2}}, "sum", "RuntimeError: to sum exactly to 4"}};
            })});
  t.define(tensor_split_indices,
           {.doc = "Parts that end before each of the indices, and the rest.",
            .tags = kTags,
            .decompose = at_indices,
            .samples = on_matrix([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({7, 2}, o.low, o.high), Sizes{2, 5}}, "", ""}};
            })});
}

}  // namespace

void define_split(OpTable& t) {
  define_equal_parts(t);
  define_given_parts(t);
}

}  // namespace fl
