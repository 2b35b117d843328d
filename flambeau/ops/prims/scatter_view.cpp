#include "flambeau/ops/prims/scatter_view.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// self's spec, made contiguous, after a check that src has the sizes of the view.
InferResult scatter_spec(const InferCtx& c, const Sizes& view_sizes) {
  const TensorSpec &self = c.spec(0), &src = c.spec(1);
  bool equal = src.sizes.size() == view_sizes.size();
  for (size_t d = 0; equal && d < view_sizes.size(); ++d) equal = src.sizes[d] == view_sizes[d];
  FL_CHECK(equal, RuntimeError, "{}: expected src to have a size equal to the view of self: {}, got {}",
           c.op().schema.name, to_string(view_sizes), to_string(src.sizes));
  return {make_spec(self.sizes, self.dtype, self.device)};
}

/// The element of src at `index` where `inside` holds, that of self elsewhere.
Val replaced(BodyOps& s, std::span<const Expr> i, const Index& index, Val inside) {
  const Val self = s.load(0, i);
  return s.select(inside, s.cast(s.load(1, index, inside), self.dtype), self);
}

Lowered lower_slice_scatter(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const int64_t d = dimension(c.arg(2), c.spec(0).dim());
  const Expr start = slice_start(c.sizes(0)[d], c.arg(3)), step = c.arg(5).sym_int().expr();
  const Expr end = start + c.sizes(1)[d] * step;
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Val inside = s.bit_and(s.le(s.index(start), s.index(i[d])), s.lt(s.index(i[d]), s.index(end)));
    Index index(i.begin(), i.end());
    index[d] = i[d] - start;
    if (!step.is_const(1)) {
      const Val on_step = s.eq(s.index(sym::mod(index[d], step)), s.constant(DType::Int64, 0));
      inside = s.bit_and(inside, on_step);
      index[d] = sym::floordiv(index[d], step);
    }
    return std::vector<Val>{replaced(s, i, index, inside)};
  };
  return l;
}

Lowered lower_select_scatter(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const int64_t d = dimension(c.arg(2), c.spec(0).dim());
  const Expr at = wrap_index(c.arg(3).sym_int().expr(), c.sizes(0)[d]);
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Index index(i.begin(), i.end());
    index.erase(index.begin() + d);
    return std::vector<Val>{replaced(s, i, index, s.eq(s.index(i[d]), s.index(at)))};
  };
  return l;
}

Lowered lower_diagonal_scatter(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const auto [a, b] = diagonal_dims(c.arg(3), c.arg(4), c.spec(0).dim());
  const int64_t offset = c.arg(2).to_int();
  l.body = [a = a, b = b, offset](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Index index;
    for (size_t d = 0; d < i.size(); ++d)
      if (static_cast<int64_t>(d) != a && static_cast<int64_t>(d) != b) index.push_back(i[d]);
    index.push_back(offset >= 0 ? i[a] : i[b]);
    const Val on = s.eq(s.index(i[a] + Expr(offset)), s.index(i[b]));
    return std::vector<Val>{replaced(s, i, index, on)};
  };
  return l;
}

Lowered lower_strided_scatter(const LowerCtx& c, StoreMode mode) {
  Lowered l;
  l.kind = Lowered::Kind::Scatter;
  l.sizes = c.sizes(1);
  l.mode = mode;
  TensorSpec target = c.out();
  // Positions count from the start of self's storage; the result has a storage of its own.
  const Geometry g = strided_geometry(c.spec(0), c.arg(2), c.arg(3), c.arg(4));
  target.offset = mode == StoreMode::Set ? c.spec(0).offset : SymInt(0);
  const DType dtype = compute_dtype(c.out().dtype);
  l.update = [g, target, dtype](BodyOps& s, std::span<const Expr> i) {
    Expr position = g.offset.expr();
    for (size_t d = 0; d < i.size(); ++d) position += i[d] * g.stride[d].expr();
    return Lowered::Update{index_at(position, target), s.cast(s.load(1, i), dtype), {}};
  };
  return l;
}

