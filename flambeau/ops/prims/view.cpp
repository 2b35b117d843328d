#include "flambeau/ops/prims/view.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kView = Tag::View | Tag::NoInPlace | Tag::NoOut;

Sizes ints(const std::vector<int64_t>& dims) {
  Sizes out;
  for (int64_t d : dims) out.push_back(d);
  return out;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> out(order.size());
  for (size_t d = 0; d < order.size(); ++d) out[order[d]] = static_cast<int64_t>(d);
  return out;
}

void define_permute(OpTable& t) {
  t.define(
      permute,
      {.doc = "Dimension d of the result is dimension dims[d] of self.",
       .tags = kView,
       .infer =
           [](const InferCtx& c, int) {
             TensorSpec s = c.spec(0);
             FL_CHECK(
                 static_cast<int>(c.ints(1).size()) == s.dim(), RuntimeError,
                 "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                 "of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                 s.dim(), c.ints(1).size());
             const std::vector<int64_t> order = dimensions(c.ints(1), s.dim());
             for (size_t d = 0; d < order.size(); ++d) {
               s.sizes[d] = c.spec(0).sizes[order[d]];
               s.strides[d] = c.spec(0).strides[order[d]];
             }
             return InferResult{s};
           },
       .lower =
           [](const LowerCtx& c) {
             const std::vector<int64_t> order = dimensions(c.arg(1).ints(), c.spec(0).dim());
             return view_of(c, [order](std::span<const Expr> i) {
               Index out(i.size());
               for (size_t d = 0; d < i.size(); ++d) out[order[d]] = i[d];
               return out;
             });
           },
       .write_back =
           [](const Tensor& base, const Tensor& view, const Value* args) {
             return permute(view, ints(inverse(dimensions(args[1].ints(), base.dim()))));
           },
       .grad =
           [](GradCtx& c, const Tensor& g) {
             return permute(g, ints(inverse(dimensions(c.arg(1).ints(), c.in_spec(0).dim()))));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({2, 3, 4}, o.low, o.high), Sizes{2, 0, 1}}, "", ""},
                 {{m.make_strided({2, 3}, o.low, o.high), Sizes{-1, 0}}, "negative", ""},
                 {{m.make({}, o.low, o.high), Sizes{}}, "0-dim", ""},
                 {{m.make({0, 3}, o.low, o.high), Sizes{1, 0}}, "size 0", ""},
                 {{m.make({2, 3}, o.low, o.high), Sizes{0, 0}}, "repeated", "RuntimeError: multiple times"},
                 {{m.make({2, 3}, o.low, o.high), Sizes{0, 2}}, "out of range", "IndexError: out of range"}};
           },
           {.dtypes = dtypes::all})});
}

InferResult expand_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const IntList target = c.ints(1);
  const int extra = static_cast<int>(target.size()) - in.dim();
  FL_CHECK(
      extra >= 0, RuntimeError,
      "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the "
      "tensor ({})",
      target.size(), in.dim());
  TensorSpec s = in;
  s.sizes.assign(target.size(), 0);
  s.strides.assign(target.size(), 0);
  for (int d = static_cast<int>(target.size()) - 1; d >= 0; --d) {
    const SymInt size = d >= extra ? in.sizes[d - extra] : SymInt(1);
    const SymInt stride = d >= extra ? in.strides[d - extra] : SymInt(0);
    const bool keep = target[d] == SymInt(-1);
    FL_CHECK(!keep || d >= extra, RuntimeError,
             "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {}", d);
    s.sizes[d] = keep ? size : target[d];
    if (keep || known_equal(size, target[d])) {
      s.strides[d] = stride;
    } else if (size == SymInt(1) && target[d] != SymInt(1)) {
      s.strides[d] = 0;
    } else {
      FL_CHECK(
          size == target[d], RuntimeError,
          "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension "
          "{}. Target sizes: {}. Tensor sizes: {}",
          target[d], size, d, to_string(target), to_string(in.sizes));
      s.strides[d] = stride;
    }
  }
  return {s};
}

