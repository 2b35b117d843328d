#include "flambeau/ops/aten/stacking.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::of;
constexpr Tag kPlain = Tag::NoInPlace;
constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;

using List = std::vector<Tensor>;

Tensor with_three_dims(Tensor self) {
  switch (self.dim()) {
    case 0:
      return reshape(self, {SymInt(1), SymInt(1), SymInt(1)});
    case 1:
      return unsqueeze(unsqueeze(self, 0), -1);
    case 2:
      return unsqueeze(self, -1);
    default:
      return self;
  }
}

Tensor as_columns(TensorList tensors) {
  FL_CHECK(!tensors.empty(), RuntimeError, "column_stack expects a non-empty TensorList");
  List parts;
  for (const Tensor& x : tensors) parts.push_back(x.dim() <= 1 ? reshape(x, {x.numel(), SymInt(1)}) : x);
  return cat(parts, 1);
}

Tensor in_depth(TensorList tensors) {
  FL_CHECK(!tensors.empty(), RuntimeError, "dstack expects a non-empty TensorList");
  List parts;
  for (const Tensor& x : tensors) parts.push_back(with_three_dims(x));
  return cat(parts, 2);
}

DType common_dtype(TensorList tensors) {
  DType d = tensors[0].dtype();
  for (const Tensor& x : tensors) d = promote(d, x.dtype());
  return d;
}

/// Each matrix beside zeros, all on top of each other.
Tensor along_the_diagonal(TensorList tensors) {
  if (tensors.empty()) return zeros({SymInt(1), SymInt(0)});
  const DType dtype = common_dtype(tensors);
  List blocks;
  SymInt width = 0;
  for (const Tensor& x : tensors) {
    FL_CHECK(x.dim() <= 2, RuntimeError,
             "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} dimensions",
             blocks.size(), x.dim());
    blocks.push_back(to_dtype(atleast_2d(x), dtype));
    width += blocks.back().size(1);
  }
  List rows;
  SymInt before = 0;
  for (const Tensor& b : blocks) {
    const SymInt after = width - before - b.size(1);
    rows.push_back(constant_pad_nd(b, {before, after}));
    before += b.size(1);
  }
  return cat(rows, 0);
}

Tensor all_pairs(TensorList tensors) {
  FL_CHECK(!tensors.empty(), RuntimeError, "meshgrid expects a non-empty TensorList");
  for (const Tensor& x : tensors)
    FL_CHECK(x.dim() == 1, RuntimeError, "Expect a 1D vector, but got shape {}", to_string(x.sizes()));
  if (tensors.size() == 1) return tensors[0];
  List columns;
  for (const Tensor& x : meshgrid(tensors, "ij")) columns.push_back(reshape(x, {SymInt(-1)}));
  return stack(columns, 1);
}

/// Rows of r positions: ascending, or not descending where they may repeat.
Tensor chosen(Tensor self, int64_t r, bool with_replacement) {
  FL_CHECK(self.dim() == 1, RuntimeError, "Expect a 1D vector, but got shape {}", to_string(self.sizes()));
  FL_CHECK(r >= 0, RuntimeError, "Expect a non-negative number, but got {}", r);
  if (r == 0) return zeros({SymInt(0)}, self.dtype(), self.device());
  const int64_t n = self.size(0).guard_int();
  std::vector<int64_t> rows, at(r);
  for (int64_t k = 0; k < r; ++k) at[k] = with_replacement ? 0 : k;
  int64_t count = 0;
  const auto last = [&](int64_t k) { return with_replacement ? n - 1 : n - r + k; };
  bool more = n > 0 && at[r - 1] <= last(r - 1);
  while (more) {
    rows.insert(rows.end(), at.begin(), at.end());
    ++count;
    int64_t k = r - 1;
    while (k >= 0 && at[k] == last(k)) --k;
    more = k >= 0;
    if (!more) break;
    ++at[k];
    for (int64_t j = k + 1; j < r; ++j) at[j] = with_replacement ? at[k] : at[j - 1] + 1;
  }
  const Tensor positions = to_device(tensor_from<int64_t>(rows, Sizes{count, r}), self.device());
  return _index(self, List{positions});
}

