#include "flambeau/ops/prims/shape.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// cat drops vectors of size 0, whatever the rank of the others.
bool is_dropped(const TensorSpec& s) { return s.dim() == 1 && s.sizes[0].same_as(0); }

bool is_channels_last(const TensorSpec& s) {
  return s.dim() == 4 && !is_contiguous(s) && is_contiguous(s, MemoryFormat::ChannelsLast);
}

InferResult cat_rule(const InferCtx& c, int) {
  const int count = c.list_size(0);
  FL_CHECK(count > 0, ValueError, "torch.cat(): expected a non-empty list of Tensors");
  int first = 0;
  bool channels_last = true;
  std::optional<DType> dtype;
  for (int k = count - 1; k >= 0; --k) {
    const TensorSpec& s = c.spec(0, k);
    FL_CHECK(s.dim() > 0, RuntimeError, "zero-dimensional tensor (at position {}) cannot be concatenated", k);
    dtype = dtype ? promote(*dtype, s.dtype) : s.dtype;
    if (is_dropped(s)) continue;
    first = k;
    channels_last = channels_last && is_channels_last(s);
  }
  const TensorSpec& model = c.spec(0, first);
  const int64_t d = dimension(c.arg(1), model.dim());
  Sizes sizes = model.sizes;
  for (int k = first + 1; k < count; ++k) {
    const TensorSpec& s = c.spec(0, k);
    if (is_dropped(s)) continue;
    FL_CHECK(s.dim() == model.dim(), RuntimeError,
             "Tensors must have same number of dimensions: got {} and {}", model.dim(), s.dim());
    for (int e = 0; e < s.dim(); ++e) {
      FL_CHECK(e == d || s.sizes[e] == model.sizes[e], RuntimeError,
               "Sizes of tensors must match except in dimension {}. Expected size {} but got size {} for "
               "tensor number {} in the list.",
               d, model.sizes[e], s.sizes[e], k);
    }
    sizes[d] += s.sizes[d];
  }
  TensorSpec out = make_spec(sizes, *dtype, model.device);
  if (channels_last && is_channels_last(model)) out.strides = strides_for(sizes, MemoryFormat::ChannelsLast);
  return {out};
}

struct Piece {
  int item;
  Expr start, end;
};

Lowered lower_cat(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const int64_t d = dimension(c.arg(1), c.out().dim());
  std::vector<Piece> pieces;
  Expr start(0);
  for (int k = 0; k < c.list_size(0); ++k) {
    if (is_dropped(c.spec(0, k)) && c.out().dim() != 1) continue;
    const Expr end = start + c.sizes(0, k)[d];
    pieces.push_back({k, start, end});
    start = end;
  }
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const Val at = s.index(i[d]);
    Val result;
    for (size_t k = pieces.size(); k-- > 0;) {
      const Piece& p = pieces[k];
      // Pieces before this one are chosen over it, so its upper end is all that matters for the choice.
      const Val below = s.lt(at, s.index(p.end));
      const Val mask = s.bit_and(s.le(s.index(p.start), at), below);
      Index index(i.begin(), i.end());
      index[d] = i[d] - p.start;
      const Val x =
          s.cast(pieces.size() == 1 ? s.load(0, index, {}, p.item) : s.load(0, index, mask, p.item), dtype);
      result = k + 1 == pieces.size() ? x : s.select(below, x, result);
    }
    return std::vector<Val>{result};
  };
  return l;
}

Tensors cat_gradient(GradCtx& c, const Tensor& g) {
  const int64_t d = wrap_dim(c.arg(1).to_int(), c.out_spec(0).dim());
  Tensors out;
  SymInt start = 0;
  for (int k = 0; k < c.list_size(0); ++k) {
    const TensorSpec& s = c.in_spec(0, k);
    if (is_dropped(s)) {
      out.push_back(c.needs(0, k) ? zeros(s.sizes, g.dtype(), g.device()) : Tensor());
      continue;
    }
    const SymInt end = start + s.sizes[d];
    out.push_back(c.needs(0, k) ? slice(g, d, start, end, 1) : Tensor());
    start = end;
  }
  return out;
}

void define_cat(OpTable& t) {
  t.define(
      cat,
      {.doc = "Tensors joined along a dimension, in their promoted dtype; all other sizes have to be equal.",
       .tags = Tag::NoInPlace,
       .infer = cat_rule,
       .lower = lower_cat,
       .library = LibraryCall::Join,
       .grad = cat_gradient,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             using List = std::vector<Tensor>;
             return std::vector<Sample>{
                 {{List{x({2, 3}), x({4, 3})}}, "", ""},
                 {{List{x({2, 3}), x({2, 1}), m.make_transposed({2, 2}, o.low, o.high)}, -1}, "columns", ""},
                 {{List{x({2, 3})}}, "one", ""},
                 {{List{x({0, 3}), x({2, 3})}}, "size 0", ""},
                 {{List{x({0}), x({2, 3})}}, "empty vector", ""},
                 {{List{x({3}), m.make({2}, DType::Float64, 0, 3)}}, "dtypes", ""},
                 {{List{x({1, 2}), x({0, 2}), m.make_transposed({3, 2}, o.low, o.high),
                        m.make_strided({2, 2}, o.low, o.high), x({2, 2}), x({1, 2}), x({1, 2}), x({1, 2}),
                        x({2, 2}), x({0})}},
                  "many",
                  ""},
                 {{List{}}, "none", "ValueError: non-empty"},
                 {{List{x({}), x({1})}}, "0-dim", "RuntimeError: cannot be concatenated"},
                 {{List{x({2, 3}), x({2, 4})}}, "sizes", "RuntimeError: Sizes of tensors must match"}};
           },
           {.dtypes = dtypes::all})});
}