void define_expand(OpTable& t) {
  t.define(
      expand,
      {.doc = "self with dimensions of size 1 repeated to other sizes, without a copy (stride 0); -1 keeps a "
              "size.",
       .tags = kView,
       .infer = expand_rule,
       .lower =
           [](const LowerCtx& c) {
             const std::vector<Expr> in = c.sizes(0);
             return view_of(c, [in](std::span<const Expr> i) {
               Index out;
               const size_t extra = i.size() - in.size();
               for (size_t d = 0; d < in.size(); ++d)
                 out.push_back(in[d].is_const(1) ? Expr(0) : i[d + extra]);
               return out;
             });
           },
       .write_back =
           [](const Tensor& base, const Tensor& view, const Value*) {
             Tensor v = view;
             while (v.dim() > base.dim()) v = select(v, 0, 0);
             for (int d = 0; d < base.dim(); ++d) {
               if (!base.sizes()[d].same_as(v.sizes()[d])) v = slice(v, d, 0, 1);
             }
             return v;
           },
       .grad = [](GradCtx&, const Tensor& g) { return g; },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 1}, o.low, o.high), Sizes{3, 4}}, "", ""},
                 {{m.make({1, 3}, o.low, o.high), Sizes{2, 5, -1}}, "new dimension", ""},
                 {{m.make({}, o.low, o.high), Sizes{2, 2}}, "0-dim", ""},
                 {{m.make({1}, o.low, o.high), Sizes{0}}, "to size 0", ""},
                 {{m.make({3}, o.low, o.high), Sizes{4}},
                  "other size",
                  "RuntimeError: non-singleton dimension 0"},
                 {{m.make({3, 1}, o.low, o.high), Sizes{3}}, "too few", "RuntimeError: greater or equal"}};
           },
           {.dtypes = dtypes::all})});
}

InferResult view_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  const Sizes sizes = resolve_sizes(c.ints(1), s.numel());
  const auto strides = view_strides(s, sizes);
  FL_CHECK(strides.has_value(), RuntimeError,
           "view size is not compatible with input tensor's size {} and stride {} (at least one dimension of "
           "shape {} "
           "spans across two contiguous subspaces). Use .reshape(...) instead.",
           to_string(s.sizes), to_string(s.strides), to_string(sizes));
  s.sizes = sizes;
  s.strides = *strides;
  return {s};
}

Lowered lower_view(const LowerCtx& c) {
  const std::vector<Expr> from = c.out_sizes(), to = c.sizes(0);
  return view_of(c, [from, to](std::span<const Expr> i) { return reshape_index(i, from, to); });
}

/// Gradient and write-back of every view that keeps the order of elements.
Tensor back_to_input(GradCtx& c, const Tensor& g) { return reshape(g, c.in_spec(0).sizes); }
Tensor back_to_base(const Tensor& base, const Tensor& view, const Value*) {
  return reshape(view, base.sizes());
}

InferResult unsqueeze_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  const int64_t d = dimension(c.arg(1), s.dim() + 1);
  const SymInt stride = d < s.dim() ? s.sizes[d] * s.strides[d] : SymInt(1);
  s.sizes.insert(s.sizes.begin() + d, SymInt(1));
  s.strides.insert(s.strides.begin() + d, stride);
  return {s};
}

/// Without those of the given dimensions that have size 1.
InferResult squeezed(const TensorSpec& in, const std::vector<int64_t>& dims) {
  TensorSpec s = in;
  s.sizes.clear();
  s.strides.clear();
  for (int d = 0; d < in.dim(); ++d) {
    const bool listed = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (listed && in.sizes[d] == SymInt(1)) continue;
    s.sizes.push_back(in.sizes[d]);
    s.strides.push_back(in.strides[d]);
  }
  return {s};
}