void define_stacks(OpTable& t) {
  const auto lists = [](SampleMaker& m, const Samples& o) {
    const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
    return std::vector<Sample>{{{List{x({2, 3}), x({2, 3})}}, "", ""},
                               {{List{x({3}), x({3}), x({3})}}, "vectors", ""},
                               {{List{x({}), x({})}}, "0-dim", ""}};
  };
  t.define(atleast_3d, {.doc = "Tensors of fewer dimensions with three; a vector as the middle one.",
                        .tags = kView,
                        .decompose = with_three_dims,
                        .samples = samples::unary({.dtypes = dtypes::all})});
  t.define(column_stack, {.doc = "Tensors, vectors as columns, joined along dimension 1.",
                          .tags = kPlain,
                          .decompose = as_columns,
                          .samples = of(lists)});
  t.define(dstack, {.doc = "Tensors joined along dimension 2.",
                    .tags = kPlain,
                    .decompose = in_depth,
                    .samples = of(lists)});
  t.define(block_diag,
           {.doc = "Matrices along the diagonal of a larger one, 0 elsewhere; vectors count as rows.",
            .tags = kPlain,
            .decompose = along_the_diagonal,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{
                  {{List{x({2, 3}), x({3}), x({}), x({1, 2})}}, "", ""},
                  {{List{x({2, 3, 1})}}, "rank 3", "RuntimeError: 2 or fewer dimensions"}};
            })});
  t.define(cartesian_prod,
           {.doc = "All tuples with one element of each vector, a row each; of one vector itself.",
            .tags = kPlain,
            .decompose = all_pairs,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{List{x({2}), x({3}), x({2})}}, "", ""},
                                         {{List{x({2, 2})}}, "matrix", "RuntimeError: 1D vector"}};
            })});
  t.define(combinations,
           {.doc = "All selections of r elements of a vector, a row each, in the order of their positions.",
            .tags = kPlain | Tag::NoOut,
            .decompose = chosen,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{{{x({4})}, "", ""},
                                         {{x({3}), 3, true}, "repeated", ""},
                                         {{x({2}), 3}, "none", ""},
                                         {{x({2, 2})}, "matrix", "RuntimeError: 1D vector"}};
            })});
}

void check_split(const Tensor& x, int rank, const char* op) {
  FL_CHECK(x.dim() >= rank, RuntimeError,
           "torch.{} requires a tensor with at least {} dimension{}, but got a tensor with {} dimensions!",
           op, rank, rank == 1 ? "" : "s", x.dim());
}
void check_even(const Tensor& x, int64_t sections, int64_t dim, const char* op) {
  const SymInt size = x.size(dim);
  FL_CHECK(sections != 0 && size % SymInt(sections) == SymInt(0), RuntimeError,
           "torch.{} attempted to split along dimension {}, but the size of the dimension {} is not "
           "divisible by the split_size {}!",
           op, dim, size, sections);
}
List split_evenly(const Tensor& x, int rank, int64_t sections, int64_t dim, const char* op) {
  check_split(x, rank, op);
  check_even(x, sections, dim, op);
  return tensor_split(x, SymInt(sections), dim);
}
List split_at(const Tensor& x, int rank, IntList indices, int64_t dim, const char* op) {
  check_split(x, rank, op);
  return tensor_split_indices(x, indices, dim);
}

List split_by_tensor(Tensor self, Tensor where_to, int64_t dim) {
  FL_CHECK(self.dim() > 0, RuntimeError,
           "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  FL_CHECK(where_to.dtype() == DType::Int64, RuntimeError,
           "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
           name(where_to.dtype()));
  FL_CHECK(where_to.dim() <= 1, RuntimeError,
           "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
           "tensor, but got a tensor with {} dims",
           where_to.dim());
  if (where_to.dim() == 0) return tensor_split(self, SymInt(where_to.item().to_int()), dim);
  Sizes indices;
  for (const int64_t k : where_to.to_vector<int64_t>()) indices.push_back(SymInt(k));
  return tensor_split_indices(self, indices, dim);
}