Lowered elementwise_move(const LowerCtx& c, std::function<Index(std::span<const Expr>)> from) {
  Lowered l;
  l.sizes = c.out_sizes();
  l.body = [from](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    return std::vector<Val>{s.load(0, from(i))};
  };
  return l;
}

InferResult roll_rule(const InferCtx& c, int) {
  const size_t shifts = c.ints(1).size(), dims = c.ints(2).size();
  FL_CHECK(shifts > 0, RuntimeError, "`shifts` required");
  FL_CHECK(shifts == dims || (dims == 0 && shifts == 1), RuntimeError,
           "shifts and dimensions must align. shifts: {}, dims:{}", shifts, dims);
  FL_CHECK(dims == 0 || c.spec(0).dim() > 0, IndexError,
           "Dimension specified as {} but tensor has no dimensions", c.ints(2)[0]);
  dimensions(c.ints(2), c.spec(0).dim());
  return rule::same_as_input().function(c, 0);
}

Lowered lower_roll(const LowerCtx& c) {
  const std::vector<Expr> sizes = c.out_sizes();
  std::vector<Expr> shifts;
  for (SymInt s : c.arg(1).ints()) shifts.push_back(s.expr());
  const std::vector<int64_t> dims = dimensions(c.arg(2).ints(), c.spec(0).dim());
  return elementwise_move(c, [=](std::span<const Expr> i) {
    Index out(i.begin(), i.end());
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t d = dims[k];
      if (!sizes[d].is_const(0) && !sizes[d].is_const(1)) out[d] = sym::mod(out[d] - shifts[k], sizes[d]);
    }
    if (!dims.empty() || i.empty()) return out;
    Expr numel(1);
    for (const Expr& s : sizes) numel *= s;
    if (numel.is_const(0)) return out;
    const Expr flat[] = {numel};
    const Expr position[] = {sym::mod(reshape_index(i, sizes, flat)[0] - shifts[0], numel)};
    return reshape_index(position, flat, sizes);
  });
}

Tensor rolled_back(GradCtx& c, const Tensor& g) {
  Sizes shifts;
  for (SymInt s : c.arg(1).ints()) shifts.push_back(-s);
  return roll(g, shifts, c.arg(2).ints());
}

void define_moves(OpTable& t) {
  t.define(
      flip,
      {.doc = "The order along the dimensions reversed.",
       .tags = Tag::NoInPlace,
       .infer =
           [](const InferCtx& c, int) {
             dimensions(c.ints(1), c.spec(0).dim());
             return rule::same_as_input().function(c, 0);
           },
       .lower =
           [](const LowerCtx& c) {
             const std::vector<Expr> sizes = c.out_sizes();
             const std::vector<int64_t> dims = dimensions(c.arg(1).ints(), c.spec(0).dim());
             return elementwise_move(c, [=](std::span<const Expr> i) {
               Index out(i.begin(), i.end());
               for (const int64_t d : dims)
                 if (!out.empty()) out[d] = sizes[d] - Expr(1) - i[d];
               return out;
             });
           },
       .grad = [](GradCtx& c, const Tensor& g) { return flip(g, c.arg(1).ints()); },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 4}, o.low, o.high), Sizes{0}}, "", ""},
                 {{m.make_transposed({3, 4}, o.low, o.high), Sizes{0, -1}}, "both", ""},
                 {{m.make({}, o.low, o.high), Sizes{}}, "0-dim", ""},
                 {{m.make({0, 2}, o.low, o.high), Sizes{0}}, "size 0", ""},
                 {{m.make({2, 2}, o.low, o.high), Sizes{0, 0}}, "repeated", "RuntimeError: multiple times"}};
           },
           {.dtypes = dtypes::all})});
  t.define(
      roll,
      {.doc =
           "Elements moved along the dimensions, round the end; of the flattened tensor without dimensions.",
       .tags = Tag::NoInPlace,
       .infer = roll_rule,
       .lower = lower_roll,
       .grad = rolled_back,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             return std::vector<Sample>{
                 {{x(), Sizes{1}, Sizes{0}}, "", ""},
                 {{x(), Sizes{-2, 7}, Sizes{0, 1}}, "both", ""},
                 {{x(), Sizes{5}}, "flattened", ""},
                 {{m.make({0}, o.low, o.high), Sizes{1}, Sizes{0}}, "size 0", ""},
                 {{m.make({}, o.low, o.high), Sizes{1}}, "0-dim", ""},
                 {{m.make({}, o.low, o.high), Sizes{0}, Sizes{0}},
                  "no dimension",
                  "IndexError: no dimensions"},
                 {{x(), Sizes{1, 2}, Sizes{0}}, "lengths", "RuntimeError: must align"}};
           },
           {.dtypes = dtypes::all})});
}