void define_reshaping(OpTable& t) {
  t.define(
      view,
      {.doc = "The same elements with other sizes, without a copy; one size may be -1. Raises RuntimeError "
              "where the layout does not allow it.",
       .tags = kView,
       .infer = view_rule,
       .lower = lower_view,
       .write_back = back_to_base,
       .grad = back_to_input,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({4, 6}, o.low, o.high), Sizes{2, 12}}, "", ""},
                 {{m.make({4, 6}, o.low, o.high), Sizes{-1}}, "inferred", ""},
                 {{m.make({2, 3, 4}, o.low, o.high), Sizes{2, 1, 12}}, "joined", ""},
                 {{m.make({}, o.low, o.high), Sizes{1, 1}}, "0-dim", ""},
                 {{m.make({0, 3}, o.low, o.high), Sizes{3, 0, 2}}, "size 0", ""},
                 {{m.make_strided({4, 6}, o.low, o.high), Sizes{4, 2, 3}}, "strided", ""},
                 {{m.make_transposed({4, 6}, o.low, o.high), Sizes{24}},
                  "transposed",
                  "RuntimeError: view size is not compatible"},
                 {{m.make({4, 6}, o.low, o.high), Sizes{5, -1}},
                  "does not divide",
                  "RuntimeError: is invalid for input of size 24"}};
           },
           {.dtypes = dtypes::all})});
  t.define(
      unsqueeze,
      {.doc = "A dimension of size 1 put before `dim`.",
       .tags = kView,
       .infer = unsqueeze_rule,
       .lower = lower_view,
       .write_back = back_to_base,
       .grad =
           [](GradCtx& c, const Tensor& g) {
             return squeeze_dims(g, {SymInt(dimension(c.arg(1), c.in_spec(0).dim() + 1))});
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             std::vector<Sample> out = samples::with_arguments(m, o, {{Value(0)}, {Value(-1)}});
             out.push_back(
                 {{m.make({2, 3}, o.low, o.high), Value(4)}, "out of range", "IndexError: out of range"});
             return out;
           },
           {.dtypes = dtypes::all})});
  t.define(squeeze, {.doc = "Without the dimensions of size 1.",
                     .tags = kView,
                     .infer =
                         [](const InferCtx& c, int) {
                           std::vector<int64_t> all;
                           for (int d = 0; d < c.spec(0).dim(); ++d) all.push_back(d);
                           return squeezed(c.spec(0), all);
                         },
                     .lower = lower_view,
                     .write_back = back_to_base,
                     .grad = back_to_input,
                     .samples = samples::unary({.dtypes = dtypes::all})});
  t.define(squeeze_dims,
           {.doc = "Without those of the dimensions `dim` that have size 1.",
            .tags = kView,
            .infer = [](const InferCtx& c,
                        int) { return squeezed(c.spec(0), dimensions(c.ints(1), c.spec(0).dim())); },
            .lower = lower_view,
            .write_back = back_to_base,
            .grad = back_to_input,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({1, 3, 1}, o.low, o.high), Sizes{0, 2}}, "", ""},
                      {{m.make({1, 3, 1}, o.low, o.high), Sizes{-1, 1}}, "not all of size 1", ""},
                      {{m.make({}, o.low, o.high), Sizes{0}}, "0-dim", ""}};
                },
                {.dtypes = dtypes::all})});
}

InferResult slice_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  FL_CHECK(s.dim() > 0, IndexError, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = dimension(c.arg(1), s.dim());
  const SliceRange r = slice_range(s.sizes[d], c.arg(2), c.arg(3), c.arg(4));
  s.offset += r.start * s.strides[d];
  s.sizes[d] = r.count;
  s.strides[d] *= r.step;
  return {s};
}

SymInt checked_index(SymInt index, SymInt size, int64_t d) {
  FL_CHECK(index >= -size && index < size, IndexError,
           "select(): index {} out of range for tensor of size {} at dimension {}", index, size, d);
  return index < SymInt(0) ? index + size : index;
}

InferResult select_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  FL_CHECK(s.dim() > 0, IndexError, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = dimension(c.arg(1), s.dim());
  s.offset += checked_index(c.sym_int(2), s.sizes[d], d) * s.strides[d];
  s.sizes.erase(s.sizes.begin() + d);
  s.strides.erase(s.strides.begin() + d);
  return {s};
}

std::vector<Sample> slice_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&] { return m.make({5, 6}, o.low, o.high); };
  return {{{x(), 0, 1, 4}, "", ""},
          {{x(), -1, 0, 6, 2}, "step", ""},
          {{x(), 1, -3, Value(int64_t{INT64_MAX})}, "from the end", ""},
          {{x(), 0, Value(), Value()}, "whole", ""},
          {{x(), 0, 4, 2}, "empty", ""},
          {{x(), 0, -100, 100, 3}, "clamped", ""},
          {{m.make_transposed({5, 6}, o.low, o.high), 1, 1, 5, 3}, "transposed", ""},
          {{x(), 0, 0, 4, -1}, "negative step", "RuntimeError: step must be positive"},
          {{m.make({}, o.low, o.high), 0, 0, 1}, "0-dim", "IndexError: 0-dim"}};
}

