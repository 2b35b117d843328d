// Padding with a number, by reflection and by replication.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"
#include "flambeau/tensor/number_fits.h"

namespace fl {
namespace {

/// Padding before and after a dimension; the list starts with the last one.
struct Around {
  SymInt before, after;
};
std::vector<Around> around(IntList padding, int rank) {
  FL_CHECK(padding.size() % 2 == 0 && static_cast<int>(padding.size()) <= 2 * rank, RuntimeError,
           "Length of pad must be even and no more than twice the number of dimensions of the input: got {} "
           "for {} "
           "dimensions",
           to_string(padding), rank);
  std::vector<Around> out(rank);
  for (size_t k = 0; 2 * k < padding.size(); ++k) out[rank - 1 - k] = {padding[2 * k], padding[2 * k + 1]};
  return out;
}

TensorSpec padded_spec(const TensorSpec& in, const std::vector<Around>& pads) {
  Sizes sizes = in.sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const SymInt size = sizes[d];
    sizes[d] = size + pads[d].before + pads[d].after;
    FL_CHECK(sizes[d] >= SymInt(0), RuntimeError,
             "The input size {}, plus negative padding {} and {}, resulted in a negative output size", size,
             pads[d].before, pads[d].after);
  }
  TensorSpec out = make_spec(sizes, in.dtype, in.device);
  const bool channels_last =
      in.dim() == 4 && !is_contiguous(in) && is_contiguous(in, MemoryFormat::ChannelsLast);
  if (channels_last) out.strides = strides_for(sizes, MemoryFormat::ChannelsLast);
  return out;
}

Lowered lower_constant_pad(const LowerCtx& c) {
  Lowered l;
  l.sizes = c.out_sizes();
  const std::vector<Expr> in = c.sizes(0);
  const std::vector<Around> pads = around(c.arg(1).ints(), c.spec(0).dim());
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    Val inside;
    Index index(i.begin(), i.end());
    for (size_t d = 0; d < in.size(); ++d) {
      if (pads[d].before.same_as(0) && pads[d].after.same_as(0)) continue;
      index[d] = i[d] - pads[d].before.expr();
      const Val at = s.index(index[d]);
      const Val here = s.bit_and(s.le(s.constant(DType::Int64, 0), at), s.lt(at, s.index(in[d])));
      inside = inside.id < 0 ? here : s.bit_and(inside, here);
    }
    if (inside.id < 0) return std::vector<Val>{s.load(0, index)};
    const Val x = s.load(0, index, inside);
    return std::vector<Val>{s.select(inside, x, s.number(2, x.dtype))};
  };
  return l;
}

void define_constant_pad(OpTable& t) {
  t.define(
      constant_pad_nd,
      {.doc =
           "`value` added before and after each dimension, from the last one on; negative padding cuts off.",
       .tags = Tag::NoInPlace,
       .infer =
           [](const InferCtx& c, int) {
             check_fits(c.arg(2).scalar(), c.spec(0).dtype);
             return InferResult{padded_spec(c.spec(0), around(c.ints(1), c.spec(0).dim()))};
           },
       .lower = lower_constant_pad,
       .grad =
           [](GradCtx& c, const Tensor& g) {
             Sizes back;
             for (SymInt p : c.arg(1).ints()) back.push_back(-p);
             return constant_pad_nd(g, back, 0);
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({2, 3, 4}, o.low, o.high); };
             return std::vector<Sample>{
                 {{x(), Sizes{1, 2}}, "", ""},
                 {{x(), Sizes{1, 0, 0, 2}, 3}, "value", ""},
                 {{x(), Sizes{-1, 2, 1, -2}}, "negative", ""},
                 {{m.make({0, 2}, o.low, o.high), Sizes{0, 0, 1, 1}, 1}, "size 0", ""},
                 {{x(), Sizes{}}, "nothing", ""},
                 {{x(), Sizes{1}}, "odd", "RuntimeError: must be even"},
                 {{x(), Sizes{-3, -3}}, "too much", "RuntimeError: negative output size"}};
           },
           {.dtypes = dtypes::all})});
}

enum class Edge { Reflect, Replicate };

InferResult edge_rule(const InferCtx& c, int edge) {
  const TensorSpec& in = c.spec(0);
  const std::vector<Around> pads = around(c.ints(1), in.dim());
  for (int d = 0; d < in.dim(); ++d) {
    const SymInt size = in.sizes[d];
    const bool used = !pads[d].before.same_as(0) || !pads[d].after.same_as(0);
    if (static_cast<Edge>(edge) == Edge::Reflect) {
      FL_CHECK(
          !used || (pads[d].before < size && pads[d].after < size), RuntimeError,
          "Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) at "
          "dimension {} of input {}",
          pads[d].before, pads[d].after, d, to_string(in.sizes));
    } else {
      FL_CHECK(!used || size > SymInt(0), RuntimeError, "replication_pad: dimension {} of input {} is empty",
               d, to_string(in.sizes));
    }
  }
  return {padded_spec(in, pads)};
}

