// Composites that join, repeat, pad and turn tensors.
#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kPlain = Tag::NoInPlace;

Tensor stacked(TensorList tensors, int64_t dim) {
  FL_CHECK(!tensors.empty(), RuntimeError, "stack expects a non-empty TensorList");
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1);
  std::vector<Tensor> rows;
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Sizes &first = tensors[0].sizes(), &own = tensors[k].sizes();
    FL_CHECK(std::equal(first.begin(), first.end(), own.begin(), own.end(),
                        [](SymInt a, SymInt b) { return a == b; }),
             RuntimeError,
             "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}",
             to_string(first), to_string(own), k);
    rows.push_back(unsqueeze(tensors[k], d));
  }
  return cat(rows, d);
}

Tensor side_by_side(TensorList tensors) {
  FL_CHECK(!tensors.empty(), RuntimeError, "hstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors) parts.push_back(atleast_1d(x));
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

Tensor on_top(TensorList tensors) {
  FL_CHECK(!tensors.empty(), RuntimeError, "vstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors) parts.push_back(atleast_2d(x));
  return cat(parts, 0);
}

std::vector<Tensor> broadcast_all(TensorList tensors) {
  Sizes sizes;
  for (const Tensor& x : tensors) sizes = broadcast_sizes(sizes, x.sizes());
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(expand(x, sizes));
  return out;
}

std::vector<Tensor> grid(TensorList tensors, std::string_view indexing) {
  FL_CHECK(!tensors.empty(), RuntimeError, "meshgrid expects a non-empty TensorList");
  FL_CHECK(indexing == "ij" || indexing == "xy", RuntimeError,
           "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}", indexing);
  std::vector<Tensor> axes = tensors.vec();
  const bool swapped = indexing == "xy" && axes.size() >= 2;
  if (swapped) std::swap(axes[0], axes[1]);
  Sizes sizes;
  for (const Tensor& x : axes) {
    FL_CHECK(x.dim() <= 1, RuntimeError,
             "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}", to_string(x.sizes()));
    sizes.push_back(x.numel());
  }
  std::vector<Tensor> out;
  for (size_t k = 0; k < axes.size(); ++k) {
    Sizes own(axes.size(), SymInt(1));
    own[k] = sizes[k];
    out.push_back(expand(reshape(axes[k], own), sizes));
  }
  if (swapped) std::swap(out[0], out[1]);
  return out;
}

std::vector<Sample> list_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{std::vector<Tensor>{x({2, 3}), x({2, 3})}}, "", ""},
          {{std::vector<Tensor>{x({3}), x({3}), x({3})}}, "vectors", ""},
          {{std::vector<Tensor>{x({}), x({})}}, "0-dim", ""},
          {{std::vector<Tensor>{}}, "none", "RuntimeError: non-empty"}};
}

void define_joining(OpTable& t) {
  const Samples lists = samples::custom(list_samples, {.dtypes = dtypes::all});
  t.define(stack, {.doc = "Tensors of equal sizes joined along a new dimension.",
                   .tags = kPlain,
                   .decompose = stacked,
                   .samples = lists});
  t.define(hstack, {.doc = "Tensors joined side by side: along dimension 1, of vectors 0.",
                    .tags = kPlain,
                    .decompose = side_by_side,
                    .samples = lists});
  t.define(vstack, {.doc = "Tensors, vectors as rows, joined along dimension 0.",
                    .tags = kPlain,
                    .decompose = on_top,
                    .samples = lists});
  t.define(broadcast_tensors,
           {.doc = "Every tensor expanded to the sizes that they have together.",
            .tags = kPlain,
            .decompose = broadcast_all,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{std::vector<Tensor>{x({2, 1}), x({3})}}, "", ""},
                      {{std::vector<Tensor>{x({2}), x({3})}}, "sizes", "RuntimeError: must match the size"}};
                },
                {.dtypes = dtypes::all})});
  t.define(
      meshgrid,
      {.doc = "Vectors expanded against each other: the coordinates of a grid, indexed \"ij\" or \"xy\".",
       .tags = kPlain,
       .decompose = grid,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{
                 {{std::vector<Tensor>{x({2}), x({3})}, "ij"}, "", ""},
                 {{std::vector<Tensor>{x({2}), x({3}), x({})}, "xy"}, "xy", ""},
                 {{std::vector<Tensor>{x({2})}, "ab"}, "order", "RuntimeError: must be one of"}};
           },
           {.dtypes = dtypes::all})});
}