void define_slicing(OpTable& t) {
  t.define(slice,
           {.doc = "Elements start, start + step, ... before end along a dimension, with Python's clamping.",
            .tags = kView,
            .infer = slice_rule,
            .lower =
                [](const LowerCtx& c) {
                  const int64_t d = dimension(c.arg(1), c.spec(0).dim());
                  const Expr start = slice_start(c.sizes(0)[d], c.arg(2)), step = c.arg(4).sym_int().expr();
                  return view_of(c, [d, start, step](std::span<const Expr> i) {
                    Index out(i.begin(), i.end());
                    out[d] = start + i[d] * step;
                    return out;
                  });
                },
            .write_back =
                [](const Tensor& base, const Tensor& view, const Value* a) {
                  return slice_scatter(base, view, a[1].to_int(), optional_int(a[2]), optional_int(a[3]),
                                       a[4].sym_int());
                },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return slice_scatter(zeros(c.in_spec(0).sizes, g.dtype(), g.device()), g, c.arg(1).to_int(),
                                       optional_int(c.arg(2)), optional_int(c.arg(3)), c.arg(4).sym_int());
                },
            .samples = samples::custom(slice_samples, {.dtypes = dtypes::all})});
  t.define(
      select,
      {.doc =
           "The elements at one index of a dimension, which is dropped; negative indices count from the end.",
       .tags = kView,
       .infer = select_rule,
       .lower =
           [](const LowerCtx& c) {
             const int64_t d = dimension(c.arg(1), c.spec(0).dim());
             const Expr at = wrap_index(c.arg(2).sym_int().expr(), c.sizes(0)[d]);
             return view_of(c, [d, at](std::span<const Expr> i) {
               Index out(i.begin(), i.end());
               out.insert(out.begin() + d, at);
               return out;
             });
           },
       .write_back = [](const Tensor& base, const Tensor& view,
                        const Value* a) { return select_scatter(base, view, a[1].to_int(), a[2].sym_int()); },
       .grad =
           [](GradCtx& c, const Tensor& g) {
             return select_scatter(zeros(c.in_spec(0).sizes, g.dtype(), g.device()), g, c.arg(1).to_int(),
                                   c.arg(2).sym_int());
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({3, 4}, o.low, o.high), 0, 1}, "", ""},
                 {{m.make_transposed({3, 4}, o.low, o.high), -1, -1}, "from the end", ""},
                 {{m.make({4}, o.low, o.high), 0, 2}, "to 0-dim", ""},
                 {{m.make({3, 0}, o.low, o.high), 0, 1}, "size 0", ""},
                 {{m.make({3, 4}, o.low, o.high), 0, 3}, "out of range", "IndexError: index 3 out of range"},
                 {{m.make({}, o.low, o.high), 0, 0}, "0-dim", "IndexError: 0-dim"}};
           },
           {.dtypes = dtypes::all})});
}

void define_same(OpTable& t) {
  const Infer same = [](const InferCtx& c, int) { return InferResult{c.spec(0)}; };
  const LowerFn lower = [](const LowerCtx& c) {
    return view_of(c, [](std::span<const Expr> i) { return Index(i.begin(), i.end()); });
  };
  const auto write_back = [](const Tensor&, const Tensor& view, const Value*) { return view; };
  t.define(alias, {.doc = "A view of all of self.",
                   .tags = kView,
                   .infer = same,
                   .lower = lower,
                   .write_back = write_back,
                   .grad = [](GradCtx&, const Tensor& g) { return g; },
                   .samples = samples::unary({.dtypes = dtypes::all})});
  t.define(detach, {.doc = "A view of all of self without gradient.",
                    .tags = kView | Tag::NonDifferentiable,
                    .infer = same,
                    .lower = lower,
                    .write_back = write_back,
                    .samples = samples::unary({.dtypes = dtypes::all})});
}

}  // namespace

void define_view(OpTable& t) {
  define_permute(t);
  define_expand(t);
  define_reshaping(t);
  define_slicing(t);
  define_same(t);
}

}  // namespace fl