Tensor repeated(Tensor self, IntList repeats) {
  FL_CHECK(static_cast<int>(repeats.size()) >= self.dim(), RuntimeError,
           "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got "
           "{} for {}",
           to_string(repeats), to_string(self.sizes()));
  const size_t extra = repeats.size() - self.dim();
  Tensor spread = self;
  Sizes expanded, joined;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const SymInt size = d < extra ? SymInt(1) : self.sizes()[d - extra];
    FL_CHECK(repeats[d] >= SymInt(0), RuntimeError, "Trying to create tensor with negative dimension {}: {}",
             repeats[d] * size, to_string(repeats));
    expanded.insert(expanded.end(), {repeats[d], size});
    joined.push_back(repeats[d] * size);
  }
  // A dimension before each one; reshape() would ask for self's layout.
  for (int d = self.dim(); d-- > 0;) spread = unsqueeze(spread, d);
  for (size_t d = 0; d < 2 * extra; ++d) spread = unsqueeze(spread, 0);
  return view(clone(expand(spread, expanded), MemoryFormat::Contiguous), joined);
}

Lowered lower_triangle(const LowerCtx& c, bool lower) {
  Lowered l;
  l.sizes = c.out_sizes();
  // Far outside there is nothing to tell apart, and a row's number can be added.
  const SymInt given = c.arg(1).sym_int();
  constexpr int64_t kFar = int64_t{1} << 62;
  const Expr diagonal = given.is_symbolic() ? given.expr() : Expr(std::clamp(given.raw(), -kFar, kFar));
  const size_t rank = l.sizes.size();
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    const Val column = s.index(i[rank - 1]), limit = s.index(i[rank - 2] + diagonal);
    const Val keep = lower ? s.le(column, limit) : s.le(limit, column);
    const Val x = s.load(0, i);
    return std::vector<Val>{s.select(keep, x, s.like(x, 0))};
  };
  return l;
}

InferResult triangle_rule(const InferCtx& c, int) {
  FL_CHECK(c.spec(0).dim() >= 2, RuntimeError, "{}: input tensor must have at least 2 dimensions, got {}",
           c.op().schema.name, c.spec(0).dim());
  return {make_spec(c.spec(0).sizes, c.spec(0).dtype, c.spec(0).device)};
}

void define_triangles_and_repeat(OpTable& t) {
  const Samples matrices = samples::custom(
      [](SampleMaker& m, const Samples& o) {
        return std::vector<Sample>{
            {{m.make({3, 4}, o.low, o.high)}, "", ""},
            {{m.make({2, 4, 3}, o.low, o.high), 1}, "above", ""},
            {{m.make_transposed({4, 4}, o.low, o.high), -2}, "below", ""},
            {{m.make({0, 3}, o.low, o.high)}, "size 0", ""},
            {{m.make({3, 4}, o.low, o.high), INT64_MAX}, "far above", ""},
            {{m.make({3, 4}, o.low, o.high), INT64_MIN}, "far below", ""},
            {{m.make({3}, o.low, o.high)}, "vector", "RuntimeError: at least 2 dimensions"}};
      },
      {.dtypes = dtypes::all});
  t.define(tril, {.doc = "Matrices with 0 above a diagonal.",
                  .infer = triangle_rule,
                  .lower = [](const LowerCtx& c) { return lower_triangle(c, true); },
                  .grad = [](GradCtx& c, const Tensor& g) { return tril(g, c.arg(1).sym_int()); },
                  .samples = matrices});
  t.define(triu, {.doc = "Matrices with 0 below a diagonal.",
                  .infer = triangle_rule,
                  .lower = [](const LowerCtx& c) { return lower_triangle(c, false); },
                  .grad = [](GradCtx& c, const Tensor& g) { return triu(g, c.arg(1).sym_int()); },
                  .samples = matrices});
  t.define(
      repeat,
      {.doc = "Copies of self side by side along each dimension, and along new leading ones.",
       .tags = Tag::NoInPlace,
       .decompose = repeated,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({2, 3}, o.low, o.high), Sizes{2, 1}}, "", ""},
                 {{m.make({3}, o.low, o.high), Sizes{4, 2}}, "new dimension", ""},
                 {{m.make_transposed({2, 3}, o.low, o.high), Sizes{0, 2}}, "none", ""},
                 {{m.make({2, 3}, o.low, o.high), Sizes{2}}, "too few", "RuntimeError: can not be smaller"}};
           },
           {.dtypes = dtypes::all})});
}

}  // namespace

void define_shape(OpTable& t) {
  define_cat(t);
  define_moves(t);
  define_triangles_and_repeat(t);
}

}  // namespace fl