Tensor tiled(Tensor self, IntList dims) {
  Sizes repeats(dims.begin(), dims.end());
  while (static_cast<int>(repeats.size()) < self.dim()) repeats.insert(repeats.begin(), SymInt(1));
  return repeat(self, repeats);
}

Tensor interleaved(Tensor self, SymInt repeats, std::optional<int64_t> dim, std::optional<SymInt>) {
  const Tensor x = dim ? self : flatten(self);
  const int64_t d = wrap_dim(dim.value_or(0), x.dim());
  FL_CHECK(repeats >= SymInt(0), RuntimeError, "repeats can not be negative, got {}", repeats);
  const Tensor wide = unsqueeze(x, d + 1);
  Sizes sizes = wide.sizes();
  sizes[d + 1] = repeats;
  return flatten(clone(expand(wide, sizes), MemoryFormat::Contiguous), d, d + 1);
}

Tensor padded(Tensor self, IntList padding, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") return constant_pad_nd(self, padding, value.value_or(0));
  FL_CHECK(!value || *value == 0, ValueError, "Padding mode \"{}\" doesn't take in value argument", mode);
  if (mode == "reflect") return _reflection_pad(self, padding);
  if (mode == "replicate") return _replication_pad(self, padding);
  FL_CHECK(mode == "circular", NotImplementedError, "Unrecognised padding mode {}", mode);
  Tensor x = self;
  for (size_t k = 0; k * 2 < padding.size(); ++k) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(k);
    const SymInt size = self.size(d), before = padding[2 * k], after = padding[2 * k + 1];
    FL_CHECK(before <= size && after <= size, RuntimeError,
             "Padding value causes wrapping around more than once: {} and {} at a dimension of size {}",
             before, after, size);
    std::vector<Tensor> parts;
    if (before > SymInt(0)) parts.push_back(slice(x, d, size - before, size));
    parts.push_back(x);
    if (after > SymInt(0)) parts.push_back(slice(x, d, 0, after));
    x = cat(parts, d);
  }
  return x;
}

void define_repeating(OpTable& t) {
  t.define(tile, {.doc = "As repeat; missing leading repeats are 1.",
                  .tags = kPlain,
                  .decompose = tiled,
                  .samples = samples::custom(
                      [](SampleMaker& m, const Samples& o) {
                        return std::vector<Sample>{{{m.make({2, 3}, o.low, o.high), Sizes{2}}, "", ""},
                                                   {{m.make({3}, o.low, o.high), Sizes{2, 2}}, "more", ""}};
                      },
                      {.dtypes = dtypes::all})});
  t.define(repeat_interleave,
           {.doc = "Every element along a dimension (of the flattened tensor without one) repeated.",
            .tags = kPlain,
            .decompose = interleaved,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({2, 3}, o.low, o.high), 2}, "", ""},
                      {{m.make({2, 3}, o.low, o.high), 3, 1}, "dim", ""},
                      {{m.make({2}, o.low, o.high), -1}, "negative", "RuntimeError: can not be negative"}};
                },
                {.dtypes = dtypes::all})});
  t.define(
      pad,
      {.doc =
           "Elements added before and after, from the last dimension on; modes constant, reflect, replicate, "
           "circular.",
       .tags = kPlain,
       .decompose = padded,
       .samples = samples::custom([](SampleMaker& m, const Samples& o) {
         const auto x = [&] { return m.make({2, 3, 4}, o.low, o.high); };
         return std::vector<Sample>{{{x(), Sizes{1, 2}}, "", ""},
                                    {{x(), Sizes{1, 1, 0, 2}, "constant", 1.5}, "value", ""},
                                    {{x(), Sizes{2, 1}, "reflect"}, "reflect", ""},
                                    {{x(), Sizes{3, 2}, "replicate"}, "replicate", ""},
                                    {{x(), Sizes{2, 3}, "circular"}, "circular", ""},
                                    {{x(), Sizes{1, 1}, "mirror"}, "mode", "NotImplementedError: mirror"}};
       })});
}