/// The places are elements of self, which has memory from `start` on. Symbols are known where they are used.
void check_places(const TensorSpec& self, const Geometry& g, SymInt start) {
  const auto symbolic = [](SymInt i) { return i.is_symbolic(); };
  if (std::ranges::any_of(self.sizes, symbolic) || std::ranges::any_of(g.size, symbolic) ||
      std::ranges::any_of(g.stride, symbolic) || symbolic(g.offset) || symbolic(start))
    return;
  if (product(g.size) == SymInt(0)) return;
  SymInt last = g.offset;
  for (size_t d = 0; d < g.size.size(); ++d) last += (g.size[d] - SymInt(1)) * g.stride[d];
  FL_CHECK(
      g.offset >= start && last < start + self.numel(), RuntimeError,
      "setStorage: sizes {}, strides {} and storage offset {} are out of bounds for {} elements from {} on",
      to_string(g.size), to_string(g.stride), g.offset, self.numel(), start);
}

InferResult strided_scatter_rule(const InferCtx& c, int from_first) {
  const Geometry g = strided_geometry(c.spec(0), c.arg(2), c.arg(3), c.arg(4));
  check_places(c.spec(0), g, from_first ? SymInt(0) : c.spec(0).offset);
  InferResult r = scatter_spec(c, g.size);
  // The positions are those of self's layout.
  r[0].strides = c.spec(0).strides;
  return r;
}

/// Specs with the view's sizes, from the view's own rule.
Sizes slice_sizes(const InferCtx& c) {
  Sizes sizes = c.spec(0).sizes;
  FL_CHECK(!sizes.empty(), IndexError, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = dimension(c.arg(2), c.spec(0).dim());
  sizes[d] = slice_range(sizes[d], c.arg(3), c.arg(4), c.arg(5)).count;
  return sizes;
}
Sizes select_sizes(const InferCtx& c) {
  Sizes sizes = c.spec(0).sizes;
  FL_CHECK(!sizes.empty(), IndexError, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = dimension(c.arg(2), c.spec(0).dim());
  const SymInt index = c.sym_int(3);
  FL_CHECK(index >= -sizes[d] && index < sizes[d], IndexError,
           "select(): index {} out of range for tensor of size {} at dimension {}", index, sizes[d], d);
  sizes.erase(sizes.begin() + d);
  return sizes;
}
Sizes diagonal_sizes(const InferCtx& c) {
  Sizes sizes = c.spec(0).sizes;
  const auto [a, b] = diagonal_dims(c.arg(3), c.arg(4), c.spec(0).dim());
  const SymInt offset = c.sym_int(2);
  const SymInt length =
      offset >= SymInt(0) ? min(sizes[a], sizes[b] - offset) : min(sizes[a] + offset, sizes[b]);
  for (const int64_t d : {std::max(a, b), std::min(a, b)}) sizes.erase(sizes.begin() + d);
  sizes.push_back(length <= SymInt(0) ? SymInt(0) : length);
  return sizes;
}

void define_slice_and_select(OpTable& t) {
  t.define(slice_scatter,
           {.doc = "self with the elements that slice() would give replaced by src.",
            .tags = Tag::NoInPlace,
            .infer = [](const InferCtx& c, int) { return scatter_spec(c, slice_sizes(c)); },
            .lower = lower_slice_scatter,
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const int64_t d = c.arg(2).to_int();
                  const auto start = optional_int(c.arg(3)), end = optional_int(c.arg(4));
                  const SymInt step = c.arg(5).sym_int();
                  const auto zero = [&] { return zeros(c.in_spec(1).sizes, g.dtype(), g.device()); };
                  return Tensors{c.needs(0) ? slice_scatter(g, zero(), d, start, end, step) : Tensor(),
                                 c.needs(1) ? slice(g, d, start, end, step) : Tensor()};
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({5, 6}), x({3, 6}), 0, 1, 4}, "", ""},
                      {{x({5, 6}), x({5, 3}), -1, 0, 6, 2}, "step", ""},
                      {{x({5, 6}), x({5, 3}), 1, -3, Value()}, "from the end", ""},
                      {{x({5, 6}), x({0, 6}), 0, 3, 3}, "empty", ""},
                      {{x({5, 6}), x({5, 6}), 0, 1, 4}, "sizes", "RuntimeError: expected src"}};
                },
                {.dtypes = dtypes::all})});
  t.define(select_scatter, {.doc = "self with the elements that select() would give replaced by src.",
                            .tags = Tag::NoInPlace,
                            .infer = [](const InferCtx& c, int) { return scatter_spec(c, select_sizes(c)); },
                            .lower = lower_select_scatter,
                            .grad =
                                [](GradCtx& c, const Tensor& g) {
                                  const int64_t d = c.arg(2).to_int();
                                  const SymInt index = c.arg(3).sym_int();
                                  const auto zero = [&] {
                                    return zeros(c.in_spec(1).sizes, g.dtype(), g.device());
                                  };
                                  return Tensors{c.needs(0) ? select_scatter(g, zero(), d, index) : Tensor(),
                                                 c.needs(1) ? select(g, d, index) : Tensor()};
                                },
                            .samples = samples::custom(
                                [](SampleMaker& m, const Samples& o) {
                                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                                  return std::vector<Sample>{
                                      {{x({3, 4}), x({4}), 0, 1}, "", ""},
                                      {{x({3, 4}), x({3}), -1, -1}, "from the end", ""},
                                      {{x({4}), x({}), 0, 2}, "of 0-dim", ""},
                                      {{x({3, 4}), x({3}), 0, 1}, "sizes", "RuntimeError: expected src"},
                                      {{x({3, 4}), x({4}), 0, 5}, "index", "IndexError: out of range"}};
                                },
                                {.dtypes = dtypes::all})});
}