void define_splits(OpTable& t) {
  const Samples sections = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({2, 4, 6}, o.low, o.high), 2}, "", ""},
                               {{m.make({2, 4, 6}, o.low, o.high), 5}, "uneven", "RuntimeError: divisible"}};
  });
  const Samples indices = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{
        {{m.make({2, 4, 6}, o.low, o.high), Sizes{1, 3}}, "", ""},
        {{m.make({}, o.low, o.high), Sizes{1}}, "0-dim", "RuntimeError: requires a tensor"}};
  });
  t.define(hsplit, {.doc = "Equal parts side by side: along dimension 1, of vectors 0.",
                    .tags = kView,
                    .decompose =
                        [](Tensor self, int64_t n) {
                          return split_evenly(self, 1, n, self.dim() == 1 ? 0 : 1, "hsplit");
                        },
                    .samples = sections});
  t.define(hsplit_at,
           {.doc = "Parts side by side that end before each of the indices, and the rest.",
            .tags = kView,
            .decompose = [](Tensor self,
                            IntList at) { return split_at(self, 1, at, self.dim() == 1 ? 0 : 1, "hsplit"); },
            .samples = indices});
  t.define(vsplit, {.doc = "Equal parts along dimension 0.",
                    .tags = kView,
                    .decompose = [](Tensor self, int64_t n) { return split_evenly(self, 2, n, 0, "vsplit"); },
                    .samples = sections});
  t.define(vsplit_at,
           {.doc = "Parts along dimension 0 that end before each of the indices, and the rest.",
            .tags = kView,
            .decompose = [](Tensor self, IntList at) { return split_at(self, 2, at, 0, "vsplit"); },
            .samples = indices});
  t.define(dsplit, {.doc = "Equal parts along dimension 2.",
                    .tags = kView,
                    .decompose = [](Tensor self, int64_t n) { return split_evenly(self, 3, n, 2, "dsplit"); },
                    .samples = sections});
  t.define(dsplit_at,
           {.doc = "Parts along dimension 2 that end before each of the indices, and the rest.",
            .tags = kView,
            .decompose = [](Tensor self, IntList at) { return split_at(self, 3, at, 2, "dsplit"); },
            .samples = indices});
  t.define(tensor_split_tensor,
           {.doc = "Parts that end before each of the indices, or as many as a 0-dim tensor says.",
            .tags = kView | Tag::DataDependent,
            .decompose = split_by_tensor,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const Tensor at = tensor_from<int64_t>({2, 5}, Sizes{2}), three = tensor_from<int64_t>({3}, {});
              return std::vector<Sample>{{{m.make({7, 2}, o.low, o.high), at}, "", ""},
                                         {{m.make({7, 2}, o.low, o.high), three}, "sections", ""},
                                         {{m.make({7}, o.low, o.high), m.make({2}, DType::Float32, 0, 3)},
                                          "floats",
                                          "RuntimeError: dtype of long"}};
            })});
}

/// Leading dimensions that `size` lacks, and those where it has a 1, added up.
Tensor summed_to(Tensor self, IntList size) {
  if (size.empty()) return sum_all(self);
  const int rank = static_cast<int>(size.size()), leading = self.dim() - rank;
  bool fits = leading >= 0;
  Sizes dims;
  for (int d = 0; fits && d < rank; ++d) {
    const SymInt own = self.sizes()[leading + d];
    const bool stays = size[d].same_as(own) || size[d] == own;
    if (!stays) dims.push_back(leading + d);
    fits = stays || size[d] == SymInt(1);
  }
  FL_CHECK(fits, RuntimeError, "size {{{}}} is not expandable to size {{{}}}.", to_string(size),
           to_string(self.sizes()));
  for (int d = 0; d < leading; ++d) dims.push_back(d);
  if (dims.empty()) return self;
  return reshape(sum(self, dims, true), size);
}

/// Every element of self times all of other, in other's place.
Tensor kronecker(Tensor self, Tensor other) {
  const int rank = std::max(self.dim(), other.dim());
  Sizes a, b, out;
  for (int d = 0; d < rank; ++d) {
    const int from_self = d - (rank - self.dim()), from_other = d - (rank - other.dim());
    const SymInt n = from_self < 0 ? SymInt(1) : self.sizes()[from_self];
    const SymInt k = from_other < 0 ? SymInt(1) : other.sizes()[from_other];
    a.insert(a.end(), {n, SymInt(1)});
    b.insert(b.end(), {SymInt(1), k});
    out.push_back(n * k);
  }
  return reshape(mul(reshape(self, a), reshape(other, b)), out);
}

void define_arranging(OpTable& t) {
  const Samples matrices = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                               {{m.make({}, o.low, o.high)}, "0-dim", "RuntimeError: must be"}};
  });
  t.define(fliplr, {.doc = "The order of the columns (dimension 1) reversed.",
                    .tags = kPlain | Tag::NoOut,
                    .decompose =
                        [](Tensor self) {
                          FL_CHECK(self.dim() >= 2, RuntimeError, "Input must be >= 2-d.");
                          return flip(self, {SymInt(1)});
                        },
                    .samples = matrices});
  t.define(flipud, {.doc = "The order of the rows (dimension 0) reversed.",
                    .tags = kPlain | Tag::NoOut,
                    .decompose =
                        [](Tensor self) {
                          FL_CHECK(self.dim() >= 1, RuntimeError, "Input must be >= 1-d.");
                          return flip(self, {SymInt(0)});
                        },
                    .samples = of([](SampleMaker& m, const Samples& o) {
                      return std::vector<Sample>{
                          {{m.make({3, 4}, o.low, o.high)}, "", ""},
                          {{m.make({}, o.low, o.high)}, "0-dim", "RuntimeError: Input must be >= 1-d"}};
                    })});
  t.define(ravel, {.doc = "All elements in row-major order as a vector; a view of a contiguous tensor.",
                   .tags = kView,
                   .decompose = [](Tensor self) { return reshape(contiguous(self), {SymInt(-1)}); },
                   .samples = samples::unary({.dtypes = dtypes::all})});
  t.define(sum_to_size,
           {.doc = "Summed over the dimensions along which a tensor of these sizes is expanded to self's.",
            .tags = kPlain | Tag::NoOut,
            .decompose = summed_to,
            .samples = of(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({2, 3, 4}, o.low, o.high), Sizes{3, 1}}, "", ""},
                      {{m.make({2, 3}, o.low, o.high), Sizes{2, 3}}, "the same", ""},
                      {{m.make({2, 3}, o.low, o.high), Sizes{2}}, "sizes", "RuntimeError: not expandable"}};
                },
                dtypes::integers | dtypes::floats)});
  t.define(kron, {.doc = "The Kronecker product: other times each element of self, in place of the element.",
                  .tags = kPlain,
                  .decompose = kronecker,
                  .samples = of([](SampleMaker& m, const Samples& o) {
                    const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                    return std::vector<Sample>{{{x({2, 3}), x({3, 2})}, "", ""},
                                               {{x({2}), x({2, 3, 2})}, "ranks", ""},
                                               {{x({}), x({2, 3})}, "0-dim", ""}};
                  })});
}