/// In a capture classes can't be looked at; the scatter finds those out of range when the program runs.
Tensor one_hot_of(Tensor self, int64_t num_classes) {
  FL_CHECK(self.dtype() == DType::Int64, RuntimeError,
           "one_hot is only applicable to index tensor of type LongTensor, got {}", name(self.dtype()));
  FL_CHECK(num_classes > 0, NotImplementedError,
           "one_hot needs num_classes > 0, got {}: the largest class is not read from the elements",
           num_classes);
  if (is_readable(self) && self.numel() != SymInt(0)) {
    const int64_t least = amin(self).item().to_int(), most = amax(self).item().to_int();
    FL_CHECK(least >= 0, RuntimeError, "Class values must be non-negative, got {}.", least);
    FL_CHECK(most < num_classes, RuntimeError,
             "Class values must be smaller than num_classes: {} is not below {}.", most, num_classes);
  }
  Sizes sizes = self.sizes();
  sizes.push_back(num_classes);
  const Tensor at = unsqueeze(self, -1);
  return _scatter(zeros(sizes, DType::Int64, self.device()), -1, at,
                  ones(at.sizes(), DType::Int64, self.device()), "set");
}

Tensor turned(Tensor self, int64_t k, IntList dims) {
  FL_CHECK(dims.size() == 2, RuntimeError, "expected total rotation dims == 2, but got dims = {}",
           dims.size());
  FL_CHECK(self.dim() >= 2, RuntimeError, "expected total dims >= 2, but got total dims = {}", self.dim());
  FL_CHECK(wrap_dim(dims[0].expect_int(), self.dim()) != wrap_dim(dims[1].expect_int(), self.dim()),
           RuntimeError, "expected rotation dims to be different, but got dim0 = {} and dim1 = {}", dims[0],
           dims[1]);
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose(flip(self, {dims[1]}), dims[0].expect_int(), dims[1].expect_int());
    case 2:
      return flip(self, dims);
    case 3:
      return transpose(flip(self, {dims[0]}), dims[0].expect_int(), dims[1].expect_int());
    default:
      return clone(self, MemoryFormat::Contiguous);
  }
}

Tensor embedded_diagonal(Tensor self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int rank = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank);
  FL_CHECK(a != b, RuntimeError, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  const SymInt length = self.size(-1) + SymInt(std::abs(offset));
  Sizes sizes(self.sizes().begin(), self.sizes().end() - 1);
  for (const int64_t d : {std::min(a, b), std::max(a, b)}) sizes.insert(sizes.begin() + d, length);
  return diagonal_scatter(zeros(sizes, self.dtype(), self.device()), self, offset, a, b);
}

void define_turning(OpTable& t) {
  t.define(
      one_hot,
      {.doc =
           "1 at the index that each element names along a new last dimension of num_classes, 0 elsewhere.",
       .tags = kPlain,
       .decompose = one_hot_of,
       .samples = samples::custom([](SampleMaker& m, const Samples&) {
         return std::vector<Sample>{
             {{m.make_index({2, 3}, 0, 4), 4}, "", ""},
             {{m.make({2}), 4}, "floats", "RuntimeError: index tensor"},
             {{m.make_index({2}, 4, 6), 4}, "class", "RuntimeError: smaller than num_classes"},
             {{m.make_index({2}, -2, 0), 4}, "negative", "RuntimeError: be non-negative"}};
       })});
  t.define(
      rot90,
      {.doc = "The plane of two dimensions turned by k quarter turns, from the first towards the second.",
       .tags = kPlain,
       .decompose = turned,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({2, 3}, o.low, o.high)}, "", ""},
                 {{m.make({2, 3}, o.low, o.high), 2}, "half", ""},
                 {{m.make({2, 3, 4}, o.low, o.high), -1, Sizes{1, 2}}, "back", ""},
                 {{m.make({2}, o.low, o.high)}, "rank 1", "RuntimeError: total dims >= 2"}};
           },
           {.dtypes = dtypes::all})});
  t.define(diag_embed, {.doc = "The last dimension as a diagonal of two new dimensions, 0 elsewhere.",
                        .tags = kPlain,
                        .decompose = embedded_diagonal,
                        .samples = samples::custom(
                            [](SampleMaker& m, const Samples& o) {
                              return std::vector<Sample>{
                                  {{m.make({2, 3}, o.low, o.high)}, "", ""},
                                  {{m.make({3}, o.low, o.high), 1}, "above", ""},
                                  {{m.make({2, 3}, o.low, o.high), -1, 0, 2}, "dims", ""}};
                            },
                            {.dtypes = dtypes::all})});
}

}  // namespace

void define_rearrange(OpTable& t) {
  define_joining(t);
  define_repeating(t);
  define_turning(t);
}

}  // namespace fl