void define_diagonal_scatter(OpTable& t) {
  t.define(diagonal_scatter,
           {.doc = "self with the elements that diagonal() would give replaced by src.",
            .tags = Tag::NoInPlace,
            .infer = [](const InferCtx& c, int) { return scatter_spec(c, diagonal_sizes(c)); },
            .lower = lower_diagonal_scatter,
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const int64_t offset = c.arg(2).to_int(), a = c.arg(3).to_int(), b = c.arg(4).to_int();
                  const auto zero = [&] { return zeros(c.in_spec(1).sizes, g.dtype(), g.device()); };
                  return Tensors{c.needs(0) ? diagonal_scatter(g, zero(), offset, a, b) : Tensor(),
                                 c.needs(1) ? diagonal(g, offset, a, b) : Tensor()};
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{{{x({3, 4}), x({3})}, "", ""},
                                             {{x({3, 4}), x({3}), 1}, "above", ""},
                                             {{x({3, 4}), x({1}), -2}, "below", ""},
                                             {{x({2, 3, 4}), x({3, 2}), 0, 0, 2}, "rank 3", ""},
                                             {{x({3, 4}), x({4})}, "sizes", "RuntimeError: expected src"}};
                },
                {.dtypes = dtypes::all})});
}

void define_strided_scatter(OpTable& t) {
  t.define(
      as_strided_scatter,
      {.doc = "self, which has to be dense, with the elements that as_strided() would give replaced by src.",
       .tags = Tag::NoInPlace,
       .infer = strided_scatter_rule,
       .lower = [](const LowerCtx& c) { return lower_strided_scatter(c, StoreMode::Set); },
       .grad =
           [](GradCtx& c, const Tensor& g) {
             const IntList size = c.arg(2).ints(), stride = c.arg(3).ints();
             const SymInt offset = c.arg(4).is_none() ? SymInt(0) : c.arg(4).sym_int() - c.in_spec(0).offset;
             const Tensor dense = laid_out(g, c.in_spec(0));
             const auto zero = [&] { return zeros(c.in_spec(1).sizes, g.dtype(), g.device()); };
             return Tensors{c.needs(0)
                                ? as_strided_scatter(dense, zero(), size, stride, dense.offset() + offset)
                                : Tensor(),
                            c.needs(1) ? as_strided(dense, size, stride, dense.offset() + offset) : Tensor()};
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{
                 {{x({4, 6}), x({3, 2}), Sizes{3, 2}, Sizes{6, 2}, 1}, "", ""},
                 {{x({6}), x({}), Sizes{}, Sizes{}, 2}, "of 0-dim", ""},
                 {{x({6}), x({3}), Sizes{2}, Sizes{1}}, "sizes", "RuntimeError: expected src"},
                 {{x({6}), x({3}), Sizes{3}, Sizes{3}}, "outside", "RuntimeError: out of bounds"},
                 {{x({6}), x({1}), Sizes{1}, Sizes{1}, -1}, "before", "RuntimeError: out of bounds"}};
           },
           {.dtypes = dtypes::all})});
  t.define(_as_strided_add,
           {.doc = "self, which has to be dense, with src added to the elements that as_strided() with an "
                   "offset from self's first element would give: the gradient of as_strided.",
            .tags = Tag::NoInPlace,
            .infer = Infer(strided_scatter_rule, 1),
            .lower = [](const LowerCtx& c) { return lower_strided_scatter(c, StoreMode::Add); },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const Tensor dense = laid_out(g, c.in_spec(0));
                  return Tensors{g, c.needs(1) ? as_strided(dense, c.arg(2).ints(), c.arg(3).ints(),
                                                            dense.offset() + c.arg(4).sym_int())
                                               : Tensor()};
                },
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
              return std::vector<Sample>{
                  {{x({4, 6}), x({3, 2}), Sizes{3, 2}, Sizes{6, 2}, 1}, "", ""},
                  {{x({12}), x({3, 4}), Sizes{3, 4}, Sizes{2, 1}, 0}, "overlapping", ""}};
            })});
}