/// Where a padded position comes from.
Index edge_index(std::span<const Expr> i, const std::vector<Expr>& sizes, const std::vector<Around>& pads,
                 Edge edge) {
  Index out(i.begin(), i.end());
  for (size_t d = 0; d < out.size(); ++d) {
    if (pads[d].before.same_as(0) && pads[d].after.same_as(0)) continue;
    const Expr at = i[d] - pads[d].before.expr(), last = sizes[d] - Expr(1);
    if (edge == Edge::Replicate) {
      out[d] = sym::min(sym::max(at, 0), last);
    } else {
      const Expr up = sym::max(at, -at);
      out[d] = sym::min(up, last + last - up);
    }
  }
  return out;
}

Lowered lower_edge(const LowerCtx& c, Edge edge) {
  Lowered l;
  l.sizes = c.out_sizes();
  const std::vector<Expr> in = c.sizes(0);
  const std::vector<Around> pads = around(c.arg(1).ints(), c.spec(0).dim());
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    return std::vector<Val>{s.load(0, edge_index(i, in, pads, edge))};
  };
  return l;
}

Lowered lower_edge_add(const LowerCtx& c, Edge edge) {
  Lowered l;
  l.kind = Lowered::Kind::Scatter;
  l.sizes = c.sizes(1);
  l.mode = StoreMode::Add;
  const std::vector<Expr> in = c.sizes(0);
  const std::vector<Around> pads = around(c.arg(2).ints(), c.spec(0).dim());
  const DType dtype = compute_dtype(c.out().dtype);
  l.update = [=](BodyOps& s, std::span<const Expr> i) {
    return Lowered::Update{edge_index(i, in, pads, edge), s.cast(s.load(1, i), dtype), {}};
  };
  return l;
}

std::vector<Sample> edge_samples(SampleMaker& m, const Samples& o) {
  return {{{m.make({2, 3, 4}, o.low, o.high), Sizes{1, 2}}, "", ""},
          {{m.make({2, 3, 4}, o.low, o.high), Sizes{3, 0, 1, 2}}, "two dimensions", ""},
          {{m.make_transposed({3, 4}, o.low, o.high), Sizes{-1, 2}}, "negative", ""},
          {{m.make({2, 0}, o.low, o.high), Sizes{1, 1}}, "size 0", "RuntimeError: "}};
}
std::vector<Sample> edge_add_samples(SampleMaker& m, const Samples& o) {
  return {{{m.make({2, 4}, o.low, o.high), m.make({2, 7}, o.low, o.high), Sizes{1, 2}}, "", ""},
          {{m.make({3, 4}, o.low, o.high), m.make({6, 7}, o.low, o.high), Sizes{3, 0, 1, 2}},
           "two dimensions",
           ""}};
}

void define_edges(OpTable& t) {
  const Samples edges = samples::custom(edge_samples, {.dtypes = dtypes::integers | dtypes::floats});
  const Samples adds = samples::custom(edge_add_samples);
  t.define(_reflection_pad, {.doc = "Padding with the elements mirrored at the edge, which are not repeated.",
                             .tags = Tag::NoInPlace,
                             .infer = Infer(edge_rule, static_cast<int>(Edge::Reflect)),
                             .lower = [](const LowerCtx& c) { return lower_edge(c, Edge::Reflect); },
                             .grad =
                                 [](GradCtx& c, const Tensor& g) {
                                   return _reflection_pad_add(
                                       zeros(c.in_spec(0).sizes, g.dtype(), g.device()), g, c.arg(1).ints());
                                 },
                             .samples = edges});
  t.define(_replication_pad, {.doc = "Padding with the elements at the edge.",
                              .tags = Tag::NoInPlace,
                              .infer = Infer(edge_rule, static_cast<int>(Edge::Replicate)),
                              .lower = [](const LowerCtx& c) { return lower_edge(c, Edge::Replicate); },
                              .grad =
                                  [](GradCtx& c, const Tensor& g) {
                                    return _replication_pad_add(
                                        zeros(c.in_spec(0).sizes, g.dtype(), g.device()), g, c.arg(1).ints());
                                  },
                              .samples = edges});
  const Infer same = rule::same_as_input();
  t.define(_reflection_pad_add,
           {.doc = "self with a padded tensor added to the elements that its own come from.",
            .tags = Tag::NoInPlace,
            .infer = same,
            .lower = [](const LowerCtx& c) { return lower_edge_add(c, Edge::Reflect); },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{g, c.needs(1) ? _reflection_pad(g, c.arg(2).ints()) : Tensor()};
                },
            .samples = adds});
  t.define(_replication_pad_add,
           {.doc = "self with a padded tensor added to the elements that its own come from.",
            .tags = Tag::NoInPlace,
            .infer = same,
            .lower = [](const LowerCtx& c) { return lower_edge_add(c, Edge::Replicate); },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return Tensors{g, c.needs(1) ? _replication_pad(g, c.arg(2).ints()) : Tensor()};
                },
            .samples = adds});
}

}  // namespace

void define_pad(OpTable& t) {
  define_constant_pad(t);
  define_edges(t);
}

}  // namespace fl