/// Position k stands repeats[k] times.
Tensor positions_of(Tensor repeats, std::optional<SymInt> output_size) {
  FL_CHECK(repeats.dim() == 1, RuntimeError, "repeat_interleave only accept 1D vector as repeat");
  FL_CHECK(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32, RuntimeError,
           "repeats has to be Long or Int tensor");
  if (repeats.size(0) == SymInt(0)) return zeros({SymInt(0)}, repeats.dtype(), repeats.device());
  FL_CHECK(amin(repeats).item().to_int() >= 0, RuntimeError, "repeats can not be negative");
  const Tensor ends = cumsum(repeats, 0);
  const SymInt total(select(ends, 0, -1).item().to_int());
  FL_CHECK(!output_size || *output_size == total, RuntimeError,
           "allocated size does not match required size: {} and {}", *output_size, total);
  return to_dtype(searchsorted(ends, arange_end(total, DType::Int64, repeats.device()), false, true),
                  repeats.dtype());
}

Tensor repeated_by(Tensor self, Tensor repeats, std::optional<int64_t> dim,
                   std::optional<SymInt> output_size) {
  const Tensor x = dim ? self : reshape(self, {SymInt(-1)});
  const int64_t d = wrap_dim(dim.value_or(0), x.dim());
  const SymInt size = x.dim() == 0 ? SymInt(1) : x.size(d);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == SymInt(1))) {
    counts = expand(reshape(repeats, {SymInt(1)}), {size});
  } else {
    FL_CHECK(repeats.dim() == 1, RuntimeError, "repeats must be 0-dim or 1-dim tensor");
    FL_CHECK(repeats.size(0) == size, RuntimeError,
             "repeats must have the same size as input along dim, but got repeats.size(0) = {} and "
             "input.size({}) = {}",
             repeats.size(0), d, size);
  }
  return index_select(x.dim() == 0 ? unsqueeze(x, 0) : x, d, positions_of(counts, output_size));
}

void define_repeats(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::DataDependent;
  t.define(repeated_positions, {.doc = "Every position of a vector of numbers, as often as its number says.",
                                .tags = kTags | Tag::NoOut | Tag::NonDifferentiable,
                                .decompose = positions_of,
                                .samples = samples::custom(
                                    [](SampleMaker& m, const Samples&) {
                                      return std::vector<Sample>{
                                          {{m.make_index({5}, 0, 4)}, "", ""},
                                          {{m.make_index({2, 2}, 0, 4)}, "matrix", "RuntimeError: 1D"}};
                                    },
                                    {.gradient = false})});
  t.define(repeat_interleave_by,
           {.doc = "Every element along a dimension (of the flattened tensor without one) repeated as often "
                   "as a number for it, or for all, says.",
            .tags = kTags | Tag::NoOut,
            .decompose = repeated_by,
            .samples = of([](SampleMaker& m, const Samples& o) {
              const Tensor counts = tensor_from<int64_t>({2, 0, 1}, Sizes{3});
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{
                  {{x({2, 3}), counts, 1}, "", ""},
                  {{x({3}), counts}, "flattened", ""},
                  {{x({2, 3}), tensor_from<int64_t>({2}, {}), 0}, "0-dim", ""},
                  {{x({2, 2}), counts, 1}, "sizes", "RuntimeError: must have the same size"}};
            })});
}

}  // namespace

void define_stacking(OpTable& t) {
  define_stacks(t);
  define_splits(t);
  define_arranging(t);
  define_repeats(t);
}

}  // namespace fl