/// For each place of the input the sum over the windows that contain it.
Lowered lower_unfold_backward(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const int rank = c.out().dim();
  const int64_t d = dimension(c.arg(2), rank);
  const Expr size = c.arg(3).sym_int().expr(), step = c.arg(4).sym_int().expr();
  const Expr windows = rank == 0 ? Expr(1) : c.sizes(0)[d];
  l.reduce_sizes = {size};
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    Index index(i.begin(), i.end());
    Val inside = s.constant(DType::Bool, 1);
    if (rank > 0) {
      // Element r of window w lies at w * step + r.
      const Expr first = i[d] - r[0];
      index[d] = sym::floordiv(first, step);
      inside = s.bit_and(s.le(s.constant(DType::Int64, 0), s.index(first)),
                         s.lt(s.index(index[d]), s.index(windows)));
      inside = s.bit_and(inside, s.eq(s.index(sym::mod(first, step)), s.constant(DType::Int64, 0)));
    }
    index.push_back(r[0]);
    return std::vector<Val>{s.load(0, index, inside)};
  };
  return l;
}

void define_unfold_backward(OpTable& t) {
  t.define(unfold_backward,
           {.doc = "The gradient of unfold: windows added where they came from.",
            .tags = Tag::Reduction | Tag::NoInPlace,
            .infer =
                [](const InferCtx& c, int) {
                  FL_CHECK(c.spec(0).dim() == static_cast<int>(c.ints(1).size()) + 1, RuntimeError,
                           "unfold_backward: expected windows of {} dimensions, got {}", c.ints(1).size() + 1,
                           c.spec(0).dim());
                  return InferResult{make_spec(c.ints(1), c.spec(0).dtype, c.spec(0).device)};
                },
            .lower = lower_unfold_backward,
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return unfold(g, c.arg(2).to_int(), c.arg(3).to_int(), c.arg(4).to_int());
                },
            .samples = samples::custom([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({3, 3}, o.low, o.high), Sizes{7}, 0, 3, 2}, "", ""},
                  {{m.make({4, 5, 2}, o.low, o.high), Sizes{4, 6}, 1, 2, 1}, "overlapping", ""}};
            })});
}

}  // namespace

void define_scatter_view(OpTable& t) {
  define_slice_and_select(t);
  define_diagonal_scatter(t);
  define_strided_scatter(t);
  define_unfold_backward(t);
}

}  // namespace fl
